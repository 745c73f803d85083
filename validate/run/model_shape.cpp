// SPDX-License-Identifier: Apache-2.0
#include "validate/run/model_shape.h"

#include <cmath>
#include <map>
#include <string_view>

namespace towtank {
namespace {

using OpsByName = std::map<std::string_view, const Op*>;

std::int64_t whole(double x) { return std::llround(x); }

/// A parameter beyond inner x columns is a bias.
bool has_bias(const Op& op) {
  const double weights = static_cast<double>(op.inner) * static_cast<double>(op.columns) *
                         static_cast<double>(op.groups);
  return op.parameters + op.replicated_parameters > weights;
}

class ShapeReader {
 public:
  ShapeReader(const ModelGraph& graph, const std::string& where, Faults& faults)
      : graph_(graph), where_(where), faults_(faults) {}

  ModelShape read() {
    ModelShape shape;
    shape.tokens = graph_.sample_tokens;
    shape.tied = graph_.tied_embedding;
    if (shape.tokens == 0) refuse("samples that are not sequences of tokens");
    for (int i = 0; i < static_cast<int>(graph_.layers.size()); ++i) {
      const Layer& layer = graph_.layers[LayerId{i}];
      const LayerKind& kind = graph_.kinds[layer.kind];
      if (layer.beyond_total) refuse("multi-token prediction");
      switch (layer.pin) {
        case Pin::kFirst:
          read_embedding(kind, shape);
          break;
        case Pin::kFree:
          shape.blocks.push_back(block_of(layer.kind));
          break;
        case Pin::kLast:
          read_head(kind, shape);
          break;
      }
    }
    if (shape.vocabulary == 0 || shape.hidden == 0) refuse("a network without embedding and head");
    if (faults_.empty() &&
        std::abs(static_cast<double>(shape.total_parameters()) - graph_.total_parameters()) > 0.5) {
      refuse("a network whose layers have other parameters than those of GPT-2 and Llama");
    }
    return shape;
  }

 private:
  void refuse(const std::string& what) {
    faults_.add({where_, "towtank-runtime does not build " + what,
                 "it builds GPT-2 and Llama-like decoders", ""});
  }

  OpsByName ops_of(const LayerKind& kind, std::initializer_list<std::string_view> known) {
    OpsByName ops;
    for (const Op& op : kind.ops) {
      bool is_known = op.dropout_only;
      for (const std::string_view name : known) is_known = is_known || op.name == name;
      if (is_known) {
        ops[op.name] = &op;
      } else {
        refuse("the op \"" + op.name + "\" of the layer kind \"" + kind.name + "\"");
      }
    }
    return ops;
  }

  void read_embedding(const LayerKind& kind, ModelShape& shape) {
    const OpsByName ops = ops_of(kind, {"embedding", "positions"});
    if (const auto found = ops.find("embedding"); found != ops.end()) {
      shape.vocabulary = found->second->columns;
      shape.hidden = whole(found->second->parameters) / std::max<std::int64_t>(1, shape.vocabulary);
    }
    if (const auto found = ops.find("positions"); found != ops.end()) {
      shape.positions = whole(found->second->parameters) / std::max<std::int64_t>(1, shape.hidden);
    }
  }

  void read_head(const LayerKind& kind, ModelShape& shape) {
    const OpsByName ops = ops_of(kind, {"norm", "final_norm", "head", "cross_entropy"});
    for (const auto& [name, op] : ops) {
      if (op->kind == OpKind::kNorm) {
        shape.final_layer_norm = op->parameters > 1.5 * static_cast<double>(shape.hidden);
      }
    }
    if (ops.contains("head") && graph_.tied_embedding && ops.at("head")->parameters > 0) {
      refuse("a bias of the head");
    }
  }

  const BlockShape& block_of(LayerKindId id) {
    const auto [found, is_new] = blocks_.try_emplace(id.value);
    if (is_new) found->second = read_block(graph_.kinds[id]);
    return found->second;
  }

  BlockShape read_block(const LayerKind& kind) {
    const OpsByName ops = ops_of(
        kind, {"norm1", "qkv", "head_norm", "rotary", "attention", "projection",
               "attention_residual", "norm2", "fc1", "activation", "fc2", "mlp_residual", "router",
               "choose", "permute", "expert_fc1", "expert_activation", "expert_fc2", "unpermute"});
    BlockShape b;
    const bool routed = ops.contains("router");
    for (const std::string_view name :
         {std::string_view("norm1"), std::string_view("qkv"), std::string_view("attention"),
          std::string_view("projection"), std::string_view("norm2"),
          std::string_view(routed ? "expert_fc1" : "fc1"),
          std::string_view(routed ? "expert_fc2" : "fc2")}) {
      if (!ops.contains(name)) {
        refuse("a block without \"" + std::string(name) + "\"");
        return b;
      }
    }
    const Op& attention = *ops.at("attention");
    if (attention.parameters > 0) refuse("attention sinks or relative positions");
    if (!attention.causal) refuse("attention that is not causal");
    b.heads = attention.heads;
    b.kv_heads = attention.kv_heads;
    b.head_width = attention.head_width;
    b.window = attention.window;
    b.layer_norm = ops.at("norm1")->parameters > 1.5 * static_cast<double>(ops.at("qkv")->inner);
    b.qkv_bias = has_bias(*ops.at("qkv"));
    b.projection_bias = has_bias(*ops.at("projection"));
    b.head_norm = ops.contains("head_norm");
    b.rotary = ops.contains("rotary");
    const Op& up = *ops.at(routed ? "expert_fc1" : "fc1");
    const Op& down = *ops.at(routed ? "expert_fc2" : "fc2");
    b.width = down.inner;
    b.gated = up.columns == 2 * down.inner;
    b.mlp_bias = has_bias(up);
    b.relu = !routed && !b.gated && up.saved.empty();
    if (routed) {
      b.experts = up.groups;
      b.chosen = whole(up.rows / std::max(1.0, static_cast<double>(graph_.sample_tokens)));
      if (b.mlp_bias || has_bias(*ops.at("router"))) refuse("biases of experts or of the router");
    }
    return b;
  }

  const ModelGraph& graph_;
  const std::string& where_;
  Faults& faults_;
  std::map<int, BlockShape> blocks_;
};

std::int64_t block_parameters(const BlockShape& b, std::int64_t hidden) {
  const std::int64_t q = b.heads * b.head_width;
  const std::int64_t u = b.kv_heads * b.head_width;
  std::int64_t n = 2 * (b.layer_norm ? 2 : 1) * hidden;
  n += hidden * (q + 2 * u) + (b.qkv_bias ? q + 2 * u : 0);
  n += q * hidden + (b.projection_bias ? hidden : 0);
  n += b.head_norm ? 2 * b.head_width : 0;
  const std::int64_t inputs = (b.gated ? 2 : 1) * b.width;
  if (b.experts > 0)
    return n + hidden * b.experts + b.experts * (hidden * inputs + b.width * hidden);
  return n + hidden * inputs + b.width * hidden + (b.mlp_bias ? inputs + hidden : 0);
}

}  // namespace

std::int64_t ModelShape::total_parameters() const {
  std::int64_t n = (tied ? 1 : 2) * vocabulary * hidden + positions * hidden;
  n += (final_layer_norm ? 2 : 1) * hidden;
  for (const BlockShape& b : blocks) n += block_parameters(b, hidden);
  return n;
}

ModelShape model_shape(const ModelGraph& graph, const std::string& where, Faults& faults) {
  return ShapeReader(graph, where, faults).read();
}

}  // namespace towtank
