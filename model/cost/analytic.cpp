// SPDX-License-Identifier: Apache-2.0
#include "model/cost/analytic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/contracts.h"
#include "model/cost/efficiencies.h"

namespace towtank {
namespace {

// On 23,000 products of A100 and H100 in bf16 and V100 in fp16 (Vidur, XLA's sm_90 table,
// DeepBench) these four leave a mean error of 9 %; 12 % without idle multiprocessors, 17 % also
// without the start of a tile.
constexpr std::int64_t kTile = 128;
constexpr double kDepthHalf = 192.0;
constexpr double kIdleShare = 0.2;
// Products of layers against the best shape: 0.89 to 0.97 beyond 100 us in the same tables.
constexpr double kTypicalShare = 0.94;
// An A100's; for devices whose number is not stated. Assumed.
constexpr int kAssumedMultiprocessors = 108;

// Time between the ends of two dependent tiny kernels: 2 us alone for element-wise ones, 4 us for
// products (Vidur, CUDA graphs).
constexpr double kGap = 3e-6;
// An eager framework's time for one operator: 5 to 25 us from Python to the driver
// (jiahuanglin.xyz/all_lessons/gpu_kernel_serving, lesson 18), 26 us for a linear layer with its
// module (dev-discuss.pytorch.org/t/110). The middle of the range; assumed.
constexpr double kHost = 15e-6;
// Time at full bandwidth that a kernel needs before its loads arrive (Little's law with about 1 us
// of latency under load; Vidur: 3 us for 6 MB on an H100). Assumed.
constexpr double kRampTime = 1e-6;

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
constexpr double kStatedWidth = 128.0;  // of Efficiencies::flash_*

bool is_low_precision(DType d) { return d == DType::kFp8 || d == DType::kFp4 || d == DType::kInt8; }

std::optional<FlopPerSecond> first_of(const DeviceKind& device, DType a, DType b) {
  const auto peak = device.peak_of(a);
  return peak ? peak : device.peak_of(b);
}

/// Of the units that run a dtype's products: its own, else the next wider ones.
FlopPerSecond peak_or_wider(const DeviceKind& device, DType d) {
  const auto or_vector = [&](std::optional<FlopPerSecond> peak) {
    return peak.value_or(device.vector_peak);
  };
  switch (d) {
    case DType::kFp4:
      return device.peak_of(d).value_or(peak_or_wider(device, DType::kFp8));
    case DType::kFp8:
    case DType::kInt8:
      return device.peak_of(d).value_or(peak_or_wider(device, DType::kBf16));
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

double reachable_peak(const DeviceKind& device, DType d) {
  const double own = peak_or_wider(device, d).value;
  if (!is_low_precision(d)) return own;
  return std::min(own, kLowPrecisionGain * peak_or_wider(device, DType::kBf16).value);
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

double tiles_over(std::int64_t extent) {
  const std::int64_t tiles = (extent + kTile - 1) / kTile;
  return static_cast<double>(tiles);
}

}  // namespace

AnalyticCostModel::AnalyticCostModel(const DeviceKind& device, NetworkView view)
    : device_name_(device.name),
      view_(std::move(view)),
      collectives_(documented_collective_parameters()) {
  EXPECTS(device.vector_peak.value > 0.0 && device.memory_bandwidth.value > 0.0);
  const Efficiencies& reached = efficiencies_of(device.generation);
  const double widest = 1.0 + kWidthHalf / kStatedWidth;
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    const double peak = reachable_peak(device, static_cast<DType>(d));
    product_flop_[d] = 1.0 / (peak * reached.product * kTypicalShare);
    flash_forward_flop_[d] = 1.0 / (peak * std::min(1.0, reached.flash_forward * widest));
    flash_backward_flop_[d] = 1.0 / (peak * std::min(1.0, reached.flash_backward * widest));
  }
  const double bandwidth = device.memory_bandwidth.value;
  for (std::size_t k = 0; k < kOpKindCount; ++k) {
    byte_[k] = 1.0 / (bandwidth * reached.memory * streaming_share(static_cast<OpKind>(k)));
  }
  vector_flop_ = 1.0 / (device.vector_peak.value * kVectorShare);
  ramp_bytes_ = bandwidth * kRampTime;
  idle_tiles_ = kIdleShare * device.multiprocessors.value_or(kAssumedMultiprocessors);
}

double AnalyticCostModel::product(const OpSignature& op) const {
  if (op.work.value <= 0.0) return 0.0;
  const double flop = product_flop_[static_cast<std::size_t>(op.dtype)];
  const double tiles = static_cast<double>(op.batch) * tiles_over(op.m) * tiles_over(op.n);
  constexpr double kTileFlop = 2.0 * static_cast<double>(kTile * kTile);
  const double padded =
      kTileFlop * (tiles + idle_tiles_) * (static_cast<double>(op.k) + kDepthHalf);
  return (op.k > 0 ? std::max(op.work.value, padded) : op.work.value) * flop;
}

double AnalyticCostModel::fused_attention(const OpSignature& op) const {
  const auto d = static_cast<std::size_t>(op.dtype);
  const bool forward = op.pass == Pass::kForward;
  double half = op.causal ? kCausalKeysHalf : kKeysHalf;
  if (!forward) half *= kBackwardKeys;
  const auto keys = static_cast<double>(std::max<std::int64_t>(1, op.n));
  const auto width = static_cast<double>(std::max<std::int64_t>(1, op.k));
  const double flop = forward ? flash_forward_flop_[d] : flash_backward_flop_[d];
  return op.work.value * flop * ((keys + half) * (width + kWidthHalf)) / (keys * width);
}

OpCost AnalyticCostModel::op(const OpSignature& op) const {
  if (op.work.value <= 0.0 && op.traffic.value <= 0) return {};
  double compute = 0.0;
  if (op.kind == OpKind::kMatmul) {
    compute = product(op);
  } else if (op.kind == OpKind::kConvolution) {
    compute = product(op) / kConvolutionShare;
  } else if (op.kind == OpKind::kAttention) {
    compute = op.fused ? fused_attention(op)
                       : op.work.value * product_flop_[static_cast<std::size_t>(op.dtype)];
  } else {
    compute = op.work.value * vector_flop_;
  }
  const auto traffic = static_cast<double>(op.traffic.value);
  const double memory =
      traffic > 0.0 ? (traffic + ramp_bytes_) * byte_[static_cast<std::size_t>(op.kind)] : 0.0;
  const bool in_turn = op.kind == OpKind::kAttention && !op.fused;
  const double body = in_turn ? compute + memory : std::max(compute, memory);
  const double kernels = op.kernels;
  const double time = std::max(kernels * kGap + body, kernels * kHost);
  return {{time}, {compute}, {memory}, {time - body}, Basis::kAnalytic};
}

CollectiveCost AnalyticCostModel::collective(const CollectiveCall& call) const {
  return collective_cost(call, view_, collectives_);
}

std::string AnalyticCostModel::description() const {
  return "analytic: documented efficiencies for " + device_name_ + ", no calibration";
}

}  // namespace towtank
