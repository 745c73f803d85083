// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The constants of a framework on one generation of devices, fitted on whole training steps.
///
///   minimise  sum_i w_i rho(log measured_i - log predicted_i(theta))
///             + kHuber^2 / 2 sum_j ((theta_j - mu_j) / s_j)^2
///
///   theta     log of compute_factor, attention_factor, host_per_kernel, per_microbatch, per_step
///   w_i       1 / cases of i's group: a long sweep counts as one group
///   rho       Huber, linear beyond kHuber
///   mu, s     weak prior: a constant that the cases cannot tell keeps its documented value;
///             Megatron-DeepSpeed's host_per_kernel that of Megatron-LM of 2021, whose code it runs
///
/// Levenberg-Marquardt on numeric derivatives. Every reported error is out of fold: each group
/// (set, model shape, sequence length) is predicted by a fit that never saw it, and the intervals
/// come from those errors. Sets that must stay unseen are refused (never_fitted).
/// Not modelled: constants of one case; interference (fixed).
#include <span>
#include <string>
#include <vector>

#include "model/cost/runtime_record.h"
#include "validate/predict_case.h"

namespace towtank {

/// "framework-set/model shape/sequence": what is left out together.
[[nodiscard]] std::string fold_of(const Case&);
/// Sets that no fit may use: verdict, mlperf-*, megatron-sc21, korthikanti.
[[nodiscard]] bool never_fitted(const Case&);

struct FittedConstant {
  std::string name;
  double value = 0;         ///< in the unit of RuntimeCosts
  double log_error = 0;     ///< standard error of its logarithm
  bool identified = false;  ///< the cases narrow the prior to less than half its width
};

/// One case under the fit that did not see its fold.
struct FoldError {
  std::string case_id, fold;
  double log_ratio = 0;  ///< log(measured / predicted)
};

struct RuntimeFit {
  RuntimeRecord record;
  std::vector<FittedConstant> constants;
  std::vector<FoldError> errors;
};

/// One fit per (framework row, device generation) that the cases contain, in that order.
/// Cases without a step time are left out, and those on devices of several kinds. Throws InputError
/// if a case is never_fitted.
[[nodiscard]] std::vector<RuntimeFit> fit_runtime(std::span<const Case> cases,
                                                  const CostModelMaker& costs);

/// Runtime and memory constants as one calibration: of every record with two folds or more and a
/// constant that its cases identify.
[[nodiscard]] RuntimeCalibration fit_calibration(std::span<const Case> cases,
                                                 const CostModelMaker& costs);

}  // namespace towtank
