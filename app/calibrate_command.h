// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank calibrate`: profiles in, a calibration out, with what its fits are worth.
#include <string>

#include "app/command_spec.h"
#include "app/commands.h"
#include "model/cost/fit/calibrate.h"

namespace towtank {

[[nodiscard]] CommandSpec calibrate_spec();
[[nodiscard]] Outcome run_calibrate(const Arguments&, const Terminal&);

/// What a person reads: each record with its parameters, the errors of rows that were left out in
/// turn, outliers, and what the rows could not tell.
[[nodiscard]] std::string calibrate_text(const CalibrationResult&);
/// "towtank-calibrate", version 1.
[[nodiscard]] std::string calibrate_json(const CalibrationResult&);

}  // namespace towtank
