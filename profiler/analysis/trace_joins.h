// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which events of a trace belong together.
///
///   parent    innermost host event around a host event on its thread
///   launch    host call with the correlation of a device event
///   op        cpu op that a device event ran for: the one that its External id names, where the
///             file's ids name ops (older files repeat the correlation there); else the innermost
///             one around the launch
///
/// Work replayed from a graph has the launch of the whole graph, and no op of its own.
#include <cstdint>
#include <vector>

#include "profiler/trace.h"

namespace towtank {

struct TraceJoins {
  // By event; -1: none.
  std::vector<std::int32_t> parent, launch, op;
  long device_events = 0, without_launch = 0, without_op = 0;

  /// The nearest of an event's ancestors, or itself, for which the predicate holds; -1: none.
  template <class Predicate>
  [[nodiscard]] std::int32_t nearest(std::int32_t event, Predicate&& holds) const {
    while (event >= 0 && !holds(event)) event = parent[static_cast<std::size_t>(event)];
    return event;
  }
};

/// Pre: the trace's events are in order. O(events).
[[nodiscard]] TraceJoins join_events(const Trace&);

}  // namespace towtank
