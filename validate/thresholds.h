// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bars that a validation must meet: "mape=10", "vtrain-multi:tau=0.85,ALL:coverage90=85".
///
///   name        unit  meets the bar when        figure
///   mape        %     at most                   mean absolute error of the step time
///   median      %     at most
///   p90         %     at most
///   bias        %     its size is at most
///   regret      %     at most                   mean over groups
///   worst       %     at most                   largest regret of a group
///   memory      %     at most                   mean absolute error of the memory
///   tau         -     at least
///   coverage50, coverage90  %  at least
///   oom_missed, oom_false   cases  at most      out of memory called a fit; a fit called that
///
/// Without a set a bar holds for every set that has the figure, pooled or not. A bar on a set that
/// is not there, or lacks the figure, is missed.
#include <string>
#include <string_view>
#include <vector>

#include "core/input_error.h"
#include "validate/validation.h"

namespace towtank {

enum class ThresholdFigure {
  kMape,
  kMedian,
  kP90,
  kBias,
  kRegret,
  kWorst,
  kMemory,
  kTau,
  kCoverage50,
  kCoverage90,
  kOomMissed,
  kOomFalse
};

struct Threshold {
  std::string set;  ///< empty: every set
  ThresholdFigure figure = ThresholdFigure::kMape;
  double bar = 0;  ///< in the table's unit
};

/// Comma-separated bars; faults name `where`.
[[nodiscard]] std::vector<Threshold> parse_thresholds(std::string_view text,
                                                      const std::string& where, Faults& faults);
/// One sentence for each bar that is missed.
[[nodiscard]] std::vector<std::string> missed(const std::vector<Threshold>&, const Validation&);

}  // namespace towtank
