// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A cost model whose times a reader adds in the head: every op at one rate, every collective at
/// one bandwidth, nothing for launches and latency.
///
///     op          work / rate;                     1 TFLOP = 1 s
///     memory op   (no work) traffic / bandwidth;   1 GB = 1 s
///     collective  payload / bandwidth;             1 GB = 1 s, whatever the group and the
///     algorithm
#include <string>

#include "model/cost/cost_model.h"

namespace towtank {

struct ConstantRates {
  FlopPerSecond work{1e12};
  BytesPerSecond memory{1e9};
  BytesPerSecond collective{1e9};
};

class ConstantCosts final : public CostModel {
 public:
  ConstantCosts() = default;
  explicit ConstantCosts(const ConstantRates& rates) : rates_(rates) {}

  [[nodiscard]] OpCost op(const OpSignature& op) const override {
    OpCost out;
    if (op.work.value > 0.0) {
      out.time = out.compute = op.work / rates_.work;
    } else {
      out.time = out.memory = op.traffic / rates_.memory;
    }
    return out;
  }
  [[nodiscard]] CollectiveCost collective(const CollectiveCall& call) const override {
    CollectiveCost out;
    if (call.group.size > 1) out.transfer = call.payload / rates_.collective;
    return out;
  }
  [[nodiscard]] std::string description() const override { return "constant rates, for tests"; }

 private:
  ConstantRates rates_;
};

}  // namespace towtank
