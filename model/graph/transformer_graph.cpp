// SPDX-License-Identifier: Apache-2.0
#include "model/graph/transformer_graph.h"

#include <map>
#include <utility>

namespace towtank {
namespace {

std::string kind_name(bool sparse, const std::optional<int>& window) {
  std::string name = sparse ? "moe" : "decoder";
  if (window) name += " window " + std::to_string(*window);
  return name;
}

/// Makes each different block once.
class Blocks {
 public:
  Blocks(ModelGraph& graph, const TransformerSpec& spec) : graph_(graph), spec_(spec) {}

  LayerKindId of(int layer) {
    const auto i = static_cast<std::size_t>(layer);
    const bool sparse = !spec_.sparse.empty() && spec_.sparse[i];
    std::optional<int> window = spec_.windows.empty() ? std::nullopt : spec_.windows[i];
    // A window as long as the sequence hides nothing.
    if (window && *window >= spec_.tokens) window.reset();
    const auto key = std::pair{sparse, window.value_or(0)};
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    const LayerKindId id = graph_.kinds.push_back(
        block_kind(kind_name(sparse, window), block(sparse, window), spec_.tokens));
    made_.emplace(key, id);
    return id;
  }

  [[nodiscard]] BlockSpec block(bool sparse, const std::optional<int>& window) const {
    BlockSpec block = spec_.block;
    block.attention.window = window;
    block.moe = sparse ? spec_.moe : std::nullopt;
    return block;
  }

 private:
  ModelGraph& graph_;
  const TransformerSpec& spec_;
  std::map<std::pair<bool, int>, LayerKindId> made_;
};

void add_mtp(ModelGraph& graph, const TransformerSpec& spec, const BlockSpec& block,
             double elements) {
  const LayerKindId kind =
      graph.kinds.push_back(mtp_kind(block, spec.head.vocabulary, spec.tokens));
  for (const Op& op : graph.kinds[kind].ops) {
    graph.mtp_parameters += spec.mtp_layers * (op.parameters + op.replicated_parameters);
  }
  for (int i = 0; i < spec.mtp_layers; ++i) {
    const LayerId id = append_layer(graph, "mtp." + std::to_string(i), kind, Pin::kLast, elements);
    graph.layers[id].beyond_total = true;
  }
}

}  // namespace

LayerId append_layer(ModelGraph& graph, std::string name, LayerKindId kind, Pin pin,
                     double elements) {
  const LayerId id = graph.layers.push_back({std::move(name), kind, pin, false});
  if (id.value > 0) graph.edges.push_back({LayerId{id.value - 1}, id, elements});
  return id;
}

ModelGraph transformer_graph(const TransformerSpec& spec) {
  ModelGraph graph;
  graph.family = spec.family;
  graph.sample_tokens = spec.tokens;
  graph.sample_shape = {spec.tokens};
  const double elements = static_cast<double>(spec.tokens) * spec.block.hidden;
  const LayerKindId embedding = graph.kinds.push_back(embedding_kind(spec.embedding, spec.tokens));
  append_layer(graph, "embedding", embedding, Pin::kFirst, elements);
  Blocks blocks(graph, spec);
  for (int i = 0; i < spec.layers; ++i) {
    const LayerKindId kind = blocks.of(i);
    append_layer(graph, "layer." + std::to_string(i), kind, Pin::kFree, elements);
  }
  const LayerId last{static_cast<std::int32_t>(graph.layers.size()) - 1};
  const LayerKindId head = graph.kinds.push_back(head_kind(spec.head, spec.tokens));
  append_layer(graph, "head", head, Pin::kLast, elements);
  if (spec.mtp_layers > 0) {
    const bool sparse = !spec.sparse.empty() && spec.sparse.back();
    add_mtp(graph, spec, blocks.block(sparse, std::nullopt), elements);
    // The module after the head reads the last block, not the loss.
    graph.edges[static_cast<std::size_t>(last.value) + 1].from = last;
  }
  graph.tied_embedding = spec.head.tied;
  if (spec.head.tied) {
    graph.tied_parameters = static_cast<double>(spec.head.vocabulary) * spec.head.hidden;
  }
  return graph;
}

}  // namespace towtank
