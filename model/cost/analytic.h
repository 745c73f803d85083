// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a machine that nobody has measured: the op formulas (op_formula.h) with
/// documented parameters (op_parameters.h), collectives with documented ones (collective_cost.h).
///
/// Basis is always kAnalytic. Not modelled beside what the formulas leave out: hosts that run ahead
/// of the device from op to op.
#include <array>
#include <string>

#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "model/cost/op_formula.h"
#include "platforms/platform.h"

namespace towtank {

class AnalyticCostModel final : public CostModel {
 public:
  /// Copies what it needs. Pre: the device's vector peak and memory bandwidth are above zero.
  AnalyticCostModel(const DeviceKind& device, NetworkView view);
  [[nodiscard]] OpCost op(const OpSignature&) const override;
  [[nodiscard]] CollectiveCost collective(const CollectiveCall&) const override;
  /// Fitted constants that are shipped for the framework and the device (runtime_record.h).
  [[nodiscard]] RuntimeCosts runtime(Framework) const override;
  [[nodiscard]] std::string description() const override;

 private:
  OpFormula formula_;
  std::string device_name_;
  NetworkView view_;
  CollectiveParameters collectives_;
  std::array<RuntimeCosts, kFrameworkCount> runtime_;
};

}  // namespace towtank
