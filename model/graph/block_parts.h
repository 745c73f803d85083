// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What blocks.cpp puts together: each part appends its ops, collectives and limits to a layer.
#include "model/graph/blocks.h"

namespace towtank::detail {

struct AttentionPlace {
  std::string prefix;     ///< of op names: "" or "cross_"
  int tokens = 0;         ///< queries
  int memory_tokens = 0;  ///< keys and values, where they are another sequence; else 0
};
void add_attention(LayerKind&, const BlockSpec&, const AttentionSpec&, const AttentionPlace&);
void add_mlp(LayerKind&, const BlockSpec&, int tokens);
/// Product, activation, product; names and limits start with the prefix.
void add_dense_mlp(LayerKind&, int hidden, const MlpSpec&, int tokens, const std::string& prefix);
void add_moe(LayerKind&, const BlockSpec&, int tokens);
/// Dropout where there is one, then the residual sum.
void add_residual(LayerKind&, const BlockSpec&, int tokens, const std::string& name);

}  // namespace towtank::detail
