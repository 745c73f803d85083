// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_ops.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "profiler/analysis/op_class.h"

namespace towtank {
namespace {

constexpr std::string_view kBackward = "autograd::engine::evaluate_function";
constexpr std::string_view kOptimizer = "Optimizer.step#";
constexpr std::string_view kModule = "nn.Module: ";

const TraceEvent& at(const Trace& trace, std::int32_t event) {
  return trace.events[static_cast<std::size_t>(event)];
}

/// What one host event means for the device events below it.
struct Meaning {
  std::int32_t owner = -1;  ///< the event whose run it is; -1: not known
  std::optional<OpSignature> signature;
};

class OpFinder {
 public:
  OpFinder(const Trace& trace, const TraceJoins& joins) : trace_(trace), joins_(joins) {}

  /// The op that a device event ran for.
  const Meaning& of(std::int32_t event) {
    const std::int32_t op = joins_.op[static_cast<std::size_t>(event)];
    const auto [known, added] = meanings_.emplace(op, Meaning{});
    if (added && op >= 0) known->second = meaning(op);
    return known->second;
  }
  /// Nearest optimizer step around a device event; -1: none.
  [[nodiscard]] std::int32_t optimizer(std::int32_t event) const {
    return around(event, kOptimizer);
  }

 private:
  [[nodiscard]] std::int32_t around(std::int32_t event, std::string_view prefix) const {
    const auto starts = [&](std::int32_t e) {
      return trace_.name_of(at(trace_, e)).starts_with(prefix);
    };
    const auto i = static_cast<std::size_t>(event);
    const std::int32_t by_op = joins_.nearest(joins_.op[i], starts);
    return by_op >= 0 ? by_op : joins_.nearest(joins_.launch[i], starts);
  }

  [[nodiscard]] Meaning meaning(std::int32_t op) const {
    const std::int32_t engine = joins_.nearest(
        op, [&](std::int32_t e) { return trace_.name_of(at(trace_, e)).starts_with(kBackward); });
    for (std::int32_t e = op; e >= 0 && e != engine;
         e = joins_.parent[static_cast<std::size_t>(e)]) {
      const TraceEvent& event = at(trace_, e);
      if (event.category == TraceCategory::kAnnotation) break;
      if (event.category != TraceCategory::kCpuOp || event.inputs < 0) continue;
      auto signature =
          op_signature(trace_.name_of(event), trace_.inputs[static_cast<std::size_t>(event.inputs)],
                       engine >= 0);
      if (signature) return {e, signature};
    }
    return {};
  }

  const Trace& trace_;
  const TraceJoins& joins_;
  std::unordered_map<std::int32_t, Meaning> meanings_;
};

/// One run: device events of one op in one step.
struct Run {
  std::optional<OpSignature> signature;
  std::int32_t label = 0;  ///< TextId
  std::int64_t ns = 0;
  int kernels = 0;
  bool tf32 = false;
};

/// Tensor-core kernels of fp32 operands: cutlass and cuBLAS names of the instruction shape.
bool is_tf32_kernel(std::string_view name) {
  return name.find("tf32") != std::string_view::npos ||
         name.find("s1688") != std::string_view::npos;
}

using RunKey = std::pair<std::int32_t, std::int32_t>;  ///< step, event of the op or kernel name

std::map<RunKey, Run> runs_of(const Trace& trace, const TraceJoins& joins, const TraceSteps& steps,
                              const std::vector<bool>& is_collective) {
  OpFinder finder(trace, joins);
  std::map<RunKey, Run> out;
  for (std::size_t s = 0; s < steps.steps.size(); ++s) {
    for (const std::int32_t e : steps.steps[s].events) {
      const TraceEvent& event = at(trace, e);
      if (is_collective[static_cast<std::size_t>(e)] || event.category != TraceCategory::kKernel) {
        continue;
      }
      const std::int32_t optimizer = finder.optimizer(e);
      const Meaning meaning = optimizer >= 0 ? Meaning{optimizer, std::nullopt} : finder.of(e);
      const std::int32_t owner = meaning.owner >= 0 ? meaning.owner : e;
      Run& run = out[{static_cast<std::int32_t>(s), owner}];
      run.signature = meaning.signature;
      run.label = at(trace, owner).name;
      if (meaning.owner < 0 && joins.op[static_cast<std::size_t>(e)] >= 0) {
        run.label = at(trace, joins.op[static_cast<std::size_t>(e)]).name;
      }
      run.ns += event.duration_ns;
      ++run.kernels;
      run.tf32 = run.tf32 || is_tf32_kernel(trace.name_of(event));
    }
  }
  return out;
}

auto signature_key(const OpSignature& s) {
  return std::make_tuple(s.kind, s.pass, s.dtype, s.causal, s.fused, s.batch, s.m, s.n, s.k,
                         s.work.value, s.traffic.value, s.kernels);
}

/// Containers of other modules: their time is that of what they hold.
constexpr std::array<std::string_view, 9> kContainers{"Sequential",
                                                      "ModuleList",
                                                      "ModuleDict",
                                                      "DataParallel",
                                                      "DistributedDataParallel",
                                                      "FullyShardedDataParallel",
                                                      "CheckpointWrapper",
                                                      "OptimizedModule",
                                                      "Float16Module"};

/// "nn.Module: BertLayer_3" -> "BertLayer"; empty if it is no numbered module.
std::string_view module_class(std::string_view name) {
  if (!name.starts_with(kModule)) return {};
  name.remove_prefix(kModule.size());
  const std::size_t bar = name.rfind('_');
  if (bar == std::string_view::npos || bar == 0 || bar + 1 == name.size()) return {};
  if (name.find_first_not_of("0123456789", bar + 1) != std::string_view::npos) return {};
  name = name.substr(0, bar);
  return std::find(kContainers.begin(), kContainers.end(), name) == kContainers.end()
             ? name
             : std::string_view();
}

struct ModuleTime {
  std::int64_t forward = 0, backward = 0;
};
/// By class, by instance (name).
using ModuleTimes = std::map<std::string_view, std::map<TextId, ModuleTime>>;

class ModuleClock {
 public:
  ModuleClock(const Trace& trace, const TraceJoins& joins) : trace_(trace), joins_(joins) {
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const TraceEvent& event = trace.events[i];
      if (event.category != TraceCategory::kCpuOp || event.sequence < 0) continue;
      const std::int32_t module = module_around(static_cast<std::int32_t>(i));
      if (module >= 0) forward_of_.emplace(event.sequence, module);
    }
  }

  void add(std::int32_t device_event, ModuleTimes& out) const {
    const auto i = static_cast<std::size_t>(device_event);
    const std::int32_t start = joins_.launch[i] >= 0 ? joins_.launch[i] : joins_.op[i];
    std::int32_t module = module_around(start);
    bool backward = false;
    if (module < 0) {
      const std::int32_t function = joins_.nearest(start, [&](std::int32_t e) {
        return at(trace_, e).sequence >= 0 && forward_of_.count(at(trace_, e).sequence) > 0;
      });
      if (function < 0) return;
      module = forward_of_.at(at(trace_, function).sequence);
      backward = true;
    }
    // Every class around it once: the innermost instance.
    std::vector<std::string_view> seen;
    for (; module >= 0; module = joins_.parent[static_cast<std::size_t>(module)]) {
      const TraceEvent& event = at(trace_, module);
      const std::string_view name = module_class(trace_.name_of(event));
      if (name.empty() || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      ModuleTime& time = out[name][event.name];
      (backward ? time.backward : time.forward) += at(trace_, device_event).duration_ns;
    }
  }

 private:
  [[nodiscard]] std::int32_t module_around(std::int32_t event) const {
    return joins_.nearest(
        event, [&](std::int32_t e) { return at(trace_, e).category == TraceCategory::kModule; });
  }

  const Trace& trace_;
  const TraceJoins& joins_;
  std::unordered_map<std::int64_t, std::int32_t> forward_of_;  ///< module by sequence number
};

LayerTimes layers_of(std::string_view name, const std::map<TextId, ModuleTime>& instances) {
  LayerTimes out;
  out.name = name;
  for (const auto& [instance, time] : instances) {
    const std::int64_t both = time.forward + time.backward;
    out.least_ns = out.instances == 0 ? both : std::min(out.least_ns, both);
    out.most_ns = std::max(out.most_ns, both);
    out.forward_ns += time.forward;
    out.backward_ns += time.backward;
    ++out.instances;
  }
  return out;
}

}  // namespace

std::int64_t OpRuns::total_ns() const {
  return std::accumulate(ns.begin(), ns.end(), std::int64_t{0});
}

std::vector<OpRuns> op_runs(const Trace& trace, const TraceJoins& joins, const TraceSteps& steps,
                            const std::vector<bool>& is_collective) {
  using Key = decltype(signature_key(OpSignature{}));
  std::map<std::pair<std::int32_t, std::optional<Key>>, OpRuns> groups;
  for (auto& [key, run] : runs_of(trace, joins, steps, is_collective)) {
    std::optional<Key> by;
    if (run.signature) {
      run.signature->kernels = run.kernels;
      if (run.tf32 && run.signature->dtype == DType::kFp32) run.signature->dtype = DType::kTf32;
      by = signature_key(*run.signature);
    }
    OpRuns& group = groups[{run.label, by}];
    group.label = trace.text(run.label);
    group.signature = run.signature;
    group.ns.push_back(run.ns);
    group.kernels += run.kernels;
  }
  std::vector<OpRuns> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(),
                   [](const OpRuns& a, const OpRuns& b) { return a.total_ns() > b.total_ns(); });
  return out;
}

std::optional<LayerTimes> layer_times(const Trace& trace, const TraceJoins& joins,
                                      const TraceSteps& steps) {
  const ModuleClock clock(trace, joins);
  ModuleTimes times;
  for (const TraceStep& step : steps.steps) {
    for (const std::int32_t e : step.events) clock.add(e, times);
  }
  std::optional<LayerTimes> best;
  for (const auto& [name, instances] : times) {
    if (instances.size() < 2) continue;
    LayerTimes layers = layers_of(name, instances);
    if (!best || layers.forward_ns + layers.backward_ns > best->forward_ns + best->backward_ns) {
      best = std::move(layers);
    }
  }
  return best;
}

}  // namespace towtank
