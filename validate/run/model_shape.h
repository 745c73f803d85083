// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The network that the runtime builds: sizes of a decoder, read from a plan's model.
///
/// GPT-2 and Llama-like decoders: learned or rotary positions, layer or RMS norms, grouped-query
/// attention with or without biases, head norms and a sliding window, plain (GELU) or gated (SiLU)
/// MLPs, or routed experts without shared ones. Sizes come from the ModelGraph, so that what runs
/// is what was predicted: total_parameters() equals the graph's.
///
/// Not built, one fault each: anything else that a graph may hold (latent attention, parallel
/// blocks, post norms, sinks, relative positions, shared experts, convolutions). Not read, since it
/// changes no time: the base of rotary positions (10,000) and the constant of norms (1e-5).
/// Dropout is not run.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/input_error.h"
#include "model/graph/model_graph.h"

namespace towtank {

struct BlockShape {
  std::int64_t heads = 0, kv_heads = 0, head_width = 0;
  bool layer_norm = false;  ///< else RMS
  bool qkv_bias = false, projection_bias = false;
  bool head_norm = false;
  bool rotary = false;
  std::optional<int> window = std::nullopt;  ///< keys that a query sees, itself included
  std::int64_t width = 0;                    ///< of the MLP, or of each expert
  bool gated = false, mlp_bias = false;
  bool relu = false;
  std::int64_t experts = 0, chosen = 0;  ///< 0: dense
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

struct ModelShape {
  std::int64_t hidden = 0, vocabulary = 0, tokens = 0;
  std::int64_t positions = 0;  ///< learned; 0 = none
  bool tied = false;
  bool final_layer_norm = false;
  std::vector<BlockShape> blocks;

  [[nodiscard]] std::int64_t total_parameters() const;
};

/// Adds a fault for all that is not built; the result is then unusable.
[[nodiscard]] ModelShape model_shape(const ModelGraph&, const std::string& where, Faults&);

}  // namespace towtank
