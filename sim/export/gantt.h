// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A simulated step as rows of letters for a terminal: what each actor's compute stream does most
/// of in each column's time, and under it its data stream where it has one.
///
///   F forward   B backward   I input gradient   W weight gradient   O optimizer
///   x exchange between nodes   s sends and does not compute   r reduce, gather   . nothing
///   of a replayed trace: k kernel   c collective
#include <string>

#include "sim/step_result.h"

namespace towtank {

struct GanttOptions {
  int columns = 100;  ///< of a whole line, >= 40
  int rows = 16;      ///< actors at most; those in the middle are left out, and it says so
};

[[nodiscard]] std::string gantt(const LoweredStep&, const StepResult&, const GanttOptions& = {});

}  // namespace towtank
