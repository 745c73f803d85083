// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A simulated step as a picture (SVG): time from left to right, a band an actor, in it a lane for
/// each stream that does something; under them the load of the busiest link against its capacity.
///
/// Every rectangle is one task, from its start to its end, with its name and times as a tooltip;
/// what is narrower than a tenth of a pixel is left out. Sends are drawn with the sender. The load
/// is the sum of the mean rates of the flows under way, as in chrome_trace.
#include <string>

#include "sim/step_result.h"

namespace towtank {

struct ChartOptions {
  std::string title;
  int actors = 16;  ///< at most; those in the middle are left out, and it says so
};

[[nodiscard]] std::string chart_svg(const LoweredStep&, const StepResult&, const ChartOptions&);

}  // namespace towtank
