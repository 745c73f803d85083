// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Predictions for programs: base units with suffixed keys (docs/formats.md). Written only; nothing
/// reads a prediction back.
#include "core/json.h"
#include "placement/evaluator.h"
#include "placement/explain.h"

namespace towtank {

/// step_time_s, its parts, memory by pipeline rank, rates, intervals, basis, assumptions.
[[nodiscard]] Json to_json(const Prediction&);
/// A rank's memory by part.
[[nodiscard]] Json to_json(const MemoryBreakdown&);
/// The binding term, the largest loss, remedies and the sentence.
[[nodiscard]] Json to_json(const Explanation&);

}  // namespace towtank
