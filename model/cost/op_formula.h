// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long one op takes on a device, by closed formulas: the same for documented parameters
/// (analytic.h) and fitted ones (calibrated.h).
///
///     time    = max(kernels * gap + body, kernels * host),  launch = time - body
///     body    = max(compute, memory);                       unfused attention: see below
///     memory  = (traffic + bandwidth * ramp) / (bandwidth * share)
///
///   gap, host   what one launch costs the device, and its host: a device that outruns the host
///               waits for it
///   ramp        time at full bandwidth before the first loads arrive: small ops reach less
///
///   op                     compute
///   product, convolution   2 T^2 (tiles + idle P) (k + k_half) / (peak * share), at least
///                          work / (peak * share); times 1 + misaligned (1 - log2(a) / log2(A))
///   attention, fused       work / (peak * share) * (1 + n_half / n) (1 + k_half' / k)
///   attention, unfused     its products one after the other (2 forward, 4 backward), each
///                          max(compute, memory); its memory is the softmax (of a causal one the
///                          kept half is read), then what else op.traffic holds (masks, copies) as
///                          an element-wise op; body = compute + memory
///   others                 work / (vector peak * share)
///
///   tiles       batch * ceil(m/T) * ceil(n/T), T = 128: a device works on whole tiles
///   P, idle     multiprocessors; the share of them that the last wave of tiles leaves without work
///   a, A        largest power of two that divides n and k (n alone in a weight gradient), at most
///               A = 32 bytes of elements
///   k_half      depth of a product that takes as long as starting and storing a tile
///   n_half      keys at which fused attention reaches half of its share
///   k_half'     the same of head width
///
/// Monotone in m, in n and k of equal alignment, in work and traffic; never faster than work / peak
/// or traffic / bandwidth; a device that is faster in any rate is never slower. Not modelled:
/// clocks that fall under power limits, operands that stay in a cache.
#include <array>
#include <cstdint>

#include "model/cost/cost_model.h"
#include "model/cost/op_parameters.h"
#include "platforms/platform.h"

namespace towtank {

class OpFormula {
 public:
  /// Copies what it needs. Pre: the device's vector peak and memory bandwidth are above zero.
  OpFormula(const DeviceKind& device, const OpParameters& parameters);
  /// Zero work and zero traffic cost nothing. The basis is kAnalytic; callers that know better say
  /// so.
  [[nodiscard]] OpCost operator()(const OpSignature&) const;

 private:
  struct Product {
    double flop = 0.0;  ///< seconds a FLOP of a large product; all others in seconds, too
    double depth_half = 0.0, idle_tiles = 0.0;
    double byte = 0.0, ramp = 0.0, gap = 0.0;
    double misaligned = 0.0;    ///< per halving of the alignment
    std::int64_t aligned = 16;  ///< elements of 32 bytes
  };
  struct Stream {
    double byte_forward = 0.0, byte_backward = 0.0, ramp_bytes = 0.0, gap = 0.0;
    [[nodiscard]] double byte(Pass pass) const {
      return pass == Pass::kForward ? byte_forward : byte_backward;
    }
  };
  struct FusedAttention {
    double flop_forward = 0.0, flop_backward = 0.0;
    double half = 0.0, causal_half = 0.0, backward_keys = 1.0, width_half = 0.0, gap = 0.0;
  };
  struct Extents {
    std::int64_t batch, m, n, k;
  };
  [[nodiscard]] static double product_compute(const Extents&, double work, const Product&);
  [[nodiscard]] static double misalignment(std::int64_t n, std::int64_t k, const Product&);
  [[nodiscard]] double fused_compute(const OpSignature&) const;
  [[nodiscard]] OpCost product(const OpSignature&) const;
  [[nodiscard]] OpCost unfused_attention(const OpSignature&) const;
  [[nodiscard]] OpCost priced(const OpSignature&, double compute, double memory, double body,
                              double gap) const;

  std::array<Product, kDTypeCount> product_{};
  std::array<FusedAttention, kDTypeCount> fused_{};
  std::array<std::array<Stream, kElementWidthCount>, kOpKindCount> stream_{};
  double convolution_ = 1.0;
  double vector_flop_ = 0.0;
  double host_ = 0.0;
};

}  // namespace towtank
