// SPDX-License-Identifier: Apache-2.0
#pragma once
/// ACCURACY.md: what was predicted, what was measured, how far apart, and which rows a fit has
/// seen.
///
///   summary    one line a set, as the report's tables
///   rows       one line a case; a set of more than kMostRows cases has one line for each model,
///              length and number of devices
///   used       "no", or that a fit has seen the case's set. Then its error is out of fold where
///              one was handed in (predicted by a fit without its group), and says so.
///
/// Sources: the cases' own. Not modelled: what the authors of a table left out.
#include <map>
#include <set>
#include <string>

#include "validate/validation.h"

namespace towtank {

struct AccuracyOptions {
  std::string command;           ///< that makes the file
  std::string costs;             ///< what predicted: CostModel::description, calibration's name
  std::set<std::string> fitted;  ///< ids of cases that a fit has seen
  /// Step times by case id, each predicted by a fit that did not see the case's group.
  std::map<std::string, Seconds> out_of_fold;
};

inline constexpr std::size_t kMostRows = 60;

/// Markdown, ends in a newline. Same input, same bytes.
[[nodiscard]] std::string accuracy_markdown(const Validation&, const AccuracyOptions&);

}  // namespace towtank
