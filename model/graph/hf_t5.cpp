// SPDX-License-Identifier: Apache-2.0
// T5: an encoder and a decoder with cross attention. Class defaults as in transformers 4.5x,
// models/t5/configuration_t5.py.
#include "model/graph/hf_families.h"
#include "model/graph/transformer_graph.h"

namespace towtank {
namespace {

BlockSpec t5_block(const HfFields& f) {
  BlockSpec block;
  block.hidden = f.need(fields::kHidden, 512);
  AttentionSpec& a = block.attention;
  a.heads = a.kv_heads = f.need(fields::kHeads, 8, 1 << 16);
  a.head_width = f.take({"d_kv"}, 64, 1, 1 << 16);
  a.rotary = false;
  block.mlp.width = f.need(fields::kWidth, 2048);
  block.mlp.gated = f.text({"feed_forward_proj"}, "relu").starts_with("gated-");
  block.dropout = f.rate({"dropout_rate"}, 0.1) > 0;
  return block;
}

/// The first layer of a stack holds the position biases that all of them use.
LayerKind first_block(std::string name, BlockSpec block, int buckets, int tokens, int memory) {
  block.attention.relative_buckets = buckets;
  return block_kind(std::move(name), block, tokens, memory);
}

struct T5Sizes {
  int layers, decoder_layers, buckets, tokens;
};

/// Returns the encoder's last layer.
LayerId add_encoder(ModelGraph& graph, BlockSpec block, const T5Sizes& size) {
  block.attention.causal = false;
  const double elements = static_cast<double>(size.tokens) * block.hidden;
  const LayerKindId first =
      graph.kinds.push_back(first_block("encoder first", block, size.buckets, size.tokens, 0));
  const LayerKindId rest =
      size.layers > 1 ? graph.kinds.push_back(block_kind("encoder", block, size.tokens)) : first;
  LayerId last;
  for (int i = 0; i < size.layers; ++i) {
    last = append_layer(graph, "encoder." + std::to_string(i), i == 0 ? first : rest, Pin::kFree,
                        elements);
  }
  // The norm after the last layer belongs to it; every decoder layer reads its output.
  LayerKind end = graph.kinds[graph.layers[last].kind];
  end.name += " last";
  Op norm = norm_op("final_norm", block.norm, block.hidden, size.tokens, true);
  norm.saved.push_back(saved_tensor(elements, Split::kSequence, RecomputeGroup::kNorm));
  end.ops.push_back(std::move(norm));
  graph.layers[last].kind = graph.kinds.push_back(std::move(end));
  return last;
}

void add_decoder(ModelGraph& graph, BlockSpec block, const T5Sizes& size, LayerId embedding,
                 LayerId encoder) {
  block.cross_attention = true;
  const double elements = static_cast<double>(size.tokens) * block.hidden;
  const LayerKindId first = graph.kinds.push_back(
      first_block("decoder first", block, size.buckets, size.tokens, size.tokens));
  const LayerKindId rest =
      size.decoder_layers > 1
          ? graph.kinds.push_back(block_kind("decoder", block, size.tokens, size.tokens))
          : first;
  for (int i = 0; i < size.decoder_layers; ++i) {
    const LayerId id = append_layer(graph, "decoder." + std::to_string(i), i == 0 ? first : rest,
                                    Pin::kFree, elements);
    if (i == 0) graph.edges.back().from = embedding;
    graph.edges.push_back({encoder, id, elements});
  }
}

}  // namespace

ModelGraph read_t5(const HfFields& f, const HfRequest& request) {
  const BlockSpec block = t5_block(f);
  T5Sizes size{};
  size.layers = f.need({"num_layers", "num_hidden_layers", "n_layers", "n_layer"}, 6, kMaxLayers);
  size.decoder_layers = f.maybe({"num_decoder_layers"}, kMaxLayers).value_or(size.layers);
  size.buckets = f.take({"relative_attention_num_buckets"}, 32);
  size.tokens = hf_tokens(f, request, 0);
  f.assume("the decoder reads as many tokens as the encoder");
  HeadSpec head;
  head.hidden = block.hidden;
  head.vocabulary = f.need(fields::kVocabulary, 32128, kMaxVocabulary);
  head.tied = f.tied(true);
  head.norm = block.norm;
  EmbeddingSpec embedding;
  embedding.hidden = block.hidden;
  embedding.vocabulary = head.vocabulary;
  embedding.dropout = block.dropout;
  embedding.lookups = 2;

  ModelGraph graph;
  graph.family = f.family();
  graph.sample_tokens = size.tokens;
  graph.sample_shape = {size.tokens};
  const double elements = static_cast<double>(size.tokens) * block.hidden;
  const LayerId table =
      append_layer(graph, "embedding",
                   graph.kinds.push_back(embedding_kind(embedding, size.tokens)), Pin::kFirst, 0);
  const LayerId encoder = add_encoder(graph, block, size);
  add_decoder(graph, block, size, table, encoder);
  append_layer(graph, "head", graph.kinds.push_back(head_kind(head, size.tokens)), Pin::kLast,
               elements);
  graph.tied_embedding = head.tied;
  if (head.tied) graph.tied_parameters = static_cast<double>(head.vocabulary) * block.hidden;
  return graph;
}

}  // namespace towtank
