// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_joins.h"

#include <unordered_map>

namespace towtank {
namespace {

bool on_host(TraceCategory c) {
  return c == TraceCategory::kCpuOp || c == TraceCategory::kAnnotation ||
         c == TraceCategory::kModule || c == TraceCategory::kHostCall;
}

void set_parents(const Trace& trace, TraceJoins& out) {
  std::vector<std::vector<std::int32_t>> open(trace.tracks.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (!on_host(event.category)) continue;
    auto& stack = open[static_cast<std::size_t>(event.track)];
    while (!stack.empty() &&
           trace.events[static_cast<std::size_t>(stack.back())].end_ns() <= event.start_ns) {
      stack.pop_back();
    }
    if (!stack.empty()) out.parent[i] = stack.back();
    // Nothing runs inside of a call.
    if (event.category != TraceCategory::kHostCall) stack.push_back(static_cast<std::int32_t>(i));
  }
}

/// Whether External ids name ops, or repeat correlations.
bool ids_name_ops(const Trace& trace) {
  long same = 0, other = 0;
  for (const TraceEvent& event : trace.events) {
    if (!on_device(event.category) || event.external_id < 0) continue;
    ++(event.external_id == event.correlation ? same : other);
  }
  return other > same;
}

using Index = std::unordered_map<std::int64_t, std::int32_t>;

std::int32_t look_up(const Index& index, std::int64_t id) {
  if (id == -1) return -1;
  const auto at = index.find(id);
  return at == index.end() ? -1 : at->second;
}

}  // namespace

TraceJoins join_events(const Trace& trace) {
  TraceJoins out;
  const std::size_t n = trace.events.size();
  out.parent.assign(n, -1);
  out.launch.assign(n, -1);
  out.op.assign(n, -1);
  set_parents(trace, out);
  const bool by_id = ids_name_ops(trace);
  Index calls, ops;
  for (std::size_t i = 0; i < n; ++i) {
    const TraceEvent& event = trace.events[i];
    const auto at = static_cast<std::int32_t>(i);
    if (event.category == TraceCategory::kHostCall && event.correlation != -1) {
      calls.emplace(event.correlation, at);
    } else if (by_id && event.category == TraceCategory::kCpuOp && event.external_id != -1) {
      ops.emplace(event.external_id, at);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const TraceEvent& event = trace.events[i];
    if (!on_device(event.category)) continue;
    out.launch[i] = look_up(calls, event.correlation);
    if (by_id) out.op[i] = look_up(ops, event.external_id);
    if (out.op[i] < 0) {
      out.op[i] = out.nearest(out.launch[i], [&](std::int32_t e) {
        return trace.events[static_cast<std::size_t>(e)].category == TraceCategory::kCpuOp;
      });
    }
    ++out.device_events;
    out.without_launch += out.launch[i] < 0 ? 1 : 0;
    out.without_op += out.op[i] < 0 ? 1 : 0;
  }
  return out;
}

}  // namespace towtank
