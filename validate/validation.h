// SPDX-License-Identifier: Apache-2.0
#pragma once
/// All cases against all predictions, by set and pooled, with what explains the errors.
///
///   miss      measured - predicted step time
///   reason    of a case's miss: the part of the step whose share goes with the signed error over
///             its set (|Pearson r| >= 0.5, at least 8 cases), else the largest part; for a wrong
///             verdict the largest part of the memory
///   components  where a source states a part of the step apart from the rest, that part against
///             the predicted one
///
/// A reason is where to look, not a cause: parts that grow together cannot be told apart here.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validate/predict_case.h"
#include "validate/score.h"

namespace towtank {

struct ValidatedCase {
  Case input;
  CasePrediction prediction;
};

[[nodiscard]] ScoreRow score_row(const ValidatedCase&);
/// Signed relative error of the step time; nullopt if none was measured.
[[nodiscard]] std::optional<double> time_error(const ValidatedCase&);
[[nodiscard]] std::optional<double> memory_error(const ValidatedCase&);

/// A case far off, and where to look.
struct WorstCase {
  std::string id;
  double error = 0;  ///< signed, of the step time
  Seconds measured, predicted;
  std::string reason;
};

/// A group of plans in which the one predicted fastest was not the fastest.
struct WorstChoice {
  std::string chosen, best;  ///< ids
  std::string chosen_plan, best_plan;
  Seconds chosen_time, best_time;  ///< measured
  double regret = 0;
};

/// A part of the step that the source measured: predicted against measured.
struct ComponentScore {
  std::string name;
  int cases = 0;
  double mape = 0, bias = 0;
};

struct SetScore {
  std::string name;  ///< set, or "ALL"
  Score score;
  std::vector<ComponentScore> components;
};

/// A thing that was taken for granted, and in how many cases.
struct SharedAssumption {
  std::string text;
  int cases = 0;
};

struct Validation {
  std::vector<ValidatedCase> cases;         ///< in input order
  std::vector<SetScore> sets;               ///< in order of appearance
  std::optional<SetScore> pooled;           ///< if there are several sets
  std::vector<WorstCase> worst;             ///< the worst first; see the constants
  std::vector<WorstChoice> choices;         ///< five at most, the largest regret first; none of 0
  std::vector<std::string> wrong_verdicts;  ///< "id: ran, said to be out of memory (...)"
  std::set<std::string> fitted_sets;  ///< that the costs were fitted on; whoever knows fills it in
  std::vector<SharedAssumption> assumptions;  ///< of the cases and their sets; most frequent first
  std::vector<SharedAssumption> model_assumptions;  ///< of framework rules and model files
};

inline constexpr std::size_t kWorstCases = 10;
inline constexpr int kWorstOfASet =
    3;  ///< beside other sets: neighbours in a sweep are near-copies
inline constexpr std::size_t kWorstChoices = 5;

/// Predicts and scores. Throws InputError with the faults of all cases that cannot be expressed.
[[nodiscard]] Validation validate(std::vector<Case>, CasePredictor&);

}  // namespace towtank
