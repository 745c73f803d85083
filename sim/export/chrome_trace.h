// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A simulated step as a Chrome trace (JSON array of events), which Perfetto and chrome://tracing
/// open.
///
///   process     an actor: a pipeline rank of one replica, or of several folded together (its name
///               says so)
///   thread      a stream: compute, tp, cp, ep, pp, dp; another one where tasks of a stream overlap
///   slice "X"   a task; an action of several parts is a slice around theirs
///   flow "s" f" from a send to where it arrives
///   counter "C" load of the busiest links, GB/s: the sum of the mean rates of the flows under way
///
/// Times are microseconds. Events stand in the order of tracks and time.
#include <string>

#include "sim/step_result.h"

namespace towtank {

struct ChromeTraceOptions {
  int counters = 16;  ///< links with a counter, busiest first
};

[[nodiscard]] std::string chrome_trace(const LoweredStep&, const StepResult&,
                                       const ChromeTraceOptions& = {});

}  // namespace towtank
