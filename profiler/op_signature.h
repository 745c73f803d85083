// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The key of a measurement: one operator with its local shapes, as one device runs it.
///
///   kind          batch          m             n             k            work
///   kMatmul       products       rows          columns       inner        2 * batch * m * n * k
///   kAttention    samples*heads  query length  key length    head width   see attention()
///   the others    1              0             0             0            given
///
/// `traffic` is the least number of bytes that must move between device memory and the chip: each
/// operand read once, each result written once. Roofline models use work and traffic; tables
/// use the shapes.
#include <array>
#include <cstdint>
#include <string_view>

#include "core/units.h"
#include "platforms/dtype.h"

namespace towtank {

enum class OpKind {
  kMatmul,
  kAttention,  ///< the core: scores, softmax, weighted sum; projections are kMatmul
  kNorm,
  kElementwise,  ///< activation functions, residual additions, dropout, rotary embedding, casts
  kEmbedding,
  kCrossEntropy,
  kRouting,  ///< permute and unpermute of tokens for experts
  kConvolution,
  kOptimizer,
};
inline constexpr std::size_t kOpKindCount = 9;
inline constexpr std::array<std::string_view, kOpKindCount> kOpKindNames{
    "matmul",        "attention", "norm",        "elementwise", "embedding",
    "cross_entropy", "routing",   "convolution", "optimizer"};
[[nodiscard]] constexpr std::string_view to_text(OpKind k) {
  return kOpKindNames[static_cast<std::size_t>(k)];
}

/// Which pass of training runs the op; the shapes are those of the pass itself.
enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad };

struct OpSignature {
  OpKind kind = OpKind::kMatmul;
  Pass pass = Pass::kForward;
  DType dtype = DType::kBf16;
  bool causal = false;  ///< attention only: half of the scores are needed
  bool fused = true;    ///< attention only: one kernel that keeps scores on chip (flash)
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Flop work;  ///< what runs; 0 for pure data movement
  Bytes traffic;
  int kernels = 1;  ///< launches it takes; each costs the host and the device something
};

/// batch products of (m x k)(k x n).
[[nodiscard]] OpSignature matmul(DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n,
                                 std::int64_t k);
/// Passes over the scores that the softmax of an unfused core makes beside its products, of a
/// signature with dtype, pass and mask:
///
///   two bytes and less   one kernel: reads and writes; backward reads two tensors and writes one.
///                        Under a causal mask it reads only the half that is kept
///   wider                three kernels (scale, mask, softmax): 6 and 10 passes
///
/// Source: Megatron-LM fused_softmax.py, whose kernels are for fp16 and bf16 only,
/// scaled_upper_triang_masked_softmax.h; the 10 are assumed.
[[nodiscard]] double softmax_passes(const OpSignature&);
/// An op bound by memory traffic.
[[nodiscard]] OpSignature memory_op(OpKind kind, DType dtype, Bytes traffic, Flop work = {},
                                    int kernels = 1);

}  // namespace towtank
