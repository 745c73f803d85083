// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a machine that was measured, or one like it: the op formulas with fitted
/// parameters, measured products looked up, collectives with what their fabrics reach.
///
///   product                                    time                                   basis
///   of a measured shape                        as measured                            measured
///   between two of its batch, n and k          formula * exp(r), r linear in log m    interpolated
///   within the range of the rows               formula                                interpolated
///   beyond                                     formula                                extrapolated
///
/// Other ops likewise, without shapes. What no record tells has documented parameters and the basis
/// analytic (chosen_records.h). Op times are of the device alone: what launching costs the host is
/// the framework's (runtime()), fitted on whole steps or, without a record, the documented time of
/// one launch.
///
/// Monotone in work, traffic and payload between measured shapes only: what was measured is not.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/cost/chosen_records.h"
#include "model/cost/cost_model.h"
#include "model/cost/op_formula.h"

namespace towtank {

/// Corrections of measured products by batch, n and k; then by m. One dtype.
class ShapeTable {
 public:
  ShapeTable() = default;
  explicit ShapeTable(const std::vector<ShapeFamily>& families);

  struct Correction {
    double factor = 1.0;  ///< measured over formula
    Basis basis = Basis::kInterpolated;
    bool found = false;
  };
  [[nodiscard]] Correction find(const OpSignature&) const;

 private:
  struct Slot {
    std::int64_t batch = 0, n = 0, k = 0;  ///< n 0: empty
    std::uint32_t first = 0, count = 0;
  };
  struct Knot {
    std::int64_t m;
    double log_m, log_ratio;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(1);  ///< a power of two, at most half full
  std::vector<Knot> knots_;
};

class CalibratedCostModel final : public CostModel {
 public:
  /// Copies what it needs. `calibrations` in the order of choice; `runtime_records` likewise.
  CalibratedCostModel(const DeviceKind& device, NetworkView view,
                      std::span<const Calibration* const> calibrations,
                      std::span<const RuntimeRecord> runtime_records);
  [[nodiscard]] OpCost op(const OpSignature&) const override;
  [[nodiscard]] CollectiveCost collective(const CollectiveCall&) const override;
  [[nodiscard]] RuntimeCosts runtime(Framework) const override;
  [[nodiscard]] std::string description() const override { return description_; }

 private:
  /// What op() needs of a record.
  struct OpPlace {
    Basis best = Basis::kAnalytic;
    Range m, n, k, traffic;
    int table = -1;  ///< of measured products
  };
  [[nodiscard]] Basis basis_of(const OpSignature&, const OpPlace&) const;

  OpFormula formula_;
  std::array<std::array<OpPlace, kDTypeCount>, kOpKindCount + 1> places_;
  std::vector<ShapeTable> tables_;
  NetworkView view_;
  ChosenLinks links_;
  std::array<RuntimeCosts, kFrameworkCount> runtime_;
  std::string description_;
};

}  // namespace towtank
