// SPDX-License-Identifier: Apache-2.0
#include "model/cost/op_parameters.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/contracts.h"
#include "model/cost/efficiencies.h"

namespace towtank {
namespace {

// On 23,000 products of A100 and H100 in bf16 and V100 in fp16 (Vidur, XLA's sm_90 table,
// DeepBench) these leave a mean error of 9 %; 12 % without idle multiprocessors, 17 % also without
// the start of a tile.
constexpr double kDepthHalf = 192.0;
constexpr double kIdleShare = 0.2;
// Products of layers against the best shape: 0.89 to 0.97 beyond 100 us in the same tables.
constexpr double kTypicalShare = 0.94;

// Time between the ends of two dependent tiny kernels: 2 us alone for element-wise ones, 4 us for
// products (Vidur, CUDA graphs).
constexpr Seconds kGap{3e-6};
// An eager framework's time for one operator: 5 to 25 us from Python to the driver
// (jiahuanglin.xyz/all_lessons/gpu_kernel_serving, lesson 18), 26 us for a linear layer with its
// module (dev-discuss.pytorch.org/t/110). The middle of the range; assumed.
constexpr Seconds kHost{15e-6};
// Time at full bandwidth that a kernel needs before its loads arrive (Little's law with about 1 us
// of latency under load; Vidur: 3 us for 6 MB on an H100). Assumed.
constexpr Seconds kRamp{1e-6};

// 1.27 to 1.45 times bf16 was measured on products with their casts (Transformer Engine, torchao),
// however much higher the peak is; the geometric mean.
constexpr double kLowPrecisionGain = 1.357;

// cuDNN's implicit products against cuBLAS ones of the same shape. Assumed.
constexpr double kConvolutionShare = 0.7;
// Chains of dependent fp32 instructions against a fused multiply-add each cycle. Assumed.
constexpr double kVectorShare = 0.5;

// FlashAttention-3 on H100 forward, 512 to 16k keys: 430, 517, 566, 590, 614, 621 TFLOP/s
// (pytorch/benchmark pull 2391). Causal: 0.85 of full at 2k keys on H20 (flash-attention issue
// 1310). Backward 313, 435, 520, 561 at 1k to 8k keys (facebookexperimental/triton pull 3463).
constexpr double kKeysHalf = 200.0;
constexpr double kCausalKeysHalf = 600.0;
constexpr double kBackwardKeys = 2.0;
// Heads 64 wide reach 312, heads 128 wide about 370 TFLOP/s with FlashAttention-2 on H100
// (flash-attention pull 2688).
constexpr double kWidthHalf = 24.0;

// Rows of one element keep products off the matrix units: 78 of 312 TFLOP/s on an A100 (datasheet,
// fp16 outside them), four times the time; by the halving in between. Rows of a multiple of 32
// bytes lose nothing: inner sizes and widths of 1,376 elements (64 bytes) on A100, H100 and A40
// (Vidur), heads 80 wide (32 bytes) on A100 and GH200 (Sailor). It meets what layers of 14,400
// hidden over 8 tensor ranks (rows of 1,800 and heads 150 wide) lost to ones of 13,824: 94 against
// 120 TFLOP/s (BigScience, chronicles-prequel.md). NVIDIA's matrix multiplication guide asks for
// 128 bytes from A100 on, of libraries older than Vidur's, and for 16 bytes before.
constexpr double kMisaligned = 3.0;

double misaligned_of(const DeviceKind& device) {
  const bool before_ampere = device.generation == "volta" || device.generation == "turing" ||
                             device.generation == "pascal";
  return before_ampere ? 0.0 : kMisaligned;
}

bool is_low_precision(DType d) { return d == DType::kFp8 || d == DType::kFp4 || d == DType::kInt8; }

std::optional<FlopPerSecond> first_of(const DeviceKind& device, DType a, DType b) {
  const auto peak = device.peak_of(a);
  return peak ? peak : device.peak_of(b);
}

/// What low-precision kernels can use of the units' peak.
double usable_share(const DeviceKind& device, DType d) {
  if (!is_low_precision(d)) return 1.0;
  const double own = product_peak(device, d).value;
  return std::min(1.0, kLowPrecisionGain * product_peak(device, DType::kBf16).value / own);
}

/// What kernels of a kind reach of the bandwidth that element-wise ones reach.
double streaming_share(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
    case OpKind::kConvolution:
    case OpKind::kElementwise:
    case OpKind::kOptimizer:
      return 1.0;
    case OpKind::kNorm:  // 0.47 to 0.52 of bandwidth where others reach 0.8 (NeuSight); Vidur alike
      return 0.6;
    case OpKind::kAttention:
    case OpKind::kCrossEntropy:  // softmax: 0.55 to 0.64 (NeuSight)
      return 0.75;
    case OpKind::kEmbedding:  // 0.15 to 0.5 (Vidur)
      return 0.4;
    case OpKind::kRouting:  // gathers and scatters whole rows. Assumed
      return 0.6;
  }
  contract_violated("EXPECTS", "kind is an OpKind", __FILE__, __LINE__);
}

}  // namespace

ElementWidth element_width(DType d) {
  return bytes_per_element(d) > 2.0 ? ElementWidth::kWide : ElementWidth::kNarrow;
}

FlopPerSecond product_peak(const DeviceKind& device, DType d) {
  const auto or_vector = [&](std::optional<FlopPerSecond> peak) {
    return peak.value_or(device.vector_peak);
  };
  switch (d) {
    case DType::kFp4:
      return device.peak_of(d).value_or(product_peak(device, DType::kFp8));
    case DType::kFp8:
    case DType::kInt8:
      return device.peak_of(d).value_or(product_peak(device, DType::kBf16));
    case DType::kBf16: {
      const auto peak = first_of(device, DType::kBf16, DType::kFp16);
      return or_vector(peak ? peak : device.peak_of(DType::kFp32));
    }
    case DType::kFp16: {
      const auto peak = first_of(device, DType::kFp16, DType::kBf16);
      return or_vector(peak ? peak : device.peak_of(DType::kFp32));
    }
    case DType::kTf32:
      return or_vector(first_of(device, DType::kTf32, DType::kFp32));
    case DType::kFp32:
      return or_vector(device.peak_of(d));
    case DType::kFp64:
      return device.peak_of(d).value_or(device.vector_peak / 2.0);
  }
  contract_violated("EXPECTS", "d is a DType", __FILE__, __LINE__);
}

OpParameters documented_op_parameters(const DeviceKind& device) {
  const Efficiencies& reached = efficiencies_of(device.generation);
  OpParameters out;
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    const double usable = usable_share(device, static_cast<DType>(d));
    out.product[d] = {usable * reached.product * kTypicalShare,
                      kDepthHalf,
                      kIdleShare,
                      reached.memory,
                      kRamp,
                      kGap,
                      misaligned_of(device)};
    out.fused_attention[d] = {usable * reached.flash_forward,
                              usable * reached.flash_backward,
                              kKeysHalf,
                              kCausalKeysHalf,
                              kBackwardKeys,
                              kWidthHalf,
                              kGap};
  }
  for (std::size_t k = 0; k < kOpKindCount; ++k) {
    const double share = reached.memory * streaming_share(static_cast<OpKind>(k));
    out.stream[k].fill({share, share, kRamp, kGap});
  }
  out.convolution_share = kConvolutionShare;
  out.vector_share = kVectorShare;
  out.host = kHost;
  return out;
}

}  // namespace towtank
