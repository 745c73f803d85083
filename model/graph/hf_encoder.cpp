// SPDX-License-Identifier: Apache-2.0
// BERT and ViT: bidirectional encoders. Class defaults as in transformers 4.5x,
// models/<family>/configuration_<family>.py.
#include <algorithm>

#include "model/graph/hf_decoder.h"

namespace towtank {
namespace {

using detail::DecoderDefaults;

/// What BERT and ViT share: LayerNorms, biases, no rotary positions, no causal mask.
BlockSpec encoder_block(const HfFields& f) {
  const DecoderDefaults defaults{
      .vocabulary = 30522, .hidden = 768, .width = 3072, .layers = 12, .heads = 12};
  BlockSpec block;
  block.hidden = f.need(fields::kHidden, defaults.hidden);
  detail::read_heads(f, block.hidden, defaults, block.attention);
  block.norm = NormKind::kLayer;
  block.attention.qkv_bias = block.attention.output_bias = true;
  block.attention.rotary = false;
  block.attention.causal = false;
  block.mlp = {.width = f.need(fields::kWidth, defaults.width), .gated = false, .bias = true};
  return block;
}

/// The first token through one square product: BERT's pooler.
LayerKind pooler_kind(int hidden) {
  LayerKind kind;
  kind.name = "pooler";
  kind.ops.push_back(product_op("pooler", Split::kReplicate, 1, hidden, hidden, true));
  return kind;
}

/// Dense, activation and norm before the tied vocabulary product.
LayerKind masked_word_head(int hidden, int vocabulary, int tokens) {
  const double s = tokens;
  LayerKind kind;
  kind.name = "masked word head";
  Op dense = product_op("transform", Split::kReplicate, s, hidden, hidden, true);
  dense.saved = {saved_tensor(s * hidden, Split::kSequence),
                 saved_tensor(s * hidden, Split::kReplicate)};
  kind.ops.push_back(std::move(dense));
  kind.ops.push_back(memory_op_spec("transform_activation", OpKind::kElementwise, Split::kReplicate,
                                    2 * s * hidden, 3 * s * hidden));
  HeadSpec head;
  head.hidden = hidden;
  head.vocabulary = vocabulary;
  head.norm = NormKind::kLayer;
  head.tied = true;
  head.bias = true;
  LayerKind product = head_kind(head, tokens);
  for (Op& op : product.ops) kind.ops.push_back(std::move(op));
  kind.collectives = std::move(product.collectives);
  return kind;
}

void add_beyond_total(ModelGraph& graph, LayerId id) {
  graph.layers[id].beyond_total = true;
  for (const Op& op : graph.kinds[graph.layers[id].kind].ops) {
    graph.mtp_parameters += op.parameters + op.replicated_parameters;
  }
}

void add_blocks(ModelGraph& graph, const BlockSpec& block, int layers, int tokens) {
  const double elements = static_cast<double>(tokens) * block.hidden;
  const LayerKindId kind = graph.kinds.push_back(block_kind("encoder", block, tokens));
  for (int i = 0; i < layers; ++i) {
    append_layer(graph, "layer." + std::to_string(i), kind, Pin::kFree, elements);
  }
}

/// How an image becomes tokens.
struct Patches {
  int image, patch, channels;
  int count;  ///< of patches; a class token stands before them
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{channels} * patch * patch; }
};

/// Patches through one product, a class token and positions.
LayerKind patch_embedding(int hidden, const Patches& patches) {
  LayerKind kind;
  kind.name = "patches";
  kind.ops.push_back(
      product_op("patches", Split::kReplicate, patches.count, patches.elements(), hidden, true));
  const double tokens = patches.count + 1;
  Op positions = memory_op_spec("positions", OpKind::kEmbedding, Split::kReplicate,
                                3 * tokens * hidden, 2 * tokens * hidden);
  positions.parameters = (tokens + 1) * hidden;  // a row each and the class token
  kind.ops.push_back(std::move(positions));
  return kind;
}

Patches read_patches(const HfFields& f, const HfRequest& request) {
  Patches p{};
  p.image = f.take({"image_size"}, 224, 1, 1 << 13);
  p.patch = f.take({"patch_size"}, 16, 1, 1 << 13);
  p.channels = f.take({"num_channels"}, 3, 1, 1 << 10);
  const int side = std::max(1, p.image / p.patch);
  p.count = side * side;
  if (p.image % p.patch != 0) {
    f.contradiction("image_size = " + std::to_string(p.image) +
                    " does not divide by patch_size = " + std::to_string(p.patch));
  }
  const int tokens = p.count + 1;
  if (request.sequence_length > 0 && request.sequence_length != tokens) {
    f.fault({"--sequence", std::to_string(request.sequence_length) + " tokens do not fit vit",
             "an image of " + std::to_string(p.image) + " with patches of " +
                 std::to_string(p.patch) + " has " + std::to_string(tokens) + " tokens",
             "Leave it out."});
  }
  return p;
}

int labels_of(const HfFields& f) {
  if (const auto count = f.maybe({"num_labels"})) return *count;
  if (const auto names = f.find({"id2label"}); names && names->is_object()) {
    return static_cast<int>(
        std::max<std::size_t>(1, std::min<std::size_t>(names->size(), 1 << 24)));
  }
  return f.take({"num_labels"}, 2);
}

}  // namespace

ModelGraph read_bert(const HfFields& f, const HfRequest& request) {
  BlockSpec block = encoder_block(f);
  block.dropout = f.rate({"hidden_dropout_prob"}, 0.1) > 0;
  const int layers = f.need(fields::kLayers, 12, kMaxLayers);
  EmbeddingSpec embedding;
  embedding.hidden = block.hidden;
  embedding.vocabulary = f.need(fields::kVocabulary, 30522, kMaxVocabulary);
  embedding.positions = f.need(fields::kPositions, 512, kMaxTokens);
  embedding.token_types = f.take({"type_vocab_size"}, 2, 0);
  embedding.norm = NormKind::kLayer;
  embedding.dropout = block.dropout;
  const int tokens = hf_tokens(f, request, embedding.positions);
  if (!f.tied(true)) {
    f.contradiction("tie_word_embeddings = false is not understood for bert");
  }
  ModelGraph graph;
  graph.family = f.family();
  graph.sample_tokens = tokens;
  graph.sample_shape = {tokens};
  const double elements = static_cast<double>(tokens) * block.hidden;
  append_layer(graph, "embedding", graph.kinds.push_back(embedding_kind(embedding, tokens)),
               Pin::kFirst, 0);
  add_blocks(graph, block, layers, tokens);
  const LayerId last{static_cast<std::int32_t>(graph.layers.size()) - 1};
  append_layer(graph, "pooler", graph.kinds.push_back(pooler_kind(block.hidden)), Pin::kLast,
               elements);
  const LayerId head = append_layer(
      graph, "masked word head",
      graph.kinds.push_back(masked_word_head(block.hidden, embedding.vocabulary, tokens)),
      Pin::kLast, elements);
  graph.edges.back().from = last;
  add_beyond_total(graph, head);
  graph.tied_embedding = true;
  graph.tied_parameters = static_cast<double>(embedding.vocabulary) * block.hidden;
  f.assume("training head: masked words, tied to the embedding; not in the parameter total");
  return graph;
}

ModelGraph read_vit(const HfFields& f, const HfRequest& request) {
  BlockSpec block = encoder_block(f);
  block.attention.qkv_bias = f.flag({"qkv_bias"}, true);
  block.dropout = f.rate({"hidden_dropout_prob"}, 0.0) > 0;
  const int layers = f.need(fields::kLayers, 12, kMaxLayers);
  const Patches patches = read_patches(f, request);
  const int tokens = patches.count + 1;
  const int labels = labels_of(f);
  ModelGraph graph;
  graph.family = f.family();
  graph.sample_tokens = tokens;
  graph.sample_shape = {patches.channels, patches.image, patches.image};
  const double elements = static_cast<double>(tokens) * block.hidden;
  append_layer(graph, "patches", graph.kinds.push_back(patch_embedding(block.hidden, patches)),
               Pin::kFirst, 0);
  add_blocks(graph, block, layers, tokens);
  LayerKind head;
  head.name = "classifier";
  head.ops.push_back(norm_op("norm", NormKind::kLayer, block.hidden, tokens, true));
  head.ops.push_back(product_op("classifier", Split::kReplicate, 1, block.hidden, labels, true));
  append_layer(graph, "classifier", graph.kinds.push_back(std::move(head)), Pin::kLast, elements);
  return graph;
}

}  // namespace towtank
