// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_collectives.h"

#include <algorithm>
#include <array>

#include "profiler/analysis/op_class.h"

namespace towtank {
namespace {

/// Letters only, small: "_allgather_base" and "AllGather" are one.
std::string letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'a' && c <= 'z') out += c;
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

struct KindName {
  std::string_view letters;  ///< with which a name begins
  std::optional<Collective> op;
  std::string_view name;
};
/// c10d ProcessGroupNCCL.cpp (names of collectives and annotations), nccl src/collectives
/// (kernels). Longer names stand before what they begin with.
constexpr std::array kKinds{
    KindName{"allreduce", Collective::kAllReduce, "all_reduce"},
    KindName{"allgather", Collective::kAllGather, "all_gather"},
    KindName{"reducescatter", Collective::kReduceScatter, "reduce_scatter"},
    KindName{"alltoall", Collective::kAllToAll, "all_to_all"},
    KindName{"sendrecv", Collective::kSendRecv, "send_recv"},
    KindName{"broadcast", Collective::kBroadcast, "broadcast"},
    KindName{"send", Collective::kSendRecv, "send_recv"},
    KindName{"recv", Collective::kSendRecv, "send_recv"},
    KindName{"reduce", std::nullopt, "reduce"},
    KindName{"gather", std::nullopt, "gather"},
    KindName{"scatter", std::nullopt, "scatter"},
    KindName{"barrier", std::nullopt, "barrier"},
    KindName{"coalesced", std::nullopt, "coalesced"},
};

const KindName* kind_of(std::string_view name) {
  const std::string text = letters(name);
  const auto at = std::find_if(kKinds.begin(), kKinds.end(),
                               [&](const KindName& k) { return text.starts_with(k.letters); });
  return at == kKinds.end() ? nullptr : &*at;
}

/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" -> "AllReduce_Sum_..."
std::string_view kernel_kind(std::string_view name) {
  const std::size_t bar = name.find("ernel_");
  return bar == std::string_view::npos ? std::string_view() : name.substr(bar + 6);
}

constexpr std::string_view kAnnotation = "nccl:";
constexpr std::string_view kOp = "record_param_comms";

class Finder {
 public:
  Finder(const Trace& trace, const TraceJoins& joins) : trace_(trace), joins_(joins) {}

  TraceCollectiveCall call(std::int32_t event) const {
    TraceCollectiveCall out;
    out.event = event;
    const TraceEvent& kernel = at(event);
    const std::int32_t op = op_of(event);
    const std::int32_t stated = kernel.collective >= 0 ? kernel.collective
                                : op >= 0              ? at(op).collective
                                                       : -1;
    const TraceCollective* said =
        stated >= 0 ? &trace_.collectives[static_cast<std::size_t>(stated)] : nullptr;
    set_kind(out, kernel, said);
    set_group(out, kernel, said);
    set_payload(out, said, op);
    return out;
  }

 private:
  [[nodiscard]] const TraceEvent& at(std::int32_t event) const {
    return trace_.events[static_cast<std::size_t>(event)];
  }

  [[nodiscard]] std::int32_t op_of(std::int32_t event) const {
    const auto is_op = [&](std::int32_t e) { return trace_.name_of(at(e)) == kOp; };
    const std::int32_t op = joins_.nearest(joins_.op[static_cast<std::size_t>(event)], is_op);
    return op >= 0 ? op : joins_.nearest(joins_.launch[static_cast<std::size_t>(event)], is_op);
  }

  void set_kind(TraceCollectiveCall& out, const TraceEvent& kernel,
                const TraceCollective* said) const {
    const KindName* kind = said != nullptr ? kind_of(said->name) : nullptr;
    if (kind == nullptr) {
      const std::int32_t mark = joins_.nearest(
          joins_.launch[static_cast<std::size_t>(out.event)],
          [&](std::int32_t e) { return trace_.name_of(at(e)).starts_with(kAnnotation); });
      if (mark >= 0) kind = kind_of(trace_.name_of(at(mark)).substr(kAnnotation.size()));
    }
    if (kind == nullptr) kind = kind_of(kernel_kind(trace_.name_of(kernel)));
    out.op = kind == nullptr ? std::nullopt : kind->op;
    out.name = kind == nullptr ? "unknown" : std::string(kind->name);
  }

  void set_group(TraceCollectiveCall& out, const TraceEvent& kernel,
                 const TraceCollective* said) const {
    if (said != nullptr) {
      out.group = said->group;
      out.sequence = said->sequence;
      out.ranks = said->group_size;
    }
    const TraceTrack& track = trace_.tracks[static_cast<std::size_t>(kernel.track)];
    if (out.group.empty()) out.group = "stream " + std::to_string(track.stream);
    if (out.ranks < 1 && trace_.world_size) {
      out.ranks = *trace_.world_size;
      out.ranks_assumed = true;
    }
  }

  /// Elements and bytes of one as the op's inputs say.
  [[nodiscard]] std::optional<double> input_bytes(std::int32_t op) const {
    if (op < 0 || at(op).inputs < 0) return std::nullopt;
    const auto& inputs = trace_.inputs[static_cast<std::size_t>(at(op).inputs)];
    if (inputs.empty()) return std::nullopt;
    const auto size = tensor_element_bytes(inputs.front().type);
    if (!size || inputs.front().shape.empty()) return std::nullopt;
    double out = *size;
    for (const std::int64_t d : inputs.front().shape) out *= static_cast<double>(d);
    return out;
  }

  void set_payload(TraceCollectiveCall& out, const TraceCollective* said, std::int32_t op) const {
    constexpr double kMost = 9e18;
    const auto set = [&](double value) {
      if (value > 0 && value < kMost) out.payload = Bytes{static_cast<std::int64_t>(value)};
    };
    if (said != nullptr && said->in_elements >= 0) {
      const auto size = tensor_element_bytes(said->dtype);
      if (!size) return;
      // The gathered side: of an all-gather what comes out.
      double count = static_cast<double>(said->in_elements);
      if (out.op == Collective::kAllGather) {
        if (said->out_elements < 0 && out.ranks < 1) return;
        count = said->out_elements >= 0
                    ? static_cast<double>(std::max(said->out_elements, said->in_elements))
                    : count * out.ranks;
      }
      return set(count * *size);
    }
    const auto input = input_bytes(op);
    if (!input) return;
    const bool part = out.op == Collective::kAllGather;
    if (part && out.ranks < 1) return;
    set(*input * (part ? out.ranks : 1));
  }

  const Trace& trace_;
  const TraceJoins& joins_;
};

}  // namespace

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("msccl") ||
         name.find("ncclKernel") != std::string_view::npos ||
         name.find("ncclDevKernel") != std::string_view::npos ||
         name.find("rcclGenericKernel") != std::string_view::npos;
}

std::vector<TraceCollectiveCall> find_collectives(const Trace& trace, const TraceJoins& joins) {
  std::vector<bool> known(trace.texts.size()), is(trace.texts.size());
  const Finder finder(trace, joins);
  std::vector<TraceCollectiveCall> out;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.category != TraceCategory::kKernel) continue;
    const auto name = static_cast<std::size_t>(event.name);
    if (!known[name]) {
      known[name] = true;
      is[name] = is_collective_kernel(trace.name_of(event));
    }
    if (is[name]) out.push_back(finder.call(static_cast<std::int32_t>(i)));
  }
  return out;
}

}  // namespace towtank
