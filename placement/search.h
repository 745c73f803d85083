// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The fastest plans that fit, from the whole homogeneous space (space.h), with a certificate.
///
/// Best first: nodes (t, c, e, tau, b) are taken in the order of
///
///     LB0 = B t c S / (b N)     S: forward and backward of all layers, one microbatch, one rank
///
/// which is the time of a pipeline without bubble, data reduction or optimizer, and so never above
/// the time of any plan over the node. A plan is costed only if its own bound (recurrence.h) beats
/// the worst plan kept. The search ends when LB0 reaches that plan: nothing left can enter the
/// list. Recomputation is solved for: the least (none, then selective, then some layers whole, then
/// all) with which every pipeline rank fits.
///
/// Ties: fewest stages, smallest t, p, c, e, largest b. Same result for every run.
/// Not modelled: fewer devices than given; uneven replicas; contention (sim/).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/evaluator.h"
#include "placement/space.h"

namespace towtank {

struct SearchOptions {
  Framework framework = Framework::kMegatron;
  Pins pins;
  int top = 10;                ///< plans to return, >= 1
  double memory_limit = 0.95;  ///< share of device memory that a plan may need; (0, 1]
};

struct RankedPlan {
  Plan plan;
  Prediction prediction;
};

/// The plans that everybody compares with: plain data parallel, fully sharded.
struct Baseline {
  std::string name;
  std::optional<RankedPlan> plan;  ///< nullopt: not possible
  std::string why_not;             ///< "out of memory by 12 GiB", "batch 8 has no 64 parts"
};

struct SearchCounts {
  std::int64_t plans = 0;  ///< in the space (recomputation not counted as an axis)
  std::int64_t pruned_by_bound = 0;
  std::int64_t pruned_by_memory = 0;
  std::int64_t costed = 0;  ///< step times worked out whole
};

/// Nothing fits: the plan that comes nearest, and what it lacks.
struct NothingFits {
  RankedPlan nearest;
  Bytes needed, available;  ///< on its fullest rank
};

struct SearchResult {
  std::vector<RankedPlan> plans;  ///< fastest first
  std::vector<Baseline> baselines;
  SearchCounts counts;
  bool borderline_allowed = false;  ///< nothing fits within memory_limit; these lie within 100 %
  std::optional<NothingFits> nothing_fits;
  std::vector<std::string> empty_space;  ///< reasons, if the pins leave no plan at all
};

class SearchStrategy {
 public:
  SearchStrategy() = default;
  SearchStrategy(const SearchStrategy&) = delete;
  SearchStrategy& operator=(const SearchStrategy&) = delete;
  virtual ~SearchStrategy() = default;
  /// Pre: problem.costs is set; options.top >= 1.
  [[nodiscard]] virtual SearchResult search(const PlanProblem&, const SearchOptions&) const = 0;
};

class BestFirstSearch final : public SearchStrategy {
 public:
  [[nodiscard]] SearchResult search(const PlanProblem&, const SearchOptions&) const override;
};

/// Costs every plan of the space: the check of BestFirstSearch, for small spaces.
class ExhaustiveSearch final : public SearchStrategy {
 public:
  [[nodiscard]] SearchResult search(const PlanProblem&, const SearchOptions&) const override;
};

}  // namespace towtank
