// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which records of which calibrations serve a device and a network, and how sure that is.
///
///   order                                             basis of what follows from it
///   a record of the device kind, calibration by       interpolated within the range of its rows,
///   calibration in the order given                    extrapolated beyond
///   a record of a kind with the same rates            the same
///   a record of another kind of the generation, the   extrapolated, interval doubled
///   nearest in peak (products) or bandwidth, then
///   the one with most rows
///   none                                              analytic: documented parameters
///
///   fabric                                           basis
///   same kind, level, topology and devices a node    interpolated, extrapolated beyond its payloads
///   same kind and level, else different              extrapolated: the share of its largest group
///   none                                             analytic
///
/// Gathers, scatters and broadcasts without a record of their own take that of all-reduces; their
/// basis is extrapolated. So is that of optimizers, which take element-wise ops'.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "platforms/allocate.h"

namespace towtank {

/// Where the parameters of one kind of op stand.
struct OpBasis {
  Basis best = Basis::kAnalytic;     ///< within the ranges
  const OpRecord* record = nullptr;  ///< nullptr: documented
};

/// What holds for a device.
struct ChosenOps {
  OpParameters parameters;  ///< host is 0: what launches cost is the framework's
  /// By kind (unfused attention apart, last) and dtype.
  std::array<std::array<OpBasis, kDTypeCount>, kOpKindCount + 1> basis;
  std::vector<std::string> notes;  ///< "norm, fp16: from a100-sxm-40g, interval doubled"
};
[[nodiscard]] std::size_t basis_row(OpKind kind, bool fused);

/// `calibrations` in the order in which they are to be asked; they must live on.
[[nodiscard]] ChosenOps choose_ops(const DeviceKind& device,
                                   std::span<const Calibration* const> calibrations);

/// What holds for a network.
struct ChosenLinks {
  CollectiveParameters parameters;
  struct LinkBasis {
    Basis best = Basis::kAnalytic;
    Range payload;  ///< of the rows
  };
  std::array<std::array<LinkBasis, kCollectiveCount>, CollectiveParameters::kMostLevels> basis;
  std::vector<std::string> notes;
};
[[nodiscard]] ChosenLinks choose_links(const NetworkView& view,
                                       std::span<const Calibration* const> calibrations);

}  // namespace towtank
