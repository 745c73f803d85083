// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a prediction means: its parts by name, the term that binds, what would change it, and why
/// one plan loses to another.
///
/// The binding term is the largest part of the step time. Where that is computation, the largest
/// part that is not (a loss) is named beside it. A remedy is never guessed: the evaluator is asked
/// again with one thing changed, everything else kept.
///
///   part                      what is changed
///   communication of an axis  bandwidth of the network levels that bind it: the least factor (up
///                             to 16) that leaves it below 1 % of the step, else what twice does;
///                             the global batch doubled
///   bubble                    the global batch doubled (twice the microbatches)
///   recomputation             nothing recomputed: the memory that this would need
///   optimizer                 its states sharded (only where the plan does not)
///   input                     none
///
/// Loss to the first plan: the part that grew most, both values as shares of the FIRST plan's step
/// time, so that differences of parts add up to the difference of the plans.
///
/// Not modelled: two changes at once; whether another plan would then be better (search again).
#include <optional>
#include <string>
#include <vector>

#include "placement/evaluator.h"

namespace towtank {

/// One part of a step. `kind` and the index say which of StepBreakdown's fields it is.
struct StepTerm {
  enum class Kind { kCompute, kRecompute, kExposed, kBubble, kOptimizer, kHostGaps, kInput };
  Kind kind = Kind::kCompute;
  std::size_t index = 0;   ///< OpKind of kCompute, Axis of kExposed
  std::string name;        ///< "matrix products", "exposed data communication"
  std::string short_name;  ///< "products", "data": for tables
  Seconds time;
  [[nodiscard]] bool is_loss() const { return kind != Kind::kCompute; }
};

/// All parts in a fixed order, zero ones too; they sum to the step time.
[[nodiscard]] std::vector<StepTerm> step_terms(const StepBreakdown&);

/// One part of a rank's memory: "activations".
struct MemoryTerm {
  std::string name;
  Bytes bytes;
};
/// All parts in a fixed order; they sum to the total.
[[nodiscard]] std::vector<MemoryTerm> memory_terms(const MemoryBreakdown&);

/// Why a plan is slower than another.
struct Difference {
  double slower = 0;      ///< step time over the best's, less 1
  std::string term;       ///< the part that grew most; empty if none did
  double share = 0;       ///< that part over the BEST plan's step time: here ...
  double best_share = 0;  ///< ... and in the best plan
};
[[nodiscard]] Difference difference(const Prediction& loser, const Prediction& best);
/// "+8.2 %: bubble 11 vs 3 %"
[[nodiscard]] std::string to_text(const Difference&);

/// One change and what it does: "2.3x the inter-node bandwidth", "hides it".
struct Remedy {
  std::string change;
  std::string effect;
  bool hides = false;  ///< the part falls below 1 % of the step
};
/// "2.3x the inter-node bandwidth or a doubled batch hides it"
[[nodiscard]] std::string to_text(const std::vector<Remedy>&);

struct Explanation {
  StepTerm binding;
  double share = 0;                      ///< of the step time
  std::optional<StepTerm> largest_loss;  ///< if the binding term is computation and there is a loss
  double loss_share = 0;
  std::vector<Remedy> remedies;  ///< of the loss, else of the binding term
  std::string sentence;          ///< all of it, with a full stop
};

/// Pre: problem.costs is set; the prediction is the closed form's of this plan.
[[nodiscard]] Explanation explain(const PlanProblem&, const Plan&, const Prediction&);

/// "11", "3.2", "0.4" from a fraction: two digits at most.
[[nodiscard]] std::string short_percent(double fraction);

}  // namespace towtank
