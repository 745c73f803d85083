// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V2 and V3: latent attention, many small experts, multi-token prediction. Class defaults
// as in transformers 4.5x, models/deepseek_v*/configuration_deepseek_v*.py.
#include <algorithm>

#include "model/graph/hf_decoder.h"

namespace towtank {
namespace {

using detail::DecoderDefaults;

struct DeepseekDefaults {
  DecoderDefaults decoder;
  int query_rank, key_value_rank, nope, rope, value;
  int experts, chosen, expert_width, shared, dense_layers;
};

constexpr DeepseekDefaults kV2{
    .decoder = {.vocabulary = 32000, .hidden = 4096, .width = 11008, .layers = 32, .heads = 32},
    .query_rank = 1536,
    .key_value_rank = 512,
    .nope = 128,
    .rope = 64,
    .value = 128,
    .experts = 64,
    .chosen = 6,
    .expert_width = 1407,
    .shared = 2,
    .dense_layers = 0};
constexpr DeepseekDefaults kV3{
    .decoder = {.vocabulary = 129280, .hidden = 7168, .width = 18432, .layers = 61, .heads = 128},
    .query_rank = 1536,
    .key_value_rank = 512,
    .nope = 128,
    .rope = 64,
    .value = 128,
    .experts = 256,
    .chosen = 8,
    .expert_width = 2048,
    .shared = 1,
    .dense_layers = 3};

LatentSpec read_latent(const HfFields& f, const DeepseekDefaults& defaults) {
  LatentSpec latent;
  // null: queries are projected directly; absent: the class's own rank.
  if (!f.stated({"q_lora_rank"}) || f.find({"q_lora_rank"})) {
    latent.query_rank = f.take({"q_lora_rank"}, defaults.query_rank);
  }
  latent.key_value_rank = f.take({"kv_lora_rank"}, defaults.key_value_rank);
  latent.nope_width = f.take({"qk_nope_head_dim"}, defaults.nope, 1, 1 << 16);
  latent.rope_width = f.take({"qk_rope_head_dim"}, defaults.rope, 1, 1 << 16);
  latent.value_width = f.take({"v_head_dim"}, defaults.value, 1, 1 << 16);
  return latent;
}

MoeSpec read_moe(const HfFields& f, const DeepseekDefaults& defaults) {
  MoeSpec moe;
  moe.experts = f.take({"n_routed_experts", "num_local_experts", "num_experts"}, defaults.experts,
                       1, 1 << 16);
  moe.chosen = f.take(fields::kChosen, defaults.chosen, 1, 1 << 16);
  if (moe.chosen > moe.experts) {
    f.contradiction("num_experts_per_tok = " + std::to_string(moe.chosen) +
                    " is more than n_routed_experts = " + std::to_string(moe.experts));
  }
  moe.width = f.take({"moe_intermediate_size"}, defaults.expert_width);
  // A file that says null has no shared expert.
  const int shared = f.stated({"n_shared_experts"}) && !f.find({"n_shared_experts"})
                         ? 0
                         : f.take({"n_shared_experts"}, defaults.shared, 0, 1 << 10);
  const std::int64_t width = std::int64_t{shared} * moe.width;
  if (width > kMaxWidth) {
    f.contradiction("n_shared_experts * moe_intermediate_size = " + std::to_string(width) +
                    " is too large");
  } else {
    moe.shared_width = static_cast<int>(width);
  }
  return moe;
}

std::vector<bool> read_sparse(const HfFields& f, int layers, int dense_default) {
  const int dense = f.take({"first_k_dense_replace"}, dense_default, 0, kMaxLayers);
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  const auto frequency = f.find({"moe_layer_freq"});
  if (frequency && frequency->is_array()) {
    const auto items = frequency->elements();
    if (items.size() != sparse.size()) {
      frequency->fault("has " + std::to_string(items.size()) + " layers",
                       "num_hidden_layers = " + std::to_string(layers));
    }
    for (std::size_t i = 0; i < std::min(items.size(), sparse.size()); ++i) {
      sparse[i] = items[i].as_integer({.low = 0, .high = 1}) == 1;
    }
    return sparse;
  }
  const int step = f.take({"moe_layer_freq"}, 1, 1, kMaxLayers);
  for (int i = 0; i < layers; ++i) {
    sparse[static_cast<std::size_t>(i)] = i >= dense && i % step == 0;
  }
  return sparse;
}

TransformerSpec deepseek(const HfFields& f, const HfRequest& request,
                         const DeepseekDefaults& defaults) {
  DecoderDefaults sizes = defaults.decoder;
  sizes.latent = true;
  TransformerSpec spec = detail::decoder(f, request, sizes);
  spec.block.mlp.width = f.need(fields::kWidth, sizes.width);
  spec.block.attention.latent = read_latent(f, defaults);
  spec.moe = read_moe(f, defaults);
  spec.sparse = read_sparse(f, spec.layers, defaults.dense_layers);
  if (f.flag({"attention_bias"}, false)) {
    f.contradiction("attention_bias = true is not understood with latent attention",
                    "Set it to false.");
  }
  return spec;
}

}  // namespace

ModelGraph read_deepseek_v2(const HfFields& f, const HfRequest& request) {
  return transformer_graph(deepseek(f, request, kV2));
}

ModelGraph read_deepseek_v3(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = deepseek(f, request, kV3);
  // Balance without auxiliary loss keeps one bias per expert.
  spec.moe->score_bias = f.text({"topk_method"}, "noaux_tc") == "noaux_tc";
  spec.mtp_layers = f.take({"num_nextn_predict_layers"}, 0, 0, 64);
  return transformer_graph(spec);
}

}  // namespace towtank
