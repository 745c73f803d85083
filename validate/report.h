// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A Validation as people and programs read it. Text lines have at most 100 columns; JSON has base
/// units in suffixed keys (docs/formats-case.md).
#include <string>

#include "core/json.h"
#include "validate/validation.h"

namespace towtank {

/// Step time, memory and verdict tables, the worst cases, components, assumptions.
[[nodiscard]] std::string report_text(const Validation&);
/// The same as one object: sets, ALL, worst, wrong verdicts, components, assumptions.
[[nodiscard]] Json report_json(const Validation&);
/// One line a case: id, step_time_s, peak_memory_bytes, outcome, interval90_s; what the scoring
/// script of the case format reads.
[[nodiscard]] std::string predictions_text(const Validation&);

}  // namespace towtank
