// SPDX-License-Identifier: Apache-2.0
#include "model/cost/calibration.h"

#include <cstddef>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

bool is_product(OpKind kind) { return kind == OpKind::kMatmul || kind == OpKind::kConvolution; }

// The place of a term in parameters of either constness.

auto* product_term(auto& p, OpTerm term) {
  switch (term) {
    case OpTerm::kShare:
      return &p.share;
    case OpTerm::kDepthHalf:
      return &p.depth_half;
    case OpTerm::kIdleShare:
      return &p.idle_share;
    case OpTerm::kMisaligned:
      return &p.misaligned;
    case OpTerm::kStreamShare:
      return &p.stream_share;
    case OpTerm::kRamp:
      return &p.ramp.value;
    case OpTerm::kGap:
      return &p.gap.value;
    case OpTerm::kBackwardShare:
    case OpTerm::kKeysHalf:
    case OpTerm::kCausalKeysHalf:
    case OpTerm::kWidthHalf:
      break;
  }
  contract_violated("EXPECTS", "products have this term", __FILE__, __LINE__);
}

auto* fused_term(auto& p, OpTerm term) {
  switch (term) {
    case OpTerm::kShare:
      return &p.forward_share;
    case OpTerm::kBackwardShare:
      return &p.backward_share;
    case OpTerm::kKeysHalf:
      return &p.keys_half;
    case OpTerm::kCausalKeysHalf:
      return &p.causal_keys_half;
    case OpTerm::kWidthHalf:
      return &p.width_half;
    case OpTerm::kGap:
      return &p.gap.value;
    case OpTerm::kDepthHalf:
    case OpTerm::kIdleShare:
    case OpTerm::kMisaligned:
    case OpTerm::kStreamShare:
    case OpTerm::kRamp:
      break;
  }
  contract_violated("EXPECTS", "fused attention has this term", __FILE__, __LINE__);
}

auto* stream_term(auto& p, OpTerm term) {
  switch (term) {
    case OpTerm::kShare:
      return &p.forward_share;
    case OpTerm::kBackwardShare:
      return &p.backward_share;
    case OpTerm::kRamp:
      return &p.ramp.value;
    case OpTerm::kGap:
      return &p.gap.value;
    case OpTerm::kDepthHalf:
    case OpTerm::kIdleShare:
    case OpTerm::kMisaligned:
    case OpTerm::kStreamShare:
    case OpTerm::kKeysHalf:
    case OpTerm::kCausalKeysHalf:
    case OpTerm::kWidthHalf:
      break;
  }
  contract_violated("EXPECTS", "streams have this term", __FILE__, __LINE__);
}

auto* place_of(auto& p, OpKind kind, bool fused, DType d, OpTerm term) {
  if (is_product(kind)) return product_term(p.product[index_of(d)], term);
  if (kind == OpKind::kAttention && fused) return fused_term(p.fused_attention[index_of(d)], term);
  return stream_term(p.stream[index_of(kind)][index_of(element_width(d))], term);
}

}  // namespace

std::vector<OpTerm> terms_of(OpKind kind, bool fused) {
  if (is_product(kind)) {
    return {OpTerm::kShare,       OpTerm::kDepthHalf, OpTerm::kIdleShare, OpTerm::kMisaligned,
            OpTerm::kStreamShare, OpTerm::kRamp,      OpTerm::kGap};
  }
  if (kind == OpKind::kAttention && fused) {
    return {OpTerm::kShare,          OpTerm::kBackwardShare, OpTerm::kKeysHalf,
            OpTerm::kCausalKeysHalf, OpTerm::kWidthHalf,     OpTerm::kGap};
  }
  return {OpTerm::kShare, OpTerm::kBackwardShare, OpTerm::kRamp, OpTerm::kGap};
}

double term_of(const OpParameters& p, OpKind kind, bool fused, DType d, OpTerm term) {
  return *place_of(p, kind, fused, d, term);
}

void set_term(OpParameters& p, OpKind kind, bool fused, DType d, OpTerm term, double value) {
  *place_of(p, kind, fused, d, term) = value;
}

}  // namespace towtank
