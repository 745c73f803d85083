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
constexpr double kAlignedBytes = 32.0;  // rows of which lose nothing: see op_parameters.cpp
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

double OpFormula::product_compute(const Extents& e, double work, const Product& p) {
  if (work <= 0.0) return 0.0;
  const double tiles = static_cast<double>(e.batch) * tiles_over(e.m) * tiles_over(e.n);
  constexpr double kTileFlop = 2.0 * static_cast<double>(kTile * kTile);
  const double padded =
      kTileFlop * (tiles + p.idle_tiles) * (static_cast<double>(e.k) + p.depth_half);
  return (e.k > 0 ? std::max(work, padded) : work) * p.flop;
}

double OpFormula::misalignment(std::int64_t n, std::int64_t k, const Product& p) {
  const auto aligned = static_cast<std::uint64_t>(p.aligned);
  const auto extents = static_cast<std::uint64_t>(n | k) | aligned;
  return 1.0 + p.misaligned * (std::countr_zero(aligned) - std::countr_zero(extents));
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

OpCost OpFormula::priced(const OpSignature& op, double compute, double memory, double body,
                         double gap) const {
  const double kernels = op.kernels;
  const double time = std::max(kernels * gap + body, kernels * host_);
  return {{time}, {compute}, {memory}, {time - body}, Basis::kAnalytic};
}

OpCost OpFormula::product(const OpSignature& op) const {
  const Product& p = product_[index_of(op.dtype)];
  const double share = op.kind == OpKind::kConvolution ? convolution_ : 1.0;
  // The depth of a weight gradient is tokens: no tensor has rows of them.
  const double rows = misalignment(op.n, op.pass == Pass::kWeightGrad ? 0 : op.k, p);
  const double compute =
      share * rows * product_compute({op.batch, op.m, op.n, op.k}, op.work.value, p);
  const double memory =
      op.traffic.value > 0 ? static_cast<double>(op.traffic.value) * p.byte + p.ramp : 0.0;
  return priced(op, compute, memory, std::max(compute, memory), p.gap);
}

OpCost OpFormula::unfused_attention(const OpSignature& op) const {
  const bool forward = op.pass == Pass::kForward;
  const Product& p = product_[index_of(op.dtype)];
  const double bytes = static_cast<double>(op.batch) * bytes_per_element(op.dtype);
  const double scores = bytes * static_cast<double>(op.m) * static_cast<double>(op.n);
  const double operands = bytes * static_cast<double>(op.m + op.n) * static_cast<double>(op.k);
  const double work = op.work.value / (forward ? 2.0 : 4.0);  // of one product
  const double memory = op.work.value > 0.0 ? (scores + operands) * p.byte + p.ramp : 0.0;
  const auto body = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::max(memory, misalignment(n, k, p) * product_compute({op.batch, m, n, k}, work, p));
  };
  const double outer = body(op.m, op.n, op.k);  // scores, or their gradient
  const double inner = body(op.m, op.k, op.n);
  const double products = forward ? outer + inner : outer + inner + 2.0 * body(op.n, op.k, op.m);
  // What else is moved: softmax first, then masks and copies.
  const auto traffic = static_cast<double>(op.traffic.value);
  const bool whole = op.work.value > 0.0;  // else the softmax alone
  const double moved = traffic - (forward ? 2.0 : 4.0) * (scores + operands);
  const double rest = whole ? std::max(0.0, moved) : traffic;
  const double softmax = whole ? std::min(rest, softmax_passes(op) * scores) : rest;
  const auto width = index_of(element_width(op.dtype));
  const Stream& s = stream_[index_of(OpKind::kAttention)][width];
  const Stream& copies = stream_[index_of(OpKind::kElementwise)][width];
  const double streamed = softmax > 0.0 ? (softmax + s.ramp_bytes) * s.byte(op.pass) : 0.0;
  const double copied = (rest - softmax) * copies.byte(op.pass);
  return priced(op, products, streamed + copied, products + streamed + copied, s.gap);
}

OpCost OpFormula::operator()(const OpSignature& op) const {
  if (op.work.value <= 0.0 && op.traffic.value <= 0) return {};
  if (op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution) return product(op);
  if (op.kind == OpKind::kAttention && !op.fused) return unfused_attention(op);
  const bool fused = op.kind == OpKind::kAttention;
  const Stream& s = stream_[index_of(op.kind)][index_of(element_width(op.dtype))];
  const double compute = fused ? fused_compute(op) : op.work.value * vector_flop_;
  const double memory =
      op.traffic.value > 0
          ? (static_cast<double>(op.traffic.value) + s.ramp_bytes) * s.byte(op.pass)
          : 0.0;
  return priced(op, compute, memory, std::max(compute, memory),
                fused ? fused_[index_of(op.dtype)].gap : s.gap);
}

}  // namespace towtank
