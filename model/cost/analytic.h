// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a machine that nobody has measured: rooflines with documented efficiencies.
///
///     t_op = kernels * launch + max(work / (peak * e_c), traffic / (bandwidth * e_m))
///     e_c (matmul) = e_max * m/(m + m_half) * n/(n + n_half) * k/(k + k_half) * tile waste
///
///   peak        dense matrix peak of the dtype (vector peak for ops outside the matrix units)
///   e_max       0.62 .. 0.80 by generation: best shape reached over datasheet peak
///   m_half ...  saturation: rows at which half the rate is reached
///   e_m         fraction of memory bandwidth that streaming kernels reach
///
/// Basis is always kAnalytic. Sources of the constants stand in analytic.cpp.
#include <memory>

#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "platforms/platform.h"

namespace towtank {

class AnalyticCostModel final : public CostModel {
 public:
  /// Copies what it needs.
  AnalyticCostModel(const DeviceKind& device, NetworkView view);
  [[nodiscard]] OpCost op(const OpSignature&) const override;
  [[nodiscard]] CollectiveCost collective(const CollectiveCall&) const override;
  [[nodiscard]] std::string description() const override;

 private:
  DeviceKind device_;
  NetworkView view_;
  CollectiveParameters collectives_;
};

}  // namespace towtank
