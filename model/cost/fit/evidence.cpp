// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/evidence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr int kMostFolds = 10;
constexpr std::size_t kLeastFallback = 3;

Folds numbered(const std::vector<std::string>& names, const std::string& noun) {
  const std::set<std::string> sorted(names.begin(), names.end());
  const int count = std::min(kMostFolds, static_cast<int>(sorted.size()));
  std::map<std::string, int> fold;
  int next = 0;
  for (const std::string& name : sorted) fold[name] = next++ % count;
  Folds out;
  out.count = count;
  out.of_row.reserve(names.size());
  for (const std::string& name : names) out.of_row.push_back(fold[name]);
  const std::string total = std::to_string(sorted.size()) + " " + noun;
  out.text = static_cast<int>(sorted.size()) == count
                 ? "each of " + total
                 : std::to_string(count) + " parts of " + total;
  return out;
}

}  // namespace

std::vector<double> cell_weights(const std::vector<std::string>& cells,
                                 const std::vector<double>& importance) {
  EXPECTS(cells.size() == importance.size());
  std::map<std::string, int> rows;
  for (const std::string& cell : cells) ++rows[cell];
  std::vector<double> out;
  out.reserve(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) out.push_back(importance[i] / rows[cells[i]]);
  return out;
}

Folds folds_of(const std::vector<std::string>& groups, const std::vector<std::string>& fallback,
               const std::string& fallback_noun) {
  EXPECTS(groups.size() == fallback.size());
  if (std::set<std::string>(groups.begin(), groups.end()).size() > 1) {
    return numbered(groups, "groups");
  }
  if (std::set<std::string>(fallback.begin(), fallback.end()).size() >= kLeastFallback) {
    return numbered(fallback, fallback_noun);
  }
  return {};
}

std::vector<double> held_out_residuals(const FitProblem& problem, const FitResult& fit,
                                       const Folds& folds) {
  if (folds.count == 0) return fit.residual;
  std::vector<double> out(fit.residual.size());
  FitProblem part = problem;
  for (std::size_t i = 0; i < part.parameters.size(); ++i) {
    FitParameter& p = part.parameters[i];
    p.start = std::clamp(fit.value[i], p.low, p.high);
  }
  for (int fold = 0; fold < folds.count; ++fold) {
    for (std::size_t i = 0; i < part.weight.size(); ++i) {
      part.weight[i] = folds.of_row[i] == fold ? 0.0 : problem.weight[i];
    }
    const FitResult without = fit_robustly(part);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (folds.of_row[i] == fold) out[i] = without.residual[i];
    }
  }
  return out;
}

ResidualStats stats_of(const std::vector<double>& residuals, const std::vector<double>& weights) {
  EXPECTS(residuals.size() == weights.size());
  ResidualStats out;
  double total = 0.0;
  std::vector<double> magnitudes(residuals.size());
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    magnitudes[i] = std::abs(residuals[i]);
    if (weights[i] <= 0.0) continue;
    ++out.rows;
    total += weights[i];
    out.bias += weights[i] * residuals[i];
  }
  if (out.rows == 0) return out;
  out.bias /= total;
  out.spread = 0.5 * (weighted_quantile(residuals, weights, 0.84) -
                      weighted_quantile(residuals, weights, 0.16));
  out.median = weighted_median(magnitudes, weights);
  return out;
}

std::vector<GroupResiduals> by_group(const std::vector<std::string>& groups,
                                     const std::vector<double>& residuals,
                                     const std::vector<double>& weights) {
  EXPECTS(groups.size() == residuals.size());
  std::vector<GroupResiduals> out;
  for (const std::string& group : std::set<std::string>(groups.begin(), groups.end())) {
    std::vector<double> of_group(weights);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] != group) of_group[i] = 0.0;
    }
    const ResidualStats stats = stats_of(residuals, of_group);
    if (stats.rows > 0) out.push_back({group, stats});
  }
  return out;
}

bool is_outlier(double residual, double scale) {
  return std::abs(residual) > std::max(0.1, 4.0 * scale);
}

}  // namespace towtank
