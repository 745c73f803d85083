// SPDX-License-Identifier: Apache-2.0
#include "validate/fit_runtime.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr int kConstants = 5;
using Theta = Eigen::Matrix<double, kConstants, 1>;

struct Prior {
  const char* name;
  double mean, width;  ///< of the logarithm
};
// Means are the documented values (op_parameters.h; host costs assumed); widths, assumed, let a
// factor move by a few tens of percent and a gap by an order of magnitude before the prior weighs as
// much as one group of cases.
using Priors = std::array<Prior, kConstants>;
const Priors kDocumented{{{"compute_factor", 0.0, 0.25},
                          {"attention_factor", 0.0, 0.5},
                          {"host_per_kernel", std::log(15e-6), 1.0},
                          {"per_microbatch", std::log(1e-3), 1.5},
                          {"per_step", std::log(10e-3), 1.5}}};
constexpr std::size_t kHostPerKernel = 2;
constexpr double kHuber = 0.15;  // log units; beyond it a row pulls with constant force

/// Launching is the interpreter's work: what the cases of a kindred framework told of it is the
/// best guess for this one, within the spread of host processors (assumed: a factor 1.6 either
/// way).
Priors priors_of(Framework framework, const std::vector<RuntimeFit>& before) {
  constexpr double kKindredWidth = 0.5;
  Priors priors = kDocumented;
  if (framework != Framework::kMegatronDeepSpeed) return priors;
  for (const RuntimeFit& fit : before) {
    const FittedConstant& told = fit.constants[kHostPerKernel];
    if (fit.record.framework != Framework::kMegatron2021 || !told.identified) continue;
    priors[kHostPerKernel].mean = std::log(told.value);
    priors[kHostPerKernel].width = kKindredWidth;
  }
  return priors;
}

RuntimeCosts costs_of(const Theta& theta, const RuntimeCosts& base) {
  RuntimeCosts out = base;
  out.compute_factor = std::exp(theta[0]);
  out.attention_factor = std::exp(theta[1]);
  out.host_per_kernel = {std::exp(theta[2])};
  out.per_microbatch = {std::exp(theta[3])};
  out.per_step = {std::exp(theta[4])};
  return out;
}

/// The costs of another model with other runtime constants.
class WithRuntime final : public CostModel {
 public:
  WithRuntime(std::unique_ptr<CostModel> inner, const RuntimeCosts& runtime)
      : inner_(std::move(inner)), runtime_(runtime) {}
  [[nodiscard]] OpCost op(const OpSignature& s) const override { return inner_->op(s); }
  [[nodiscard]] CollectiveCost collective(const CollectiveCall& c) const override {
    return inner_->collective(c);
  }
  [[nodiscard]] RuntimeCosts runtime(Framework) const override { return runtime_; }
  [[nodiscard]] std::string description() const override { return inner_->description(); }

 private:
  std::unique_ptr<CostModel> inner_;
  RuntimeCosts runtime_;
};

struct Row {
  const Case* item = nullptr;
  std::string fold;
  double log_measured = 0;
  double weight = 1;
};

/// Log residuals of rows under a theta.
class Residuals {
 public:
  Residuals(const CostModelMaker& costs, const Priors& priors)
      : priors_(priors),
        predictor_([this, &costs](const Platform& platform, const DeviceKind& device,
                                  const NetworkView& view) {
          return std::make_unique<WithRuntime>(costs(platform, device, view), runtime_);
        }) {}
  Residuals(const Residuals&) = delete;
  Residuals& operator=(const Residuals&) = delete;
  ~Residuals() = default;

  [[nodiscard]] const Priors& priors() const { return priors_; }
  [[nodiscard]] Eigen::VectorXd operator()(std::span<const Row> rows, const Theta& theta) {
    runtime_ = costs_of(theta, RuntimeCosts{});
    Eigen::VectorXd out(static_cast<Eigen::Index>(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Seconds predicted = predictor_.predict(*rows[i].item).step_time;
      out[static_cast<Eigen::Index>(i)] = rows[i].log_measured - std::log(predicted.value);
    }
    return out;
  }

 private:
  Priors priors_;
  RuntimeCosts runtime_;
  CasePredictor predictor_;
};

double huber_weight(double r) { return std::abs(r) <= kHuber ? 1.0 : kHuber / std::abs(r); }

double objective(const Priors& priors, std::span<const Row> rows, const Eigen::VectorXd& r,
                 const Theta& theta) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double a = std::abs(r[static_cast<Eigen::Index>(i)]);
    sum += rows[i].weight * (a <= kHuber ? 0.5 * a * a : kHuber * (a - 0.5 * kHuber));
  }
  // A residual of kHuber is taken as one standard deviation of a group, to weigh it with the prior.
  for (int j = 0; j < kConstants; ++j) {
    const Prior& prior = priors[static_cast<std::size_t>(j)];
    const double d = (theta[j] - prior.mean) / prior.width;
    sum += 0.5 * kHuber * kHuber * d * d;
  }
  return sum;
}

struct Normal {
  Eigen::Matrix<double, kConstants, kConstants> matrix;
  Theta gradient;
};

Normal normal_equations(Residuals& residuals, std::span<const Row> rows, const Theta& theta,
                        const Eigen::VectorXd& r) {
  constexpr double kStep = 1e-3;
  Eigen::MatrixXd jacobian(r.size(), kConstants);
  for (int j = 0; j < kConstants; ++j) {
    Theta moved = theta;
    moved[j] += kStep;
    jacobian.col(j) = (residuals(rows, moved) - r) / kStep;
  }
  Eigen::VectorXd w(r.size());
  for (Eigen::Index i = 0; i < r.size(); ++i) {
    w[i] = rows[static_cast<std::size_t>(i)].weight * huber_weight(r[i]);
  }
  Normal out;
  out.matrix = jacobian.transpose() * w.asDiagonal() * jacobian;
  out.gradient = -jacobian.transpose() * (w.array() * r.array()).matrix();
  for (int j = 0; j < kConstants; ++j) {
    const Prior& prior = residuals.priors()[static_cast<std::size_t>(j)];
    const double precision = kHuber * kHuber / (prior.width * prior.width);
    out.matrix(j, j) += precision;
    out.gradient[j] -= precision * (theta[j] - prior.mean);
  }
  return out;
}

struct Solution {
  Theta theta;
  Normal normal;
};

Solution solve(Residuals& residuals, std::span<const Row> rows, Theta theta, int iterations) {
  Eigen::VectorXd r = residuals(rows, theta);
  double best = objective(residuals.priors(), rows, r, theta);
  double damping = 1e-2;
  Normal normal = normal_equations(residuals, rows, theta, r);
  for (int i = 0; i < iterations; ++i) {
    Eigen::Matrix<double, kConstants, kConstants> damped = normal.matrix;
    damped.diagonal() *= 1.0 + damping;
    const Theta step = damped.ldlt().solve(normal.gradient).cwiseMax(-1.0).cwiseMin(1.0);
    const Theta moved = theta + step;
    const Eigen::VectorXd after = residuals(rows, moved);
    const double value = objective(residuals.priors(), rows, after, moved);
    if (value < best) {
      const bool converged = best - value < 1e-6 * best;
      theta = moved;
      r = after;
      best = value;
      damping = std::max(1e-6, damping / 5);
      normal = normal_equations(residuals, rows, theta, r);
      if (converged) break;
    } else {
      damping *= 8;
      if (damping > 1e6) break;
    }
  }
  return {theta, normal};
}

Theta prior_mean(const Priors& priors) {
  Theta theta;
  for (int j = 0; j < kConstants; ++j) theta[j] = priors[static_cast<std::size_t>(j)].mean;
  return theta;
}

/// A host cost below every layer's own time has no derivative: start from a high one as well.
Solution solve_from_both(Residuals& residuals, std::span<const Row> rows, int iterations) {
  const Solution low = solve(residuals, rows, prior_mean(residuals.priors()), iterations);
  Theta start = prior_mean(residuals.priors());
  start[static_cast<Eigen::Index>(kHostPerKernel)] += residuals.priors()[kHostPerKernel].width;
  const Solution high = solve(residuals, rows, start, iterations);
  const auto value = [&](const Solution& s) {
    return objective(residuals.priors(), rows, residuals(rows, s.theta), s.theta);
  };
  return value(high) < value(low) ? high : low;
}

void set_weights(std::vector<Row>& rows) {
  std::map<std::string, int> size;
  for (const Row& row : rows) ++size[row.fold];
  for (Row& row : rows) row.weight = 1.0 / size[row.fold];
}

/// Weighted quantile of log ratios, each fold weighing the same.
double quantile(std::vector<std::pair<double, double>> weighted, double q) {
  std::sort(weighted.begin(), weighted.end());
  double total = 0;
  for (const auto& [value, weight] : weighted) total += weight;
  double sum = 0;
  for (const auto& [value, weight] : weighted) {
    sum += weight;
    if (sum >= q * total) return value;
  }
  return weighted.back().first;
}

/// Intervals and evidence from out-of-fold errors. With g folds the spread of the next fold is
/// sqrt(1 + 1/g) times theirs.
void set_spread(RuntimeFit& fit, const std::vector<Row>& rows) {
  std::map<std::string, double> weight;
  std::set<std::string> folds;
  for (const Row& row : rows) {
    weight[row.item->id] = row.weight;
    folds.insert(row.fold);
  }
  std::vector<std::pair<double, double>> errors;
  double mean = 0, total = 0;
  for (const FoldError& e : fit.errors) {
    errors.emplace_back(e.log_ratio, weight[e.case_id]);
    mean += weight[e.case_id] * e.log_ratio;
    total += weight[e.case_id];
  }
  mean /= total;
  double variance = 0;
  for (const auto& [value, w] : errors) variance += w * (value - mean) * (value - mean) / total;
  const double widen = std::sqrt(1.0 + 1.0 / static_cast<double>(folds.size()));
  const double median = quantile(errors, 0.5);
  const auto at = [&](double q) {
    return std::exp(median + widen * (quantile(errors, q) - median));
  };
  RuntimeCosts& costs = fit.record.costs;
  costs.low50 = at(0.25);
  costs.high50 = at(0.75);
  costs.low90 = at(0.05);
  costs.high90 = at(0.95);
  RuntimeRecord& record = fit.record;
  record.rows = static_cast<int>(rows.size());
  record.folds = static_cast<int>(folds.size());
  record.bias = mean;
  record.spread = std::sqrt(variance);
  std::set<std::string> sets;
  for (const Row& row : rows) sets.insert(row.item->set());
  record.sets.assign(sets.begin(), sets.end());
}

RuntimeFit fit_rows(std::vector<Row> rows, Framework framework, const std::string& generation,
                    const CostModelMaker& costs, const Priors& priors) {
  constexpr int kIterations = 25, kFoldIterations = 12;
  set_weights(rows);
  Residuals residuals(costs, priors);
  RuntimeFit fit;
  fit.record.framework = framework;
  fit.record.generation = generation;
  const Solution all = solve_from_both(residuals, rows, kIterations);
  fit.record.costs = costs_of(all.theta, RuntimeCosts{});
  fit.record.costs.basis = Basis::kInterpolated;
  const auto covariance = all.normal.matrix.inverse();
  for (int j = 0; j < kConstants; ++j) {
    const Prior& prior = residuals.priors()[static_cast<std::size_t>(j)];
    const double error = kHuber * std::sqrt(covariance(j, j));
    fit.constants.push_back({prior.name, std::exp(all.theta[j]), error, error < 0.5 * prior.width});
    if (fit.constants.back().identified) fit.record.identified.emplace_back(prior.name);
  }
  std::set<std::string> folds;
  for (const Row& row : rows) folds.insert(row.fold);
  for (const std::string& fold : folds) {
    std::vector<Row> seen, left;
    for (const Row& row : rows) (row.fold == fold ? left : seen).push_back(row);
    const Theta theta = seen.empty() ? prior_mean(residuals.priors())
                                     : solve_from_both(residuals, seen, kFoldIterations).theta;
    const Eigen::VectorXd r = residuals(left, theta);
    for (std::size_t i = 0; i < left.size(); ++i) {
      fit.errors.push_back({left[i].item->id, fold, r[static_cast<Eigen::Index>(i)]});
    }
  }
  set_spread(fit, rows);
  return fit;
}

}  // namespace

std::vector<RuntimeFit> fit_runtime(std::span<const Case> cases, const CostModelMaker& costs) {
  std::map<std::pair<Framework, std::string>, std::vector<Row>> by_record;
  Faults faults;
  std::string generation;
  CasePredictor predictor(
      [&](const Platform& platform, const DeviceKind& device, const NetworkView& view) {
        generation = device.generation;
        return costs(platform, device, view);
      });
  for (const Case& item : cases) {
    if (!item.measured.step_time || !item.tokens.stages.empty()) continue;
    if (never_fitted(item)) {
      faults.add({item.where, "case " + item.id + " must stay unseen",
                  "its set is kept for validation", "Leave its set out of the fit."});
      continue;
    }
    const Framework framework = predictor.predict(item).plan.framework;
    by_record[{framework, generation}].push_back(
        {&item, fold_of(item), std::log(item.measured.step_time->value), 1.0});
  }
  faults.throw_if_any();
  std::vector<RuntimeFit> out;
  for (auto& [key, rows] : by_record) {
    out.push_back(
        fit_rows(std::move(rows), key.first, key.second, costs, priors_of(key.first, out)));
  }
  return out;
}

}  // namespace towtank
