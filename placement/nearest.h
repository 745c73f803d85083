// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The smallest change that makes a plan fit, for one that does not.
///
/// Changes are tried in the order of what they disturb, one at a time, each costed; the first that
/// fits is the answer:
///
///   1  recompute selective, then full         same communication, more computation
///   2  the next smaller microbatches          same degrees
///   3  the next higher sharding stages        more communication over data ranks
///   4  tensor doubled, again doubled, ...     data divided by as much
///   5  pipeline doubled, again doubled, ...   data divided by as much
///   6  1 and 2 together at their strongest, then 3, 4 and 5 on top of them
///
/// Fits: at or below the capacity (a borderline plan is a fit here). Not tried: other device
/// counts, context and expert degrees, uneven stages; that is the search's job.
#include <optional>
#include <string>

#include "placement/evaluator.h"
#include "placement/validity.h"

namespace towtank {

struct NearestChange {
  std::string text;  ///< "recompute full", "tensor 8 and data 4"
  Plan plan;
  Prediction prediction;
};

/// nullopt: none of them fits. Pre: problem.costs is set; check_plan finds nothing; plan.stages is
/// expanded.
[[nodiscard]] std::optional<NearestChange> nearest_change(const PlanProblem&, const Plan&,
                                                          const ValidityOptions&);

}  // namespace towtank
