// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/term_bounds.h"

#include "core/contracts.h"

namespace towtank {

FitParameter bounds_of(OpKind kind, bool fused, OpTerm term) {
  const bool flash = kind == OpKind::kAttention && fused;
  switch (term) {
    case OpTerm::kShare:
    case OpTerm::kBackwardShare:
    case OpTerm::kStreamShare:
      return {.low = 0.02, .high = 1.0};
    case OpTerm::kDepthHalf:
      return {.low = 1.0, .high = 2000.0};
    case OpTerm::kIdleShare:
      return {.low = 0.001, .high = 1.0};
    case OpTerm::kMisaligned:
      return {.low = 0.001, .high = 10.0};
    case OpTerm::kKeysHalf:
    case OpTerm::kCausalKeysHalf:
      return {.low = 1.0, .high = 1e4};
    case OpTerm::kWidthHalf:
      return {.low = 1.0, .high = 500.0};
    case OpTerm::kRamp:
      return {.low = 1e-8, .high = flash ? 1e-5 : 2e-5};
    case OpTerm::kGap:
      return {.low = 1e-7, .high = 2e-5};
  }
  contract_violated("EXPECTS", "term is an OpTerm", __FILE__, __LINE__);
}

std::string how_to_tell(OpKind kind, OpTerm term) {
  const bool product = kind == OpKind::kMatmul || kind == OpKind::kConvolution;
  switch (term) {
    case OpTerm::kShare:
      return "no row is long enough. Measure larger ones";
    case OpTerm::kBackwardShare:
      return "no row of a backward pass is long enough. Measure larger ones";
    case OpTerm::kDepthHalf:
      return "inner sizes differ too little. Measure products with k from 64 to 4096";
    case OpTerm::kIdleShare:
      return "no product leaves multiprocessors idle. Measure ones of 1 to 4 tiles a "
             "multiprocessor";
    case OpTerm::kMisaligned:
      return "all rows are whole cache lines. Measure products with n or k odd";
    case OpTerm::kStreamShare:
      return "no product is bound by traffic. Measure ones with m of 1 to 64";
    case OpTerm::kKeysHalf:
      return "key lengths differ too little. Measure 256 to 16384 keys without a mask";
    case OpTerm::kCausalKeysHalf:
      return "key lengths differ too little. Measure 256 to 16384 keys under a causal mask";
    case OpTerm::kWidthHalf:
      return "heads are all as wide. Measure heads 64, 128 and 256 wide";
    case OpTerm::kRamp:
    case OpTerm::kGap:
      return product
                 ? "small products are hidden behind their launches. Measure ones of less than "
                   "10 us in a CUDA graph"
                 : "small ops are hidden behind their launches. Measure ones of 4 KB to 4 MB in "
                   "a CUDA graph";
  }
  contract_violated("EXPECTS", "term is an OpTerm", __FILE__, __LINE__);
}

}  // namespace towtank
