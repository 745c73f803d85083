// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where to look when a prediction is off: see the table in validation.h.
#include <map>
#include <string>
#include <vector>

#include "validate/validation.h"

namespace towtank {

class ReasonFinder {
 public:
  /// Finds the part of the step that goes with the error of a set's cases.
  void learn(const std::string& set, const std::vector<const ValidatedCase*>& cases);
  /// "exposed tensor communication 41 %, r -0.83", or "matrix products 62 %, largest".
  [[nodiscard]] std::string reason(const ValidatedCase&) const;

 private:
  struct Clue {
    std::size_t part = 0;  ///< index into step_terms
    double correlation = 0;
  };
  std::map<std::string, Clue> clues_;
};

/// "activations 20.9 GiB"
[[nodiscard]] std::string largest_memory_part(const MemoryBreakdown&);

/// Pearson's r; 0 where either does not vary. Pre: of equal size.
[[nodiscard]] double correlation(const std::vector<double>&, const std::vector<double>&);

}  // namespace towtank
