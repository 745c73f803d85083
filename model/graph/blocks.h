// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The layers of transformers, as ops with their sharding, collectives and saved tensors.
///
/// Saved for backward, bytes per token with two-byte elements, before division (h hidden, q and u
/// query and key-value width, a heads, f MLP width, s tokens):
///
///   norms               8h     inputs 2h + 2h, outputs 2h + 2h          (sequence parallel: / t)
///   Q, K, V             2(q + 2u)                                       / t, K and V / min(t, k)
///   attention output    2q; fused: + 4a log-sum-exp                      / t
///   unfused scores      2as softmax; with dropout + as mask + 2as output / t
///   MLP                 gated 6f (two inputs, product), plain 4f         / t
///   dropout             h mask after attention, h after the MLP
///   latent attention    2(ql + kl + rope) latents; 4a(nope + rope) + 2a vd for Q, K, V
///   experts             4E router + 2Kh dispatched + 4K fe + 2K fe + 2Kh output + 6 fs shared
///
/// Elements moved by memory-bound ops, forward and backward, per element of the tensor: norm 2, 3;
/// rotary 2, 2; residual 3, 3; activation 2, 3; gated activation 3, 5 (reads plus writes).
///
/// Sources: Korthikanti et al. 2022, sec. 4.1; Megatron-LM core/transformer; DeepSeek-V2 2024, sec.
/// 2.1 (latent attention). Not modelled: fp8 copies of saved tensors, eager fp32 norms.
#include <optional>
#include <string>

#include "model/graph/model_graph.h"

namespace towtank {

enum class NormKind { kRms, kLayer };  ///< h or 2h parameters

/// Latent attention: Q, K and V are rebuilt from low-rank latents.
struct LatentSpec {
  std::optional<int> query_rank;  ///< none: Q is projected directly
  int key_value_rank = 0;
  int nope_width = 0, rope_width = 0, value_width = 0;
};

struct AttentionSpec {
  int heads = 0, kv_heads = 0, head_width = 0;
  bool qkv_bias = false, output_bias = false;
  bool head_norm = false;  ///< RMS norm of each query and key head
  bool sinks = false;      ///< one learned score per head
  bool dropout = true;     ///< of the probabilities, where the block has dropout
  bool rotary = true;
  bool causal = true;
  int relative_buckets = 0;  ///< learned position biases per head; 0 = none
  std::optional<int> window;
  std::optional<LatentSpec> latent;
  [[nodiscard]] std::int64_t query_width() const { return std::int64_t{heads} * head_width; }
  [[nodiscard]] std::int64_t key_width() const { return std::int64_t{kv_heads} * head_width; }
};

struct MlpSpec {
  int width = 0;
  bool gated = true;
  bool bias = false;
  bool relu = false;  ///< plain: backward reads the output of ReLU, so its input is not kept
};

struct MoeSpec {
  int experts = 0, chosen = 0, width = 0;
  int shared_width = 0;  ///< all shared experts together; 0 = none
  bool shared_gate = false;
  bool score_bias = false;  ///< one correction per expert
  bool router_bias = false, expert_bias = false;
};

struct BlockSpec {
  int hidden = 0;
  NormKind norm = NormKind::kRms;
  bool post_norms = false;   ///< four norms a layer (Gemma 2 and 3)
  bool parallel = false;     ///< attention and MLP read the same input
  bool shared_norm = false;  ///< parallel: one norm for both
  bool dropout = false;
  AttentionSpec attention;
  bool cross_attention = false;  ///< a second attention over the encoder's output
  MlpSpec mlp;
  std::optional<MoeSpec> moe;  ///< instead of mlp
};

/// A transformer block over `tokens` tokens (cross attention: `memory_tokens` in the encoder).
[[nodiscard]] LayerKind block_kind(std::string name, const BlockSpec&, int tokens,
                                   int memory_tokens = 0);

struct EmbeddingSpec {
  int hidden = 0, vocabulary = 0;
  int positions = 0, token_types = 0;  ///< learned tables; 0 = none
  std::optional<NormKind> norm;        ///< after the sum
  bool dropout = false;
  int lookups = 1;  ///< sequences that read the table (encoder and decoder: 2)
};
[[nodiscard]] LayerKind embedding_kind(const EmbeddingSpec&, int tokens);

struct HeadSpec {
  int hidden = 0, vocabulary = 0;
  std::optional<NormKind> norm;
  bool tied = false;  ///< the embedding's table: no parameters of its own
  bool bias = false;
};
/// Final norm, product with the vocabulary, loss.
[[nodiscard]] LayerKind head_kind(const HeadSpec&, int tokens);

/// A multi-token-prediction module: two norms, a projection of 2h to h, a block, a norm, and the
/// shared head once more. Its own parameters only.
[[nodiscard]] LayerKind mtp_kind(const BlockSpec&, int vocabulary, int tokens);

// Pieces, for heads and networks that are not blocks.
[[nodiscard]] Op norm_op(std::string name, NormKind, int hidden, double tokens, bool saved_input);
[[nodiscard]] Op product_op(std::string name, Split, double rows, std::int64_t inner,
                            std::int64_t columns, bool bias);
[[nodiscard]] Op memory_op_spec(std::string name, OpKind, Split, double moved,
                                double moved_backward);
[[nodiscard]] SavedTensor saved_tensor(double elements, Split,
                                       RecomputeGroup = RecomputeGroup::kNone);
/// Gather of a product's input over tensor ranks and scatter of its gradient.
[[nodiscard]] LayerCollective column_input(std::string name, double elements);
/// Reduction of a product's output over tensor ranks.
[[nodiscard]] LayerCollective row_output(std::string name, double elements);

}  // namespace towtank
