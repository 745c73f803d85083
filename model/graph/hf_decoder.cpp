// SPDX-License-Identifier: Apache-2.0
#include "model/graph/hf_decoder.h"

#include <algorithm>
#include <string>

namespace towtank::detail {
namespace {

void refuse_division(const HfFields& f, const std::string& what, int size, const std::string& by,
                     int parts) {
  f.contradiction(what + " = " + std::to_string(size) + " does not divide by " + by + " = " +
                  std::to_string(parts));
}

int even_heads(const HfFields& f, int hidden, int heads) {
  if (hidden % heads != 0) {
    refuse_division(f, "hidden_size", hidden, "num_attention_heads", heads);
  }
  return std::max(1, hidden / heads);
}

}  // namespace

void read_heads(const HfFields& f, int hidden, const DecoderDefaults& defaults,
                AttentionSpec& attention) {
  attention.heads = f.need(fields::kHeads, defaults.heads, 1 << 16);
  if (defaults.latent) {
    f.object().ignore("head_dim");
    for (const std::string_view name : fields::kKvHeads) f.object().ignore(name);
    attention.kv_heads = attention.heads;
    return;
  }
  if (!defaults.grouped) {
    attention.kv_heads = attention.heads;
    attention.head_width = even_heads(f, hidden, attention.heads);
    return;
  }
  const int kv = defaults.kv_heads > 0 ? defaults.kv_heads : attention.heads;
  attention.kv_heads = f.take(fields::kKvHeads, kv, 1, 1 << 16);
  if (attention.heads % attention.kv_heads != 0) {
    refuse_division(f, "num_attention_heads", attention.heads, "num_key_value_heads",
                    attention.kv_heads);
  }
  if (defaults.head_width > 0) {
    attention.head_width = f.take({"head_dim", "kv_channels"}, defaults.head_width, 1, 1 << 16);
  } else if (const auto width = f.maybe({"head_dim", "kv_channels"}, 1 << 16)) {
    attention.head_width = *width;
  } else {
    attention.head_width = even_heads(f, hidden, attention.heads);
  }
}

std::vector<bool> sparse_layers(const HfFields& f, int layers) {
  const int step = f.take({"decoder_sparse_step"}, 1, 1, kMaxLayers);
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i) sparse[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (const auto list = f.find({"mlp_only_layers"})) {
    for (const JsonReader& item : list->elements()) {
      const auto i = item.as_integer({.low = 0, .high = static_cast<double>(layers - 1)});
      sparse[static_cast<std::size_t>(i)] = false;
    }
  }
  return sparse;
}

std::optional<std::vector<bool>> sliding_by_type(const HfFields& f, int layers) {
  const auto list = f.find({"layer_types"});
  if (!list) return std::nullopt;
  std::vector<bool> sliding;
  for (const JsonReader& item : list->elements()) {
    const std::string type = item.as_string();
    if (type != "sliding_attention" && type != "full_attention") {
      item.fault("\"" + type + "\" is not a kind of layer that is understood",
                 "known: full_attention, sliding_attention");
    }
    sliding.push_back(type == "sliding_attention");
  }
  if (sliding.size() != static_cast<std::size_t>(layers)) {
    list->fault("has " + std::to_string(sliding.size()) + " layers",
                "num_hidden_layers = " + std::to_string(layers));
    sliding.resize(static_cast<std::size_t>(layers));
  }
  return sliding;
}

TransformerSpec decoder(const HfFields& f, const HfRequest& request,
                        const DecoderDefaults& defaults) {
  TransformerSpec spec;
  spec.family = f.family();
  spec.tokens = hf_tokens(f, request, 0);
  spec.block.hidden = f.need(fields::kHidden, defaults.hidden);
  spec.layers = f.need(fields::kLayers, defaults.layers, kMaxLayers);
  read_heads(f, spec.block.hidden, defaults, spec.block.attention);
  spec.head.vocabulary = f.need(fields::kVocabulary, defaults.vocabulary, kMaxVocabulary);
  spec.head.tied = f.tied(defaults.tied);
  spec.head.hidden = spec.block.hidden;
  spec.head.norm = spec.block.norm;
  spec.embedding.hidden = spec.block.hidden;
  spec.embedding.vocabulary = spec.head.vocabulary;
  return spec;
}

}  // namespace towtank::detail
