// SPDX-License-Identifier: Apache-2.0
#include "model/cost/analytic.h"

#include <utility>

#include "model/cost/runtime_record.h"

namespace towtank {

AnalyticCostModel::AnalyticCostModel(const DeviceKind& device, NetworkView view)
    : formula_(device, documented_op_parameters(device)),
      device_name_(device.name),
      view_(std::move(view)),
      collectives_(documented_collective_parameters(view_)) {
  for (std::size_t f = 0; f < kFrameworkCount; ++f) {
    runtime_[f] = runtime_costs(shipped_runtime_records(), static_cast<Framework>(f), device);
  }
}

OpCost AnalyticCostModel::op(const OpSignature& op) const { return formula_(op); }

CollectiveCost AnalyticCostModel::collective(const CollectiveCall& call) const {
  return collective_cost(call, view_, collectives_);
}

RuntimeCosts AnalyticCostModel::runtime(Framework framework) const {
  return runtime_[static_cast<std::size_t>(framework)];
}

std::string AnalyticCostModel::description() const {
  return "analytic: documented efficiencies for " + device_name_ + ", no calibration";
}

}  // namespace towtank
