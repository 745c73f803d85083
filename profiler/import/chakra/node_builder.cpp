// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/chakra/node_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/text.h"

namespace towtank::chakra {
namespace {

constexpr std::int64_t kLongestUs = 7LL * 24 * 3600 * 1'000'000;

/// Lists of Chakra are Python's: quotes are single.
Json list_of(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return Json::parse(text, nullptr, false);
}

/// "Tensor(float)" -> "float"; other types as they are.
std::string type_of(const std::string& text) {
  if (!text.starts_with("Tensor(") || !text.ends_with(")")) return text;
  return text.substr(7, text.size() - 8);
}

void set_shape(const Json& dims, TraceInput& input) {
  if (!dims.is_array()) return;
  const auto numbers = [](const Json& list) {
    std::vector<std::int64_t> out;
    for (const Json& d : list) {
      if (d.is_number_integer()) out.push_back(d.get<std::int64_t>());
    }
    return out;
  };
  if (dims.empty() || !dims[0].is_array()) {
    input.shape = numbers(dims);
    return;
  }
  for (const Json& one : dims) {
    if (one.is_array()) input.list.push_back(numbers(one));
  }
}

}  // namespace

NodeBuilder::NodeBuilder(Trace& trace) : trace_(trace), texts_(trace) { trace_.timed = false; }

void NodeBuilder::add(const Node& node) {
  ++trace_.stats.rows_read;
  if (node.duration_us < 0 || node.duration_us > kLongestUs) {
    trace_.stats.add(node.duration_us < 0 ? "durations under 0" : "durations over 7 days",
                     ImportStats::Severity::kLoss, 1, "node " + std::to_string(node.id));
    return;
  }
  TraceEvent event;
  event.category = node.on_host ? TraceCategory::kCpuOp : TraceCategory::kKernel;
  event.name = texts_.id(printable(node.name, 2000));
  const auto [track, added] = tracks_.emplace(std::pair(node.on_host, node.thread),
                                              static_cast<std::int32_t>(trace_.tracks.size()));
  if (added) {
    trace_.tracks.push_back({node.on_host ? "host" : "device", std::to_string(node.thread),
                             node.on_host ? -1 : 0, node.on_host ? -1 : node.thread});
  }
  event.track = track->second;
  std::int64_t& end = ends_[event.track];
  constexpr std::int64_t kLast = std::int64_t{1} << 61;
  event.start_ns = end;
  event.duration_ns = node.duration_us * 1000;
  end = std::min(end + event.duration_ns, kLast);
  event.external_id = node.on_host ? node.id : node.parent;
  if (!node.shapes.empty()) {
    const auto [at, fresh] =
        inputs_.emplace(node.shapes + node.types, static_cast<std::int32_t>(trace_.inputs.size()));
    event.inputs = at->second;
    if (fresh) {
      std::vector<TraceInput>& inputs = trace_.inputs.emplace_back();
      const Json shapes = list_of(node.shapes), types = list_of(node.types);
      for (std::size_t i = 0; shapes.is_array() && i < shapes.size(); ++i) {
        TraceInput& input = inputs.emplace_back();
        set_shape(shapes[i], input);
        if (types.is_array() && i < types.size() && types[i].is_string()) {
          input.type = type_of(types[i].get<std::string>());
        }
      }
    }
  }
  if (!node.collective.empty()) {
    TraceCollective& c = trace_.collectives.emplace_back();
    c.name = printable(node.collective);
    c.group = printable(node.group);
    c.dtype = "Byte";
    c.in_elements = node.collective_bytes;
    event.collective = static_cast<std::int32_t>(trace_.collectives.size() - 1);
  }
  ++trace_.stats.rows_kept;
  trace_.events.push_back(event);
}

void NodeBuilder::finish() {
  sort_events(trace_);
  if (const int rank = rank_of_name(trace_.name); rank >= 0) trace_.rank = rank;
}

bool looks_like_chakra(std::string_view head) {
  // A length of up to three bytes, then version (tag 0x0a) or an attribute (0x12).
  std::size_t length = 0, size = 0;
  for (unsigned shift = 0; size < head.size() && size < 3; ++size, shift += 7) {
    const auto byte = static_cast<unsigned char>(head[size]);
    length |= static_cast<std::size_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) {
      ++size;
      break;
    }
  }
  if (length < 2 || size >= head.size() || (head[size] != '\x0a' && head[size] != '\x12')) {
    return false;
  }
  const std::string_view first = head.substr(size, length);
  return first.find("schema") != std::string_view::npos ||
         first.find("chakra") != std::string_view::npos ||
         first.find("1.0") != std::string_view::npos;
}

int rank_of_name(std::string_view name) {
  for (const std::string_view end : {".gz", ".json", ".et"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == name.size() || name.size() - last > 7)
    return -1;
  if (name[last] != '_' && name[last] != '.' && name[last] != '-') return -1;
  return std::stoi(std::string(name.substr(last + 1)));
}

}  // namespace towtank::chakra
