// SPDX-License-Identifier: Apache-2.0
#include "model/cost/op_formula.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr std::int64_t kTile = 128;
constexpr double kAlignedBytes = 128.0;  // a row of whole cache lines
// An A100's; for devices whose number is not stated. Assumed.
constexpr int kAssumedMultiprocessors = 108;
// Head width that FusedAttentionParameters::..._share are stated for.
constexpr double kStatedWidth = 128.0;

double tiles_over(std::int64_t extent) {
  const std::int64_t tiles = (extent + kTile - 1) / kTile;
  return static_cast<double>(tiles);
}

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

}  // namespace

OpFormula::OpFormula(const DeviceKind& device, const OpParameters& parameters)
    : convolution_(1.0 / parameters.convolution_share),
      vector_flop_(1.0 / (device.vector_peak.value * parameters.vector_share)),
      host_(parameters.host.value) {
  EXPECTS(device.vector_peak.value > 0.0 && device.memory_bandwidth.value > 0.0);
  const double bandwidth = device.memory_bandwidth.value;
  const double multiprocessors = device.multiprocessors.value_or(kAssumedMultiprocessors);
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    const double peak = product_peak(device, static_cast<DType>(d)).value;
    const ProductParameters& p = parameters.product[d];
    const auto aligned =
        static_cast<std::int64_t>(kAlignedBytes / bytes_per_element(static_cast<DType>(d)));
    const double halvings = std::countr_zero(static_cast<std::uint64_t>(aligned));
    product_[d] = {1.0 / (peak * p.share),         p.depth_half,
                   p.idle_share * multiprocessors, 1.0 / (bandwidth * p.stream_share),
                   p.ramp.value / p.stream_share,  p.gap.value,
                   p.misaligned / halvings,        aligned};
    const FusedAttentionParameters& f = parameters.fused_attention[d];
    const double widest = 1.0 + f.width_half / kStatedWidth;
    fused_[d] = {1.0 / (peak * std::min(1.0, f.forward_share * widest)),
                 1.0 / (peak * std::min(1.0, f.backward_share * widest)),
                 f.keys_half,
                 f.causal_keys_half,
                 f.backward_keys,
                 f.width_half,
                 f.gap.value};
  }
  for (std::size_t k = 0; k < kOpKindCount; ++k) {
    for (std::size_t w = 0; w < kElementWidthCount; ++w) {
      const StreamParameters& s = parameters.stream[k][w];
      stream_[k][w] = {1.0 / (bandwidth * s.forward_share), 1.0 / (bandwidth * s.backward_share),
                       bandwidth * s.ramp.value, s.gap.value};
    }
  }
}

double OpFormula::product_compute(const OpSignature& op, const Product& p) const {
  if (op.work.value <= 0.0) return 0.0;
  const double tiles = static_cast<double>(op.batch) * tiles_over(op.m) * tiles_over(op.n);
  constexpr double kTileFlop = 2.0 * static_cast<double>(kTile * kTile);
  const double padded =
      kTileFlop * (tiles + p.idle_tiles) * (static_cast<double>(op.k) + p.depth_half);
  const double work = op.k > 0 ? std::max(op.work.value, padded) : op.work.value;
  return work * p.flop * misalignment(op, p);
}

double OpFormula::misalignment(const OpSignature& op, const Product& p) {
  const auto extents = static_cast<std::uint64_t>(op.n | op.k | p.aligned);
  const int lost = std::countr_zero(static_cast<std::uint64_t>(p.aligned)) - std::countr_zero(extents);
  return 1.0 + p.misaligned * lost;
}

double OpFormula::fused_compute(const OpSignature& op) const {
  const FusedAttention& f = fused_[index_of(op.dtype)];
  const bool forward = op.pass == Pass::kForward;
  double half = op.causal ? f.causal_half : f.half;
  if (!forward) half *= f.backward_keys;
  const auto keys = static_cast<double>(std::max<std::int64_t>(1, op.n));
  const auto width = static_cast<double>(std::max<std::int64_t>(1, op.k));
  const double flop = forward ? f.flop_forward : f.flop_backward;
  return op.work.value * flop * ((keys + half) * (width + f.width_half)) / (keys * width);
}

double OpFormula::stream_memory(const OpSignature& op, const Stream& s) const {
  if (op.traffic.value <= 0) return 0.0;
  const double byte = op.pass == Pass::kForward ? s.byte_forward : s.byte_backward;
  return (static_cast<double>(op.traffic.value) + s.ramp_bytes) * byte;
}

OpCost OpFormula::priced(const OpSignature& op, double compute, double memory, double body,
                         double gap) const {
  const double kernels = op.kernels;
  const double time = std::max(kernels * gap + body, kernels * host_);
  return {{time}, {compute}, {memory}, {time - body}, Basis::kAnalytic};
}

OpCost OpFormula::operator()(const OpSignature& op) const {
  if (op.work.value <= 0.0 && op.traffic.value <= 0) return {};
  if (op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution) {
    const Product& p = product_[index_of(op.dtype)];
    const double share = op.kind == OpKind::kConvolution ? convolution_ : 1.0;
    const double compute = product_compute(op, p) * share;
    const double memory =
        op.traffic.value > 0 ? static_cast<double>(op.traffic.value) * p.byte + p.ramp : 0.0;
    return priced(op, compute, memory, std::max(compute, memory), p.gap);
  }
  const Stream& s = stream_[index_of(op.kind)][index_of(element_width(op.dtype))];
  const double memory = stream_memory(op, s);
  if (op.kind != OpKind::kAttention) {
    const double compute = op.work.value * vector_flop_;
    return priced(op, compute, memory, std::max(compute, memory), s.gap);
  }
  if (op.fused) {
    const double compute = fused_compute(op);
    return priced(op, compute, memory, std::max(compute, memory), fused_[index_of(op.dtype)].gap);
  }
  const double compute = op.work.value * product_[index_of(op.dtype)].flop;
  return priced(op, compute, memory, compute + memory, s.gap);
}

}  // namespace towtank
