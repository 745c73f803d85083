// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the decoder families share: reading sizes into a TransformerSpec.
#include "model/graph/hf_families.h"
#include "model/graph/transformer_graph.h"

namespace towtank::detail {

/// Class defaults of a decoder family.
struct DecoderDefaults {
  int vocabulary = 0, hidden = 0, width = 0, layers = 0, heads = 0;
  int kv_heads = 0;    ///< 0: as many as heads
  int head_width = 0;  ///< 0: hidden / heads
  bool tied = false;
  bool latent = false;  ///< latent attention: head_dim and key-value heads mean nothing
  bool grouped = true;  ///< the class knows head_dim and key-value heads
};

/// A decoder with rotary positions and RMS norms; the caller sets what its family does otherwise.
[[nodiscard]] TransformerSpec decoder(const HfFields&, const HfRequest&, const DecoderDefaults&);
/// heads, kv_heads and head_width; faults where they do not divide.
void read_heads(const HfFields&, int hidden, const DecoderDefaults&, AttentionSpec&);
/// Which layers have experts, by decoder_sparse_step and mlp_only_layers.
[[nodiscard]] std::vector<bool> sparse_layers(const HfFields&, int layers);
/// Which layers slide, by layer_types; nothing where the file does not say.
[[nodiscard]] std::optional<std::vector<bool>> sliding_by_type(const HfFields&, int layers);

}  // namespace towtank::detail
