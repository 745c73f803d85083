// SPDX-License-Identifier: Apache-2.0
#include "validate/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr double kTie = 1e-12;

/// Plans of one workload on one machine, and how they compare.
struct Group {
  std::vector<TimePair> times;
  std::set<std::string> plans;
};

/// In order of first appearance, so that sums do not depend on the keys' text.
class Groups {
 public:
  void add(const ScoreRow& row) {
    const auto [at, is_new] = index_.emplace(row.group_key, groups_.size());
    if (is_new) groups_.emplace_back();
    Group& group = groups_[at->second];
    group.times.emplace_back(*row.time, *row.predicted_time);
    group.plans.insert(row.plan_key);
  }
  [[nodiscard]] std::vector<Group> comparable() const {
    std::vector<Group> out;
    std::copy_if(groups_.begin(), groups_.end(), std::back_inserter(out),
                 [](const Group& g) { return g.times.size() > 1 && g.plans.size() > 1; });
    return out;
  }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<Group> groups_;
};

void score_times(std::span<const ScoreRow> rows, Score& out) {
  std::vector<double> errors, sizes;
  for (const ScoreRow& row : rows) {
    if (!row.time) continue;
    ++out.timed;
    if (!row.predicted_time) continue;
    errors.push_back((*row.predicted_time - *row.time) / *row.time);
    sizes.push_back(std::abs(errors.back()));
  }
  out.predicted = static_cast<int>(errors.size());
  out.mape = mean(sizes);
  out.bias = mean(errors);
  out.median = quantile(sizes, 0.5);
  out.p90 = quantile(sizes, 0.9);
}

void score_ranking(std::span<const ScoreRow> rows, Score& out) {
  Groups groups;
  for (const ScoreRow& row : rows) {
    if (row.time && row.predicted_time) groups.add(row);
  }
  std::vector<double> taus, regrets;
  for (const Group& group : groups.comparable()) {
    ++out.groups;
    out.plans_in_groups += static_cast<int>(group.times.size());
    if (const auto tau = kendall_tau_b(group.times)) taus.push_back(*tau);
    regrets.push_back(top1_regret(group.times));
  }
  out.tau = mean(taus);
  out.regret_mean = mean(regrets);
  if (!regrets.empty()) out.regret_worst = *std::max_element(regrets.begin(), regrets.end());
}

void score_memory(std::span<const ScoreRow> rows, Score& out) {
  std::vector<double> errors, sizes;
  for (const ScoreRow& row : rows) {
    if (!row.memory || !row.predicted_memory) continue;
    errors.push_back((*row.predicted_memory - *row.memory) / *row.memory);
    sizes.push_back(std::abs(errors.back()));
  }
  out.memory_cases = static_cast<int>(errors.size());
  out.memory_mape = mean(sizes);
  out.memory_bias = mean(errors);
}

void score_verdicts(std::span<const ScoreRow> rows, Score& out) {
  for (const ScoreRow& row : rows) {
    VerdictCounts& counts = row.outcome == CaseOutcome::kRan ? out.measured_ran : out.measured_oom;
    if (!row.predicted_outcome) {
      ++counts.none;
    } else {
      ++(*row.predicted_outcome == CaseOutcome::kRan ? counts.ran : counts.oom);
    }
  }
}

std::optional<double> coverage(std::span<const ScoreRow> rows,
                               std::optional<std::pair<double, double>> ScoreRow::*interval) {
  std::vector<double> inside;
  for (const ScoreRow& row : rows) {
    if (!row.time || !row.predicted_time || !(row.*interval)) continue;
    const auto [low, high] = *(row.*interval);
    inside.push_back(low <= *row.time && *row.time <= high ? 1.0 : 0.0);
  }
  return mean(inside);
}

}  // namespace

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> quantile(std::vector<double> values, double q) {
  EXPECTS(0 <= q && q <= 1);
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
}

std::optional<double> kendall_tau_b(std::span<const TimePair> pairs) {
  double concordant = 0, discordant = 0, measured_ties = 0, predicted_ties = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t j = i + 1; j < pairs.size(); ++j) {
      const auto [m1, p1] = pairs[i];
      const auto [m2, p2] = pairs[j];
      if (m1 == m2) {
        if (p1 != p2) ++measured_ties;
      } else if (std::abs(p1 - p2) <= kTie * std::max(p1, p2)) {
        ++predicted_ties;
      } else {
        ++((m1 < m2) == (p1 < p2) ? concordant : discordant);
      }
    }
  }
  const double compared = concordant + discordant;
  if (compared + predicted_ties == 0) return std::nullopt;
  const double scale = std::sqrt((compared + measured_ties) * (compared + predicted_ties));
  return scale > 0 ? (concordant - discordant) / scale : 0.0;
}

double top1_regret(std::span<const TimePair> pairs) {
  EXPECTS(!pairs.empty());
  double best = pairs.front().first, fastest = pairs.front().second;
  for (const auto& [measured, predicted] : pairs) {
    best = std::min(best, measured);
    fastest = std::min(fastest, predicted);
  }
  double sum = 0;
  int chosen = 0;
  for (const auto& [measured, predicted] : pairs) {
    if (predicted > fastest * (1 + kTie)) continue;
    sum += measured;
    ++chosen;
  }
  return sum / chosen / best - 1;
}

Score score(std::span<const ScoreRow> rows) {
  Score out;
  out.cases = static_cast<int>(rows.size());
  score_times(rows, out);
  score_ranking(rows, out);
  score_memory(rows, out);
  score_verdicts(rows, out);
  out.coverage50 = coverage(rows, &ScoreRow::interval50);
  out.coverage90 = coverage(rows, &ScoreRow::interval90);
  return out;
}

}  // namespace towtank
