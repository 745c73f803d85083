// SPDX-License-Identifier: Apache-2.0
#include "model/cost/analytic.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/contracts.h"
#include "model/cost/efficiencies.h"

namespace towtank {
namespace {

constexpr double kGap = 2e-6;
constexpr double kHost = 5e-6;
constexpr double kRampTime = 1.5e-6;
constexpr double kTile = 128.0;
constexpr double kDepthHalf = 192.0;
constexpr double kIdleShare = 0.5;
constexpr int kAssumedMultiprocessors = 108;
constexpr double kEightBitGain = 1.36;
constexpr double kConvolutionShare = 0.7;
constexpr double kVectorShare = 0.7;
constexpr double kFlashKeysHalf = 200.0;
constexpr double kFlashCausalKeysHalf = 500.0;
constexpr double kFlashWidthHalf = 24.0;
constexpr double kScorePasses = 5.0;

/// The dtype whose units run products of `d`, and its peak; the vector units where none does.
FlopPerSecond peak_or_wider(const DeviceKind& device, DType d) {
  if (const auto own = device.peak_of(d)) return *own;
  switch (d) {
    case DType::kFp4:
      return peak_or_wider(device, DType::kFp8);
    case DType::kFp8:
    case DType::kInt8:
      return peak_or_wider(device, DType::kBf16);
    case DType::kBf16:
    case DType::kTf32:
      return peak_or_wider(device, DType::kFp32);
    case DType::kFp16:
    case DType::kFp32:
      return device.vector_peak;
    case DType::kFp64:
      return device.vector_peak / 2.0;
  }
  contract_violated("EXPECTS", "d is a DType", __FILE__, __LINE__);
}

double best_rate(const DeviceKind& device, DType d, double efficiency) {
  const double own = peak_or_wider(device, d).value;
  if (d != DType::kFp8 && d != DType::kFp4 && d != DType::kInt8) return own * efficiency;
  const double sixteen = peak_or_wider(device, DType::kBf16).value;
  return std::min(own, kEightBitGain * sixteen) * efficiency;
}

/// What kernels of a kind reach of the bandwidth that streaming kernels reach.
double streaming_share(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
    case OpKind::kConvolution:
    case OpKind::kAttention:
    case OpKind::kElementwise:
    case OpKind::kOptimizer:
      return 1.0;
    case OpKind::kNorm:
    case OpKind::kCrossEntropy:
      return 0.85;
    case OpKind::kEmbedding:
    case OpKind::kRouting:
      return 0.6;
  }
  contract_violated("EXPECTS", "kind is an OpKind", __FILE__, __LINE__);
}

double ceil_div(std::int64_t a, double tile) {
  const auto t = static_cast<std::int64_t>(tile);
  return static_cast<double>((a + t - 1) / t);
}

}  // namespace

AnalyticCostModel::AnalyticCostModel(const DeviceKind& device, NetworkView view)
    : device_name_(device.name),
      view_(std::move(view)),
      collectives_(documented_collective_parameters()) {
  EXPECTS(device.vector_peak.value > 0.0 && device.memory_bandwidth.value > 0.0);
  const Efficiencies& reached = efficiencies_of(device.generation);
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    product_seconds_[d] = 1.0 / best_rate(device, dtype, reached.product);
    flash_forward_seconds_[d] = 1.0 / best_rate(device, dtype, reached.flash_forward);
    flash_backward_seconds_[d] = 1.0 / best_rate(device, dtype, reached.flash_backward);
  }
  const double bandwidth = device.memory_bandwidth.value;
  for (std::size_t k = 0; k < kOpKindCount; ++k) {
    byte_seconds_[k] = 1.0 / (bandwidth * reached.memory * streaming_share(static_cast<OpKind>(k)));
  }
  vector_seconds_ = 1.0 / (device.vector_peak.value * kVectorShare);
  ramp_bytes_ = bandwidth * kRampTime;
  idle_tiles_ = kIdleShare * device.multiprocessors.value_or(kAssumedMultiprocessors);
}

double AnalyticCostModel::memory_time(OpKind kind, double traffic) const {
  return traffic > 0.0 ? (traffic + ramp_bytes_) * byte_seconds_[static_cast<std::size_t>(kind)]
                       : 0.0;
}

AnalyticCostModel::Body AnalyticCostModel::product(const OpSignature& op) const {
  const double flop_seconds = product_seconds_[static_cast<std::size_t>(op.dtype)];
  double compute = op.work.value * flop_seconds;
  if (op.m > 0 && op.n > 0 && op.k > 0) {
    const double tiles =
        static_cast<double>(op.batch) * ceil_div(op.m, kTile) * ceil_div(op.n, kTile);
    const double padded =
        2.0 * kTile * kTile * (tiles + idle_tiles_) * (static_cast<double>(op.k) + kDepthHalf);
    compute = std::max(compute, padded * flop_seconds);
  }
  if (op.kind == OpKind::kConvolution) compute /= kConvolutionShare;
  return {compute, memory_time(op.kind, static_cast<double>(op.traffic.value))};
}

AnalyticCostModel::Body AnalyticCostModel::attention(const OpSignature& op) const {
  const auto d = static_cast<std::size_t>(op.dtype);
  const auto n = static_cast<double>(op.n);
  if (op.fused) {
    const double seconds =
        op.pass == Pass::kForward ? flash_forward_seconds_[d] : flash_backward_seconds_[d];
    const double keys = op.causal ? kFlashCausalKeysHalf : kFlashKeysHalf;
    const double short_keys = op.n > 0 ? 1.0 + keys / n : 1.0;
    const double narrow = op.k > 0 ? 1.0 + kFlashWidthHalf / static_cast<double>(op.k) : 1.0;
    return {op.work.value * seconds * short_keys * narrow,
            memory_time(op.kind, static_cast<double>(op.traffic.value))};
  }
  const double passes = op.pass == Pass::kForward ? kScorePasses : 2.0 * kScorePasses;
  const double scores = static_cast<double>(op.batch) * static_cast<double>(op.m) * n;
  return {op.work.value * product_seconds_[d],
          memory_time(op.kind, static_cast<double>(op.traffic.value) +
                                   passes * bytes_per_element(op.dtype) * scores)};
}

AnalyticCostModel::Body AnalyticCostModel::streaming(const OpSignature& op) const {
  return {op.work.value * vector_seconds_,
          memory_time(op.kind, static_cast<double>(op.traffic.value))};
}

OpCost AnalyticCostModel::op(const OpSignature& op) const {
  if (op.work.value <= 0.0 && op.traffic.value <= 0) return {};
  Body body{};
  double running = 0.0;
  if (op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution) {
    body = product(op);
    running = std::max(body.compute, body.memory);
  } else if (op.kind == OpKind::kAttention) {
    body = attention(op);
    running = op.fused ? std::max(body.compute, body.memory) : body.compute + body.memory;
  } else {
    body = streaming(op);
    running = std::max(body.compute, body.memory);
  }
  const double kernels = op.kernels;
  const double launch = std::max(kernels * kGap, kernels * kHost - running);
  return {{launch + running}, {body.compute}, {body.memory}, {launch}, Basis::kAnalytic};
}

CollectiveCost AnalyticCostModel::collective(const CollectiveCall& call) const {
  return collective_cost(call, view_, collectives_);
}

std::string AnalyticCostModel::description() const {
  return "analytic: documented efficiencies of " + device_name_ + ", no calibration";
}

}  // namespace towtank
