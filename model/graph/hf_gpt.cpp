// SPDX-License-Identifier: Apache-2.0
// GPT-2, BLOOM and Falcon: LayerNorms, plain MLPs of four hidden sizes. Class defaults as in
// transformers 4.5x, models/<family>/configuration_<family>.py.
#include "model/graph/hf_decoder.h"

namespace towtank {
namespace {

using detail::DecoderDefaults;

constexpr DecoderDefaults kGpt2{
    .vocabulary = 50257, .hidden = 768, .layers = 12, .heads = 12, .tied = true, .grouped = false};
constexpr DecoderDefaults kBloom{
    .vocabulary = 250880, .hidden = 64, .layers = 2, .heads = 8, .tied = true, .grouped = false};
constexpr DecoderDefaults kFalcon{
    .vocabulary = 65024, .hidden = 4544, .layers = 32, .heads = 71, .tied = true};

/// LayerNorms, a plain MLP, biases where told.
void make_plain(TransformerSpec& spec, bool bias, int width) {
  spec.block.norm = NormKind::kLayer;
  spec.head.norm = NormKind::kLayer;
  spec.block.mlp = {.width = width, .gated = false, .bias = bias};
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
}

int four_hidden(const HfFields& f, const TransformerSpec& spec) {
  return f.maybe(fields::kWidth).value_or(4 * spec.block.hidden);
}

}  // namespace

ModelGraph read_gpt2(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = detail::decoder(f, request, kGpt2);
  make_plain(spec, true, four_hidden(f, spec));
  spec.block.attention.rotary = false;
  spec.embedding.positions =
      f.need({"n_positions", "n_ctx", "max_position_embeddings"}, 1024, kMaxTokens);
  static_cast<void>(hf_tokens(f, request, spec.embedding.positions));
  spec.block.dropout = f.rate({"resid_pdrop"}, 0.1) > 0;
  // Told only where stated: resid_pdrop's default stands for the other rates.
  spec.block.attention.dropout = !f.stated({"attn_pdrop"}) || f.rate({"attn_pdrop"}, 0.1) > 0;
  spec.block.mlp.relu =
      f.stated({"activation_function"}) && f.text({"activation_function"}, "gelu_new") == "relu";
  spec.embedding.dropout = f.rate({"embd_pdrop"}, 0.1) > 0;
  return transformer_graph(spec);
}

ModelGraph read_bloom(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = detail::decoder(f, request, kBloom);
  make_plain(spec, true, 4 * spec.block.hidden);
  spec.block.attention.rotary = false;
  spec.embedding.norm = NormKind::kLayer;
  spec.block.dropout = f.rate({"hidden_dropout"}, 0.0) > 0;
  return transformer_graph(spec);
}

ModelGraph read_falcon(const HfFields& f, const HfRequest& request) {
  DecoderDefaults defaults = kFalcon;
  const bool grouped = f.flag({"new_decoder_architecture"}, false);
  const bool one_head = f.flag({"multi_query"}, true);
  // Old files also state n_head_kv or num_kv_heads without meaning it.
  defaults.kv_heads = !grouped && one_head ? 1 : 0;
  TransformerSpec spec = detail::decoder(f, request, defaults);
  if (!grouped) {
    auto& attention = spec.block.attention;
    attention.kv_heads = one_head ? 1 : attention.heads;
  }
  make_plain(spec, f.flag({"bias"}, false), four_hidden(f, spec));
  spec.block.attention.rotary = !f.flag({"alibi"}, false);
  const bool parallel = f.flag({"parallel_attn"}, true);
  spec.block.parallel = grouped || parallel;
  const int norms = f.maybe({"num_ln_in_parallel_attn"}, 2).value_or(grouped ? 2 : 1);
  spec.block.shared_norm = norms == 1;
  spec.block.dropout = f.rate({"hidden_dropout"}, 0.0) > 0;
  return transformer_graph(spec);
}

}  // namespace towtank
