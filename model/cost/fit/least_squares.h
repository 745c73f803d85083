// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Fits positive parameters of a formula to measured times: least squares of log residuals with
/// Huber's loss, by Levenberg-Marquardt on the logarithms of the parameters.
///
///     minimise  sum_i w_i rho(r_i / s),   r_i = log(measured_i) - log(predicted_i(x))
///
///   rho   Huber's: quadratic up to 1.345, linear beyond, so that a kernel that fell into another
///         regime does not pull the fit
///   s     1.4826 times the weighted median magnitude of the residuals, renewed until it settles;
///         at least 1 %
///   w_i   how much a row counts; their sum is taken as the number of independent rows
///
/// Standard errors are those of s^2 (J^T W J)^-1 in log space, the Jacobian J by differences. The
/// rows do not tell a parameter whose error is no smaller than kUntold of its value; nor one at a
/// bound, unless going back to its start makes the sum worse by kWorse (two standard deviations).
///
/// Sources: Marquardt 1963; Huber 1964; Holland and Welsch 1977 (1.345: 95 % efficiency).
#include <functional>
#include <span>
#include <vector>

namespace towtank {

struct FitParameter {
  double start = 1.0;
  double low = 1e-12, high = 1e12;  ///< bounds, > 0
  bool fixed = false;
};

struct FitProblem {
  std::vector<FitParameter> parameters;
  std::vector<double> log_measured;
  std::vector<double> weight;  ///< >= 0, as many as rows; 0: predicted, not fitted
  /// Fills log(predicted) of all rows for the values of the parameters.
  std::function<void(std::span<const double> values, std::span<double> log_predicted)> predict;
};

struct FitResult {
  std::vector<double> value;
  std::vector<double> relative_error;  ///< standard error of log(value); 0 if fixed
  std::vector<bool> told;              ///< by the rows; true if fixed
  std::vector<double> residual;        ///< of every row
  double scale = 0.0;                  ///< s
  int iterations = 0;
};

inline constexpr double kWorse = 2.0;
/// Relative standard error from which on a value is not told: 95 % within a factor of about two.
inline constexpr double kUntold = 0.35;

/// Pre: as many weights as rows, every start within its bounds.
[[nodiscard]] FitResult fit_robustly(const FitProblem&);

/// The value that a share of the weight does not exceed; 0 for none. Pre: as many weights as
/// values, none below 0; 0 <= share <= 1.
[[nodiscard]] double weighted_quantile(const std::vector<double>& values,
                                       const std::vector<double>& weights, double share);
[[nodiscard]] double weighted_median(const std::vector<double>& values,
                                     const std::vector<double>& weights);

}  // namespace towtank
