// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One simulation on SimGrid. Its engine is global to a process and its errors abort, so this runs
/// in a process of its own (main.cpp).
///
///   model     CM02, no cross-traffic, no TCP window, no link latencies: links are shared max-min
///             fairly whatever the paths (latency is a timer of the task)
///   compute   timers: nothing shares a stream
///   flow      one communication from a host of its own, whose uplink is a private link of the
///             flow's rate alone, through the shared links of its route
///   others    background traffic: flows of the same kind, one after the other on its link, until
///             every task has run
///   creation  a flow is created when its task is ready; nothing unfinished stands in SimGrid's
///             lists but what is in flight
///
/// Sizes are whole numbers in SimGrid: bytes are scaled by a power of two, so that rounding is
/// below 1e-12 of the largest flow's and lone times stay exact (the private rate is rounded too).
#include <variant>
#include <vector>

#include "sim/detail/wire_format.h"

namespace towtank::detail {

/// How many flows each route can carry at once; hosts cannot be added to a running simulation.
using RouteChannels = std::vector<int>;

/// Times, or the channels to try again with.
[[nodiscard]] std::variant<TaskTimes, RouteChannels> run_engine(const SimulationRequest&,
                                                                const RouteChannels&);
/// What to try first.
[[nodiscard]] RouteChannels first_channels(const SimulationRequest&);

}  // namespace towtank::detail
