// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a machine that nobody has measured: rooflines with documented efficiencies.
///
///     time    = launch + max(compute, memory)
///     launch  = max(kernels * gap, kernels * host - max(compute, memory))
///     memory  = (traffic + ramp) / (bandwidth * e_m)
///
///   gap, host   what a launch costs the device, and the host: a device that outruns its host waits
///   ramp        bytes in flight before the memory is busy: small ops reach less of the bandwidth
///   e_m         fraction of memory bandwidth that kernels of this kind reach
///
///   op                            compute
///   product, convolution          work' / (peak * e_max);  work' counts whole tiles and waves:
///                                   2 T^2 (tiles + idle * P) (k + k_half)
///   attention, fused              work / (peak * e_flash) * (1 + n_half/n) (1 + k_half/k)
///   attention, unfused            work / (peak * e_max), then (not beside it) the memory traffic
///   of
///                                   scores; memory includes it
///   others                        work / (vector peak * e_max)
///
///   tiles       batch * ceil(m/T) * ceil(n/T), T = 128: the device works on whole tiles
///   P           multiprocessors; the last wave of tiles leaves `idle` of them without work
///   k_half      depth of a product that costs as much as starting and storing a tile
///   e_max       best shape reached over datasheet peak, by generation
///
/// An 8-bit float gains what was measured in training, not its peak. A dtype that the device has no
/// units for runs on the next wider one. Basis is always kAnalytic. Sources of all constants stand
/// in analytic.cpp. Monotone in m, n, k, work and traffic; never faster than work / peak or
/// traffic / bandwidth; a faster device is never slower. Not modelled: alignment of shapes, clocks
/// that fall under power limits, caches that hold an op's whole operands.
#include <array>
#include <memory>
#include <string>

#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "platforms/platform.h"

namespace towtank {

class AnalyticCostModel final : public CostModel {
 public:
  /// Copies what it needs. Pre: the device has a vector peak and memory bandwidth above zero.
  AnalyticCostModel(const DeviceKind& device, NetworkView view);
  [[nodiscard]] OpCost op(const OpSignature&) const override;
  [[nodiscard]] CollectiveCost collective(const CollectiveCall&) const override;
  [[nodiscard]] std::string description() const override;

 private:
  /// Body of an op: before launches.
  struct Body {
    double compute, memory;
  };
  [[nodiscard]] Body product(const OpSignature&) const;
  [[nodiscard]] Body attention(const OpSignature&) const;
  [[nodiscard]] Body streaming(const OpSignature&) const;
  [[nodiscard]] double memory_time(OpKind kind, double traffic) const;

  std::array<double, kDTypeCount> product_seconds_{};  ///< a FLOP of a product at its best shape
  std::array<double, kDTypeCount> flash_forward_seconds_{};  ///< of fused attention at its best
  std::array<double, kDTypeCount> flash_backward_seconds_{};
  std::array<double, kOpKindCount> byte_seconds_{};  ///< a byte of traffic
  double vector_seconds_ = 0;                        ///< a FLOP outside the matrix units
  double ramp_bytes_ = 0;
  double idle_tiles_ = 0;
  std::string device_name_;
  NetworkView view_;
  CollectiveParameters collectives_;
};

}  // namespace towtank
