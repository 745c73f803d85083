// SPDX-License-Identifier: Apache-2.0
// Llama and what descends from it: rotary positions, RMS norms, gated MLPs. Class defaults as in
// transformers 4.5x, models/<family>/configuration_<family>.py.
#include "model/graph/hf_decoder.h"

namespace towtank {
namespace {

using detail::decoder;
using detail::DecoderDefaults;

constexpr DecoderDefaults kLlama{
    .vocabulary = 32000, .hidden = 4096, .width = 11008, .layers = 32, .heads = 32};
constexpr DecoderDefaults kMistral{
    .vocabulary = 32000, .hidden = 4096, .width = 14336, .layers = 32, .heads = 32, .kv_heads = 8};
constexpr DecoderDefaults kQwen2{.vocabulary = 151936,
                                 .hidden = 4096,
                                 .width = 22016,
                                 .layers = 32,
                                 .heads = 32,
                                 .kv_heads = 32};
constexpr DecoderDefaults kQwen2Moe{
    .vocabulary = 151936, .hidden = 2048, .width = 5632, .layers = 24, .heads = 16, .kv_heads = 16};
constexpr DecoderDefaults kQwen3{.vocabulary = 151936,
                                 .hidden = 4096,
                                 .width = 22016,
                                 .layers = 32,
                                 .heads = 32,
                                 .kv_heads = 32,
                                 .head_width = 128};
constexpr DecoderDefaults kQwen3Moe{
    .vocabulary = 151936, .hidden = 2048, .width = 6144, .layers = 24, .heads = 32, .kv_heads = 4};
constexpr DecoderDefaults kNemotron{
    .vocabulary = 256000, .hidden = 6144, .width = 24576, .layers = 32, .heads = 48};
constexpr DecoderDefaults kGptOss{.vocabulary = 201088,
                                  .hidden = 2880,
                                  .width = 2880,
                                  .layers = 36,
                                  .heads = 64,
                                  .kv_heads = 8,
                                  .head_width = 64};

void read_width(const HfFields& f, const DecoderDefaults& defaults, TransformerSpec& spec) {
  spec.block.mlp.width = f.need(fields::kWidth, defaults.width);
}

void set_windows(TransformerSpec& spec, int window, const std::vector<bool>& sliding) {
  spec.windows.clear();
  for (const bool slides : sliding) {
    spec.windows.push_back(slides ? std::optional<int>(window) : std::nullopt);
  }
}

/// Layers from max_window_layers on slide, where use_sliding_window says so.
void read_qwen_windows(const HfFields& f, TransformerSpec& spec) {
  const bool use = f.flag({"use_sliding_window"}, false);
  const int window = f.maybe({"sliding_window"}, kMaxTokens).value_or(4096);
  const int first = f.find({"max_window_layers"}) ? f.take({"max_window_layers"}, 28, 0) : 28;
  const auto by_type = detail::sliding_by_type(f, spec.layers);
  if (!use) return;
  std::vector<bool> sliding;
  for (int i = 0; i < spec.layers; ++i) sliding.push_back(i >= first);
  set_windows(spec, window, by_type.value_or(sliding));
}

MoeSpec read_experts(const HfFields& f, int experts, int chosen) {
  MoeSpec moe;
  moe.experts = f.take(fields::kExperts, experts, 1, 1 << 16);
  moe.chosen = f.take(fields::kChosen, chosen, 1, 1 << 16);
  if (moe.chosen > moe.experts) {
    f.contradiction("num_experts_per_tok = " + std::to_string(moe.chosen) +
                    " is more than the number of experts, " + std::to_string(moe.experts));
  }
  return moe;
}

std::vector<bool> every_layer(const TransformerSpec& spec) {
  return std::vector<bool>(static_cast<std::size_t>(spec.layers), true);
}

}  // namespace

ModelGraph read_llama(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kLlama);
  read_width(f, kLlama, spec);
  const bool bias = f.flag({"attention_bias"}, false);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  spec.block.mlp.bias = f.flag({"mlp_bias"}, false);
  return transformer_graph(spec);
}

ModelGraph read_mistral(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kMistral);
  read_width(f, kMistral, spec);
  // null: no window; absent: the class's own.
  if (!f.stated({"sliding_window"}) || f.find({"sliding_window"})) {
    const int window = f.take({"sliding_window"}, 4096, 1, kMaxTokens);
    set_windows(spec, window, every_layer(spec));
  }
  return transformer_graph(spec);
}

ModelGraph read_mixtral(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kMistral);
  if (const auto window = f.maybe({"sliding_window"}, kMaxTokens)) {
    set_windows(spec, *window, every_layer(spec));
  }
  spec.moe = read_experts(f, 8, 2);
  spec.moe->width = f.need(fields::kWidth, kMistral.width);
  spec.sparse = every_layer(spec);
  return transformer_graph(spec);
}

ModelGraph read_qwen2(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kQwen2);
  read_width(f, kQwen2, spec);
  spec.block.attention.qkv_bias = true;
  f.assume("biases of Q, K and V (the qwen2 class always has them)");
  read_qwen_windows(f, spec);
  return transformer_graph(spec);
}

ModelGraph read_qwen2_moe(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kQwen2Moe);
  read_width(f, kQwen2Moe, spec);
  spec.block.attention.qkv_bias = f.flag({"qkv_bias"}, true);
  read_qwen_windows(f, spec);
  spec.moe = read_experts(f, 60, 4);
  spec.moe->width = f.take({"moe_intermediate_size"}, 1408);
  spec.moe->shared_width = f.take({"shared_expert_intermediate_size"}, 5632);
  spec.moe->shared_gate = true;
  spec.sparse = detail::sparse_layers(f, spec.layers);
  return transformer_graph(spec);
}

ModelGraph read_qwen3(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kQwen3);
  read_width(f, kQwen3, spec);
  const bool bias = f.flag({"attention_bias"}, false);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  spec.block.attention.head_norm = true;
  read_qwen_windows(f, spec);
  return transformer_graph(spec);
}

ModelGraph read_qwen3_moe(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kQwen3Moe);
  read_width(f, kQwen3Moe, spec);
  const bool bias = f.flag({"attention_bias"}, false);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  spec.block.attention.head_norm = true;
  read_qwen_windows(f, spec);
  spec.moe = read_experts(f, 128, 8);
  spec.moe->width = f.take({"moe_intermediate_size"}, 768);
  spec.sparse = detail::sparse_layers(f, spec.layers);
  return transformer_graph(spec);
}

ModelGraph read_nemotron(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kNemotron);
  read_width(f, kNemotron, spec);
  const bool bias = f.flag({"attention_bias"}, false);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  spec.block.mlp.bias = f.flag({"mlp_bias"}, false);
  spec.block.mlp.gated = false;
  spec.block.norm = NormKind::kLayer;
  spec.head.norm = NormKind::kLayer;
  return transformer_graph(spec);
}

ModelGraph read_gpt_oss(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = decoder(f, request, kGptOss);
  const bool bias = f.flag({"attention_bias"}, true);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  spec.block.attention.sinks = true;
  const int window = f.take({"sliding_window"}, 128, 1, kMaxTokens);
  std::vector<bool> sliding;
  for (int i = 0; i < spec.layers; ++i) sliding.push_back(i % 2 == 0);
  set_windows(spec, window, detail::sliding_by_type(f, spec.layers).value_or(sliding));
  spec.moe = read_experts(f, 128, 4);
  spec.moe->width = f.need(fields::kWidth, kGptOss.width);
  spec.moe->router_bias = true;
  spec.moe->expert_bias = true;
  spec.sparse = every_layer(spec);
  return transformer_graph(spec);
}

}  // namespace towtank
