// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a machine that nobody has measured: rooflines with documented efficiencies.
///
///     time    = max(kernels * gap + body, kernels * host),  launch = time - body
///     body    = max(compute, memory);                       unfused attention: compute + memory
///     memory  = (traffic + ramp) / (bandwidth * e_m)
///
///   gap, host   what one launch costs the device, and its host: a device that outruns the host
///               waits for it
///   ramp        bytes that are in flight before the memory is busy: small ops reach less
///   e_m         fraction of the bandwidth that kernels of this kind reach
///
///   op                     compute
///   product, convolution   2 T^2 (tiles + idle P) (k + k_half) / (peak * e_max), at least
///                          work / (peak * e_max)
///   attention, fused       work / (peak * e_flash) * (1 + n_half / n) (1 + k_half' / k)
///   attention, unfused     work / (peak * e_max); the traffic of its scores is in op.traffic
///   others                 work / (vector peak * e_v)
///
///   tiles       batch * ceil(m/T) * ceil(n/T), T = 128: a device works on whole tiles
///   P, idle     multiprocessors; the share of them that the last wave of tiles leaves without work
///   k_half      depth of a product that takes as long as starting and storing a tile
///   e_max       what large products reach of the datasheet peak, by generation (efficiencies.h)
///   e_flash     what fused attention reaches of it, by generation and pass
///   n_half      keys at which fused attention reaches half of that; k_half' the same of head width
///   e_v         what chains of vector instructions reach
///
/// Eight- and four-bit floats gain what was measured in training, not their peak. A dtype that the
/// device has no units for runs on the next wider ones it has (bf16 on a V100: fp16).
///
/// Basis is always kAnalytic. Monotone in m, n, k, work and traffic; never faster than work / peak
/// or traffic / bandwidth; a device that is faster in any rate is never slower. Sources of the
/// constants stand in analytic.cpp. Not modelled: alignment of shapes, clocks that fall under power
/// limits, operands that stay in a cache, hosts that run ahead of the device from op to op.
#include <array>
#include <string>

#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "platforms/platform.h"

namespace towtank {

class AnalyticCostModel final : public CostModel {
 public:
  /// Copies what it needs. Pre: the device's vector peak and memory bandwidth are above zero.
  AnalyticCostModel(const DeviceKind& device, NetworkView view);
  [[nodiscard]] OpCost op(const OpSignature&) const override;
  [[nodiscard]] CollectiveCost collective(const CollectiveCall&) const override;
  [[nodiscard]] std::string description() const override;

 private:
  [[nodiscard]] double product(const OpSignature&) const;
  [[nodiscard]] double fused_attention(const OpSignature&) const;

  // All in seconds: an op is a few products and sums.
  std::array<double, kDTypeCount> product_flop_{};        ///< a FLOP of a product's best shape
  std::array<double, kDTypeCount> flash_forward_flop_{};  ///< of fused attention
  std::array<double, kDTypeCount> flash_backward_flop_{};
  std::array<double, kOpKindCount> byte_{};  ///< a byte of traffic
  double vector_flop_ = 0.0;
  double ramp_bytes_ = 0.0;
  double idle_tiles_ = 0.0;
  std::string device_name_;
  NetworkView view_;
  CollectiveParameters collectives_;
};

}  // namespace towtank
