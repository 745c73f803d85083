// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the tests of model/graph share: configs as text, rules as two switches, sums over ranks.
#include <string>
#include <vector>

#include "model/graph/hf_import.h"
#include "model/graph/shard.h"

namespace towtank::graph_testing {

inline ModelGraph import_text(const std::string& config, int sequence_length = 2048) {
  return import_model(JsonFile::parse(config, "cfg.json"), sequence_length);
}

inline ModelGraph import_example(const std::string& name, int sequence_length = 2048) {
  return import_model(
      JsonFile::load(std::string(TOWTANK_SOURCE_DIR) + "/examples/models/" + name + "/config.json"),
      sequence_length);
}

/// Nothing padded, kappa 6, K and V may be replicated.
inline FrameworkRules rules(bool fused_attention, bool dropout) {
  FrameworkRules r;
  r.fused_attention.value = fused_attention;
  r.dropout.value = dropout;
  r.fused_cross_entropy.value = true;
  r.logits_bytes.value = 6;
  r.vocabulary_multiple.value = 1;
  r.kv_replication.value = true;
  r.elementwise_kernels.value = 1;
  return r;
}

inline const LayerKind& kind_of(const ModelGraph& graph, int layer) {
  return graph.kinds[graph.layers[LayerId{layer}].kind];
}
/// The first layer that a pipeline may move.
inline const LayerKind& block_of(const ModelGraph& graph) { return kind_of(graph, 1); }

inline LocalLayer shard_bf16(const LayerKind& kind, const ShardDegrees& degrees,
                             const FrameworkRules& r) {
  return shard(kind, degrees, r, DType::kBf16, 1.0);
}

inline double saved_bytes_of(const LocalLayer& layer) {
  return static_cast<double>(layer.saved.without_recompute().value);
}

inline double group_bytes(const LocalLayer& layer, RecomputeGroup group) {
  return static_cast<double>(layer.saved.by_group[static_cast<std::size_t>(group)].value);
}

inline const LocalOp& op_named(const LocalLayer& layer, const std::string& name) {
  for (const LocalOp& op : layer.ops) {
    if (op.op->name == name) return op;
  }
  throw std::out_of_range("no op " + name);
}

inline const LocalCollective& collective_named(const LocalLayer& layer, const std::string& name) {
  for (const LocalCollective& c : layer.collectives) {
    if (c.collective->name == name) return c;
  }
  throw std::out_of_range("no collective " + name);
}

/// h, a, L of a GPT with learned positions and four hidden sizes in its MLP.
inline std::string gpt_config(int h, int a, int layers, int vocabulary = 51200,
                              int positions = 2048) {
  return R"({"model_type": "gpt2", "n_embd": )" + std::to_string(h) + R"(, "n_head": )" +
         std::to_string(a) + R"(, "n_layer": )" + std::to_string(layers) + R"(, "n_positions": )" +
         std::to_string(positions) + R"(, "vocab_size": )" + std::to_string(vocabulary) + "}";
}

inline const std::string kLlama3{
    R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "vocab_size": 128256})"};

}  // namespace towtank::graph_testing
