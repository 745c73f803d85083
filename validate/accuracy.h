// SPDX-License-Identifier: Apache-2.0
#pragma once
/// ACCURACY.md: what was predicted, what was measured, how far apart, and which rows a fit has
/// seen.
///
///   summary    one line a set, as the report's tables
///   rows       one line a case; a set of more than kMostRows cases has one line for each model,
///              length and number of devices
///   used       "no", or that a fit has seen the case's time or memory. Its error is then out of
///              fold where a prediction without its group was handed in, else in sample.
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
  std::set<std::string> fitted;  ///< ids of cases whose step time a fit has seen
  std::set<std::string> fitted_memory;  ///< whose memory a fit has seen
  /// By case id, each predicted by a fit that did not see the case's group.
  std::map<std::string, Seconds> out_of_fold;
  std::map<std::string, Bytes> out_of_fold_memory;
};

inline constexpr std::size_t kMostRows = 60;

/// Markdown, ends in a newline. Same input, same bytes.
[[nodiscard]] std::string accuracy_markdown(const Validation&, const AccuracyOptions&);

}  // namespace towtank
