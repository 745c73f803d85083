// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr double kHuber = 1.345;
constexpr double kLeastScale = 0.01;
constexpr double kStep = 1e-4;     // of a logarithm, for differences
constexpr double kAtBound = 1e-6;  // of a logarithm
constexpr int kMostIterations = 200;
constexpr double kSettled = 1e-7;  // change of the logarithms that ends the fit
constexpr double kMostDamping = 1e12;
constexpr double kUnfelt = 1e-9;  // of a row's share of a parameter, squared and summed

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

/// The free parameters as a vector of logarithms, and back.
class Space {
 public:
  explicit Space(const std::vector<FitParameter>& parameters) : parameters_(&parameters) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].fixed) free_.push_back(i);
    }
  }
  [[nodiscard]] std::size_t size() const { return free_.size(); }
  [[nodiscard]] std::size_t index(std::size_t j) const { return free_[j]; }
  [[nodiscard]] Vector start() const {
    Vector u(static_cast<Eigen::Index>(free_.size()));
    for (std::size_t j = 0; j < free_.size(); ++j)
      at(u, j) = std::log((*parameters_)[free_[j]].start);
    return u;
  }
  [[nodiscard]] std::vector<double> values(const Vector& u) const {
    std::vector<double> out;
    out.reserve(parameters_->size());
    for (const FitParameter& p : *parameters_) out.push_back(p.start);
    for (std::size_t j = 0; j < free_.size(); ++j) out[free_[j]] = std::exp(at(u, j));
    return out;
  }
  [[nodiscard]] Vector within_bounds(Vector u) const {
    for (std::size_t j = 0; j < free_.size(); ++j) {
      const FitParameter& p = (*parameters_)[free_[j]];
      at(u, j) = std::clamp(at(u, j), std::log(p.low), std::log(p.high));
    }
    return u;
  }
  [[nodiscard]] bool at_bound(const Vector& u, std::size_t j) const {
    const FitParameter& p = (*parameters_)[free_[j]];
    return at(u, j) <= std::log(p.low) + kAtBound || at(u, j) >= std::log(p.high) - kAtBound;
  }
  static double& at(Vector& u, std::size_t j) { return u(static_cast<Eigen::Index>(j)); }
  static double at(const Vector& u, std::size_t j) { return u(static_cast<Eigen::Index>(j)); }

 private:
  const std::vector<FitParameter>* parameters_;
  std::vector<std::size_t> free_;
};

class Fit {
 public:
  explicit Fit(const FitProblem& problem)
      : problem_(&problem), space_(problem.parameters), predicted_(problem.log_measured.size()) {}

  FitResult run() {
    Vector u = space_.within_bounds(space_.start());
    Vector r = residuals(u);
    double damping = 1e-3;
    FitResult out;
    for (; out.iterations < kMostIterations && space_.size() > 0; ++out.iterations) {
      scale_ = scale_of(r);
      const Vector next = improved(u, r, damping);
      const double moved = (next - u).cwiseAbs().maxCoeff();
      u = next;
      r = residuals(u);
      if (moved < kSettled) break;
    }
    scale_ = scale_of(r);
    report(u, r, out);
    return out;
  }

 private:
  Vector residuals(const Vector& u) {
    problem_->predict(space_.values(u), predicted_);
    Vector r(static_cast<Eigen::Index>(predicted_.size()));
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      Space::at(r, i) = problem_->log_measured[i] - predicted_[i];
    }
    return r;
  }

  [[nodiscard]] double scale_of(const Vector& r) const {
    std::vector<double> magnitudes(static_cast<std::size_t>(r.size()));
    for (std::size_t i = 0; i < magnitudes.size(); ++i) magnitudes[i] = std::abs(Space::at(r, i));
    return std::max(kLeastScale, 1.4826 * weighted_median(magnitudes, problem_->weight));
  }

  /// Weight of each row in the squares that stand for Huber's loss.
  [[nodiscard]] Vector weights(const Vector& r) const {
    Vector w(r.size());
    for (std::size_t i = 0; i < problem_->weight.size(); ++i) {
      const double beyond = std::abs(Space::at(r, i)) / (kHuber * scale_);
      Space::at(w, i) = problem_->weight[i] / std::max(1.0, beyond);
    }
    return w;
  }

  [[nodiscard]] double loss(const Vector& r) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < problem_->weight.size(); ++i) {
      const double x = std::abs(Space::at(r, i)) / scale_;
      sum += problem_->weight[i] * (x <= kHuber ? 0.5 * x * x : kHuber * (x - 0.5 * kHuber));
    }
    return sum;
  }

  /// d log(predicted) / d log(parameter).
  Matrix jacobian(const Vector& u) {
    Matrix j(static_cast<Eigen::Index>(predicted_.size()), u.size());
    for (Eigen::Index c = 0; c < u.size(); ++c) {
      Vector up = u;
      Vector down = u;
      up(c) += kStep;
      down(c) -= kStep;
      j.col(c) = (residuals(down) - residuals(up)) / (2.0 * kStep);
    }
    return j;
  }

  /// One accepted step, or the same point if no damping helps.
  Vector improved(const Vector& u, const Vector& r, double& damping) {
    const Matrix j = jacobian(u);
    const Vector w = weights(r);
    const Matrix normal = j.transpose() * w.asDiagonal() * j;
    const Vector gradient = j.transpose() * (w.cwiseProduct(r));
    const double before = loss(r);
    for (; damping < kMostDamping; damping *= 4.0) {
      Matrix damped = normal;
      damped.diagonal() += damping * (normal.diagonal().array() + 1e-12).matrix();
      Vector next = space_.within_bounds(u + damped.ldlt().solve(gradient));
      if (loss(residuals(next)) < before) {
        damping = std::max(1e-9, damping / 8.0);
        return next;
      }
    }
    damping = 1e-3;
    return u;
  }

  bool start_is_worse(const Vector& u, const Vector& r, std::size_t i) {
    Vector back = u;
    Space::at(back, i) = Space::at(space_.start(), i);
    return loss(residuals(back)) > loss(r) + kWorse;
  }

  void report(const Vector& u, const Vector& r, FitResult& out) {
    out.value = space_.values(u);
    out.relative_error.assign(out.value.size(), 0.0);
    out.told.assign(out.value.size(), true);
    out.residual.assign(r.data(), r.data() + r.size());
    out.scale = scale_;
    if (space_.size() == 0) return;
    const Matrix j = jacobian(u);
    const Vector error = errors(j.transpose() * weights(r).asDiagonal() * j);
    for (std::size_t i = 0; i < space_.size(); ++i) {
      out.relative_error[space_.index(i)] = Space::at(error, i);
      out.told[space_.index(i)] =
          space_.at_bound(u, i) ? start_is_worse(u, r, i) : Space::at(error, i) < kUntold;
    }
  }

  /// Standard errors from the normal matrix; infinite where no row depends on a parameter.
  [[nodiscard]] Vector errors(const Matrix& normal) const {
    Vector out = Vector::Constant(normal.rows(), HUGE_VAL);
    std::vector<Eigen::Index> felt;
    for (Eigen::Index i = 0; i < normal.rows(); ++i) {
      if (normal(i, i) > kUnfelt) felt.push_back(i);
    }
    const auto n = static_cast<Eigen::Index>(felt.size());
    Matrix scaled(n, n);
    for (Eigen::Index a = 0; a < n; ++a) {
      for (Eigen::Index b = 0; b < n; ++b) {
        const Eigen::Index i = felt[static_cast<std::size_t>(a)];
        const Eigen::Index k = felt[static_cast<std::size_t>(b)];
        scaled(a, b) = normal(i, k) / std::sqrt(normal(i, i) * normal(k, k));
      }
    }
    if (n == 0) return out;
    // Directions that no row feels have eigenvalues of about 0: who lies along them is not told.
    const Eigen::SelfAdjointEigenSolver<Matrix> modes(scaled);
    for (Eigen::Index a = 0; a < n; ++a) {
      double variance = 0.0;
      for (Eigen::Index m = 0; m < n; ++m) {
        const double along = modes.eigenvectors()(a, m);
        variance += along * along / std::max(modes.eigenvalues()(m), kUnfelt);
      }
      const Eigen::Index i = felt[static_cast<std::size_t>(a)];
      out(i) = scale_ * std::sqrt(variance / normal(i, i));
    }
    return out;
  }

  const FitProblem* problem_;
  Space space_;
  std::vector<double> predicted_;
  double scale_ = 1.0;
};

}  // namespace

double weighted_quantile(const std::vector<double>& values, const std::vector<double>& weights,
                         double share) {
  EXPECTS(values.size() == weights.size() && share >= 0.0 && share <= 1.0);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const double wanted = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0.0;
  double last = 0.0;
  for (const std::size_t i : order) {
    if (weights[i] <= 0.0) continue;
    sum += weights[i];
    last = values[i];
    if (sum >= wanted) break;
  }
  return last;
}

double weighted_median(const std::vector<double>& values, const std::vector<double>& weights) {
  return weighted_quantile(values, weights, 0.5);
}

FitResult fit_robustly(const FitProblem& problem) {
  EXPECTS(problem.weight.size() == problem.log_measured.size());
  for (const FitParameter& p : problem.parameters) {
    EXPECTS(p.low > 0.0 && p.start >= p.low && p.start <= p.high);
  }
  return Fit(problem).run();
}

}  // namespace towtank
