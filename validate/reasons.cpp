// SPDX-License-Identifier: Apache-2.0
#include "validate/reasons.h"

#include <algorithm>
#include <cmath>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "placement/explain.h"

namespace towtank {
namespace {

constexpr std::size_t kFewest = 8;       ///< cases from which a correlation is looked at
constexpr double kCorrelated = 0.5;      ///< |r| from which it is told
constexpr double kSmallestShare = 0.02;  ///< of a part that can explain anything

double share_of(const ValidatedCase& c, const StepTerm& term) {
  return term.time / c.prediction.step_time;
}

}  // namespace

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  EXPECTS(x.size() == y.size());
  if (x.empty()) return 0;
  const double mx = *mean(x), my = *mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

void ReasonFinder::learn(const std::string& set, const std::vector<const ValidatedCase*>& cases) {
  std::vector<double> errors;
  std::vector<std::vector<double>> shares;
  for (const ValidatedCase* c : cases) {
    const auto error = time_error(*c);
    if (!error) continue;
    errors.push_back(*error);
    const std::vector<StepTerm> terms = step_terms(c->prediction.whole.step);
    shares.resize(terms.size());
    for (std::size_t t = 0; t < terms.size(); ++t) shares[t].push_back(share_of(*c, terms[t]));
  }
  if (errors.size() < kFewest) return;
  Clue best;
  for (std::size_t t = 0; t < shares.size(); ++t) {
    if (*mean(shares[t]) < kSmallestShare) continue;
    const double r = correlation(shares[t], errors);
    if (std::abs(r) > std::abs(best.correlation)) best = {t, r};
  }
  if (std::abs(best.correlation) >= kCorrelated) clues_[set] = best;
}

std::string ReasonFinder::reason(const ValidatedCase& c) const {
  const std::vector<StepTerm> terms = step_terms(c.prediction.whole.step);
  const auto named = [&](const StepTerm& term) {
    return term.name + " " + short_percent(share_of(c, term)) + " %";
  };
  const auto clue = clues_.find(c.input.set());
  if (clue != clues_.end()) {
    const StepTerm& term = terms[clue->second.part];
    if (share_of(c, term) >= kSmallestShare) {
      return named(term) + ", r " + three_digits(std::round(100 * clue->second.correlation) / 100);
    }
  }
  const auto largest = std::max_element(
      terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return named(*largest) + ", largest";
}

std::string largest_memory_part(const MemoryBreakdown& memory) {
  const std::vector<MemoryTerm> terms = memory_terms(memory);
  const auto largest = std::max_element(
      terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return largest->name + " " + to_text(largest->bytes);
}

}  // namespace towtank
