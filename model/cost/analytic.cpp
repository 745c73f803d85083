// SPDX-License-Identifier: Apache-2.0
#include "model/cost/analytic.h"

#include <utility>

namespace towtank {

AnalyticCostModel::AnalyticCostModel(const DeviceKind& device, NetworkView view)
    : formula_(device, documented_op_parameters(device)),
      device_name_(device.name),
      view_(std::move(view)),
      collectives_(documented_collective_parameters(view_)) {}

OpCost AnalyticCostModel::op(const OpSignature& op) const { return formula_(op); }

CollectiveCost AnalyticCostModel::collective(const CollectiveCall& call) const {
  return collective_cost(call, view_, collectives_);
}

std::string AnalyticCostModel::description() const {
  return "analytic: documented efficiencies for " + device_name_ + ", no calibration";
}

}  // namespace towtank
