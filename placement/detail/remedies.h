// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What would change a part of a step: the evaluator asked again with one thing changed. See the
/// table of placement/explain.h.
#include <vector>

#include "placement/explain.h"

namespace towtank::detail {

/// Below this share of the step a part counts as hidden.
inline constexpr double kHidden = 0.01;

/// The process group whose collectives an axis exposes; neighbours for the pipeline.
[[nodiscard]] GroupStride exposed_group(const Plan&, Axis);

/// Empty where nothing is known to help. Pre: problem.costs is set.
[[nodiscard]] std::vector<Remedy> remedies_of(const PlanProblem&, const Plan&,
                                              const Prediction& now, const StepTerm&);

}  // namespace towtank::detail
