// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How wrong predictions are over a set of cases. Every figure is computed as the published scoring
/// script of the case format does, so that anybody can check them with fewer lines of code.
///
///     e_i       = (predicted_i - measured_i) / measured_i            signed relative error
///     MAPE      = mean |e|,  bias = mean e,  median and p90 of |e| (linear between order
///     statistics) tau       Kendall's tau-b inside a group, then the mean over groups regret
///     measured time of the plan predicted fastest / best measured time - 1; where several
///               plans tie for fastest, the mean of their measured times
///     coverage  share of measured times inside the predicted interval
///
///   group       cases of equal workload, platform and devices, at least two, of different plans
///   tie         predicted times within a relative 1e-12
///
/// Sources: Kendall, Biometrika 33 (1945), tau-b.
/// Not modelled: errors of the measurement itself.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "validate/case.h"

namespace towtank {

/// One case and its prediction; whatever is unknown is nullopt.
struct ScoreRow {
  std::string id;
  std::string group_key;  ///< equal for cases that compare plans
  std::string plan_key;
  CaseOutcome outcome = CaseOutcome::kRan;
  std::optional<double> time, predicted_time;      ///< seconds; time > 0
  std::optional<double> memory, predicted_memory;  ///< bytes; memory > 0
  std::optional<CaseOutcome> predicted_outcome;
  std::optional<std::pair<double, double>> interval50, interval90;  ///< seconds
};

/// Measured outcome against the predicted one.
struct VerdictCounts {
  int ran = 0, oom = 0, none = 0;  ///< predicted so; none: no prediction
  friend bool operator==(const VerdictCounts&, const VerdictCounts&) = default;
};

/// nullopt: there is nothing to compute it from.
struct Score {
  int cases = 0;
  int timed = 0;      ///< with a measured step time
  int predicted = 0;  ///< of these with a predicted one
  std::optional<double> mape, median, bias, p90;
  int groups = 0;
  int plans_in_groups = 0;
  std::optional<double> tau, regret_mean, regret_worst;
  int memory_cases = 0;
  std::optional<double> memory_mape, memory_bias;
  VerdictCounts measured_ran, measured_oom;
  std::optional<double> coverage50, coverage90;  ///< over cases with both times and the interval
};

[[nodiscard]] Score score(std::span<const ScoreRow> rows);

// The parts, for tests.
using TimePair = std::pair<double, double>;  ///< measured, predicted
[[nodiscard]] std::optional<double> kendall_tau_b(std::span<const TimePair>);
/// Pre: not empty.
[[nodiscard]] double top1_regret(std::span<const TimePair>);
/// The q-quantile, linear between order statistics; nullopt if empty. Pre: 0 <= q <= 1.
[[nodiscard]] std::optional<double> quantile(std::vector<double> values, double q);
[[nodiscard]] std::optional<double> mean(std::span<const double>);

}  // namespace towtank
