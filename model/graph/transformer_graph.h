// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A stack of transformer blocks between an embedding and a head becomes a ModelGraph.
#include <vector>

#include "model/graph/blocks.h"

namespace towtank {

/// Layers may differ in two things: attention window, and experts or a dense MLP.
struct TransformerSpec {
  std::string family;
  int tokens = 0;
  int layers = 0;
  BlockSpec block;  ///< its moe and window fields are set by layer below
  std::optional<MoeSpec> moe;
  std::vector<bool> sparse;                 ///< by layer: experts; empty = none
  std::vector<std::optional<int>> windows;  ///< by layer; empty = none
  EmbeddingSpec embedding;
  HeadSpec head;
  int mtp_layers = 0;
};

[[nodiscard]] ModelGraph transformer_graph(const TransformerSpec&);

/// Appends a layer that reads what the last one wrote (`elements` a sample).
LayerId append_layer(ModelGraph&, std::string name, LayerKindId kind, Pin pin, double elements);

}  // namespace towtank
