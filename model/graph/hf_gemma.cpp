// SPDX-License-Identifier: Apache-2.0
// Gemma: query width differs from the hidden size, the head is always the embedding's table. Class
// defaults as in transformers 4.5x, models/gemma*/configuration_gemma*.py.
#include "model/graph/hf_decoder.h"

namespace towtank {
namespace {

using detail::decoder;
using detail::DecoderDefaults;

constexpr DecoderDefaults kGemma{.vocabulary = 256000,
                                 .hidden = 3072,
                                 .width = 24576,
                                 .layers = 28,
                                 .heads = 16,
                                 .kv_heads = 16,
                                 .head_width = 256,
                                 .tied = true};
constexpr DecoderDefaults kGemma2{.vocabulary = 256000,
                                  .hidden = 2304,
                                  .width = 9216,
                                  .layers = 26,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_width = 256,
                                  .tied = true};
constexpr DecoderDefaults kGemma3{.vocabulary = 262208,
                                  .hidden = 2304,
                                  .width = 9216,
                                  .layers = 26,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_width = 256,
                                  .tied = true};

TransformerSpec gemma(const HfFields& f, const HfRequest& request,
                      const DecoderDefaults& defaults) {
  TransformerSpec spec = decoder(f, request, defaults);
  spec.block.mlp.width = f.need(fields::kWidth, defaults.width);
  const bool bias = f.flag({"attention_bias"}, false);
  spec.block.attention.qkv_bias = spec.block.attention.output_bias = bias;
  return spec;
}

/// Every `pattern`-th layer sees the whole sequence, the others a window.
void read_local_layers(const HfFields& f, TransformerSpec& spec, int pattern) {
  const int window = f.take({"sliding_window"}, 4096, 1, kMaxTokens);
  const auto by_type = detail::sliding_by_type(f, spec.layers);
  for (int i = 0; i < spec.layers; ++i) {
    const bool local = by_type ? (*by_type)[static_cast<std::size_t>(i)] : (i + 1) % pattern != 0;
    spec.windows.push_back(local ? std::optional<int>(window) : std::nullopt);
  }
}

}  // namespace

ModelGraph read_gemma(const HfFields& f, const HfRequest& request) {
  return transformer_graph(gemma(f, request, kGemma));
}

ModelGraph read_gemma2(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = gemma(f, request, kGemma2);
  spec.block.post_norms = true;
  read_local_layers(f, spec, 2);
  return transformer_graph(spec);
}

ModelGraph read_gemma3(const HfFields& f, const HfRequest& request) {
  TransformerSpec spec = gemma(f, request, kGemma3);
  spec.block.post_norms = true;
  spec.block.attention.head_norm = true;
  spec.block.attention.causal = !f.flag({"use_bidirectional_attention"}, false);
  const int pattern = f.take({"sliding_window_pattern", "_sliding_window_pattern"}, 6, 1);
  read_local_layers(f, spec, pattern);
  return transformer_graph(spec);
}

}  // namespace towtank
