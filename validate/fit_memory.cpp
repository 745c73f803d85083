// SPDX-License-Identifier: Apache-2.0
#include "validate/fit_memory.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace towtank {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
// Assumed: what measurements of one run differ by, and how far the documented values may be off.
constexpr double kHuber = 0.05;  // relative error beyond which a row pulls with constant force
constexpr double kFactorWidth = 0.15;  // prior widths
constexpr double kContextWidth = 3.0;  // GiB

struct Row {
  std::string id, fold;
  double allocated = 0, measured = 0;  ///< GiB
  bool with_context = false;
  double weight = 1;
};

struct Constants {
  double factor = 1, context = 0;  ///< context in GiB
};

double predicted(const Row& row, const Constants& c) {
  return c.factor * row.allocated + (row.with_context ? c.context : 0.0);
}

/// Iteratively reweighted least squares of relative errors; linear in both constants.
Constants solve(const std::vector<Row>& rows, const Constants& prior) {
  Constants c = prior;
  for (int i = 0; i < 50; ++i) {
    Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
    Eigen::Vector2d right = Eigen::Vector2d::Zero();
    const auto add = [&](const Eigen::Vector2d& row, double value, double weight) {
      normal += weight * row * row.transpose();
      right += weight * value * row;
    };
    for (const Row& row : rows) {
      const double error = std::abs(predicted(row, c) / row.measured - 1);
      const double huber = error <= kHuber ? 1.0 : kHuber / error;
      add({row.allocated / row.measured, row.with_context ? 1.0 / row.measured : 0.0}, 1.0,
          row.weight * huber / (kHuber * kHuber));
    }
    add({1, 0}, prior.factor, 1.0 / (kFactorWidth * kFactorWidth));
    add({0, 1}, prior.context, 1.0 / (kContextWidth * kContextWidth));
    const Eigen::Vector2d solution = normal.ldlt().solve(right);
    c = {std::max(1.0, solution[0]), std::max(0.0, solution[1])};
  }
  return c;
}

void set_weights(std::vector<Row>& rows) {
  std::map<std::string, int> size;
  for (const Row& row : rows) ++size[row.fold];
  for (Row& row : rows) row.weight = 1.0 / size[row.fold];
}

MemoryFit fit_rows(std::vector<Row> rows, Framework framework, const std::string& generation) {
  const FrameworkRules& rules = rules_of(framework);
  const Constants prior{rules.reserved_factor.value,
                        static_cast<double>(rules.context_bytes.value.value) / kGiB};
  set_weights(rows);
  const Constants all = solve(rows, prior);
  MemoryFit fit;
  fit.framework = framework;
  fit.generation = generation;
  fit.reserved_factor = all.factor;
  fit.rows = static_cast<int>(rows.size());
  std::set<std::string> folds;
  for (const Row& row : rows) {
    folds.insert(row.fold);
    if (row.with_context) fit.context = bytes_from(all.context * kGiB);
  }
  for (const std::string& fold : folds) {
    std::vector<Row> seen;
    for (const Row& row : rows) {
      if (row.fold != fold) seen.push_back(row);
    }
    const Constants c = seen.empty() ? prior : solve(seen, prior);
    for (const Row& row : rows) {
      if (row.fold == fold) {
        fit.errors.push_back({row.id, fold, std::log(row.measured / predicted(row, c))});
      }
    }
  }
  return fit;
}

}  // namespace

std::vector<MemoryFit> fit_memory(std::span<const Case> cases, const CostModelMaker& costs) {
  std::map<std::pair<Framework, std::string>, std::vector<Row>> by_record;
  Faults faults;
  std::string generation;
  CasePredictor predictor(
      [&](const Platform& platform, const DeviceKind& device, const NetworkView& view) {
        generation = device.generation;
        return costs(platform, device, view);
      });
  for (const Case& item : cases) {
    if (!item.measured.peak_memory || item.measured.outcome != CaseOutcome::kRan) continue;
    if (never_fitted(item)) {
      faults.add({item.where, "case " + item.id + " must stay unseen",
                  "its set is kept for validation", "Leave its set out of the fit."});
      continue;
    }
    const CasePrediction p = predictor.predict(item);
    if (p.memory_kind == MemoryKind::kAllocated) continue;
    const MemoryBreakdown& peak = p.whole.peak_memory();
    by_record[{p.plan.framework, generation}].push_back(
        {item.id, fold_of(item), static_cast<double>(peak.allocated().value) / kGiB,
         static_cast<double>(item.measured.peak_memory->value) / kGiB,
         p.memory_kind == MemoryKind::kDeviceTotal, 1.0});
  }
  faults.throw_if_any();
  std::vector<MemoryFit> out;
  for (auto& [key, rows] : by_record)
    out.push_back(fit_rows(std::move(rows), key.first, key.second));
  return out;
}

}  // namespace towtank
