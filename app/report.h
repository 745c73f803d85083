// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What people read: blocks of lines of at most kScreenWidth columns, made from results. Three
/// significant digits with their units; every time is a predicted one and says so.
#include <optional>
#include <string>
#include <vector>

#include "app/question.h"
#include "placement/explain.h"
#include "placement/search.h"

namespace towtank {

/// Marks headings on a terminal.
struct Style {
  bool colour = false;
  [[nodiscard]] std::string strong(std::string_view text) const;
};

/// Model, machine, training, and every default that was taken.
[[nodiscard]] std::string header_text(const Question&);

/// Ranked plans, one a row, each with what it loses to the first.
[[nodiscard]] std::string plans_text(const Question&, const std::vector<RankedPlan>&, const Style&);
[[nodiscard]] std::string baselines_text(const SearchResult&);
/// Plans covered, how they were ruled out, and what that proves.
[[nodiscard]] std::string certificate_text(const SearchCounts&);

/// One plan: interval, rates, step time and memory by part side by side.
[[nodiscard]] std::string prediction_text(const Question&, const std::string& title,
                                          const Prediction&, const Style&);
/// Length and cost of the whole training; nullopt where train_tokens is not stated.
[[nodiscard]] std::optional<std::string> run_text(const Question&, const Prediction&);
/// The binding term, and how much was assumed or, in full, all of it.
[[nodiscard]] std::string conclusion_text(const Question&, const Explanation&, const Prediction&,
                                          bool full);
/// The framework's rules with their sources.
[[nodiscard]] std::string rules_text(Framework);

/// "70.6 B", "124 M"
[[nodiscard]] std::string parameters_text(double count);
/// "tp8 pp4 dp2 mb1 1f1b zero1 sp, 20 of 80 layers recomputed"
[[nodiscard]] std::string plan_title(const Plan&);

}  // namespace towtank
