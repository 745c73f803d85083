// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stages of a decoder from its shape: what memory tests need of a model, without a config file.
#include <array>
#include <vector>

#include "model/graph/blocks.h"
#include "model/graph/shard.h"
#include "model/memory/memory.h"

namespace towtank::testing {

struct DecoderShape {
  int hidden = 0, layers = 0, heads = 0, kv_heads = 0, width = 0, vocabulary = 0;
};
inline constexpr DecoderShape kLlama7b{4096, 32, 32, 32, 11008, 32000};
inline constexpr DecoderShape kLlama8b{4096, 32, 32, 8, 14336, 128256};
inline constexpr DecoderShape kLlama70b{8192, 80, 64, 8, 28672, 128256};

/// The kinds of a gated, untied decoder with RMS norms.
struct DecoderKinds {
  LayerKind embedding, block, head;
};

[[nodiscard]] inline DecoderKinds decoder_kinds(const DecoderShape& shape, int tokens) {
  BlockSpec block;
  block.hidden = shape.hidden;
  block.attention.heads = shape.heads;
  block.attention.kv_heads = shape.kv_heads;
  block.attention.head_width = shape.hidden / shape.heads;
  block.mlp = {.width = shape.width};
  EmbeddingSpec embedding;
  embedding.hidden = shape.hidden;
  embedding.vocabulary = shape.vocabulary;
  HeadSpec head;
  head.hidden = shape.hidden;
  head.vocabulary = shape.vocabulary;
  head.norm = NormKind::kRms;
  return {embedding_kind(embedding, tokens), block_kind("decoder", block, tokens),
          head_kind(head, tokens)};
}

/// A whole decoder on one pipeline rank. Owns what StageMemoryInput points to.
class DecoderStage {
 public:
  DecoderStage(const DecoderShape& shape, int tokens, const ShardDegrees& degrees, Framework f,
               DType precision, RecomputeMode recompute)
      : kinds_(decoder_kinds(shape, tokens)),
        framework_(f),
        precision_(precision),
        embedding_(shard(kinds_.embedding, degrees, rules_of(f), precision, 1.0)),
        block_(shard(kinds_.block, degrees, rules_of(f), precision, 1.0)),
        head_(shard(kinds_.head, degrees, rules_of(f), precision, 1.0)),
        layers_{{{&embedding_, 1}, {&block_, shape.layers, recompute}, {&head_, 1}}} {
    input.layers = layers_;
    input.tensor = degrees.tensor;
    input.sequence_parallel = degrees.sequence_parallel;
  }
  DecoderStage(const DecoderStage&) = delete;
  DecoderStage& operator=(const DecoderStage&) = delete;

  /// Another stage of the same model.
  void keep(int embeddings, int blocks, int heads) {
    layers_[0].count = embeddings;
    layers_[1].count = blocks;
    layers_[2].count = heads;
  }

  [[nodiscard]] MemoryBreakdown memory() const {
    return stage_memory(input, rules_of(framework_), states());
  }
  [[nodiscard]] std::array<MemoryBreakdown, kMemoryPhaseCount> phases() const {
    return stage_memory_phases(input, rules_of(framework_), states());
  }
  [[nodiscard]] StateBytes states() const {
    return state_bytes(framework_, precision_, OptimizerKind::kAdam).value;
  }
  [[nodiscard]] double parameters() const {
    double sum = 0;
    for (const StageLayers& group : layers_) {
      sum += group.count * (group.layer->dense_parameters + group.layer->expert_parameters);
    }
    return sum;
  }
  [[nodiscard]] const LocalLayer& block() const { return block_; }
  [[nodiscard]] const LocalLayer& head() const { return head_; }

  StageMemoryInput input;

 private:
  DecoderKinds kinds_;
  Framework framework_;
  DType precision_;
  LocalLayer embedding_, block_, head_;
  std::array<StageLayers, 3> layers_;
};

[[nodiscard]] inline double gib(Bytes bytes) {
  return static_cast<double>(bytes.value) / (1024.0 * 1024.0 * 1024.0);
}
/// Device memory as nvidia-smi prints it: 40960 and 81920 MiB.
inline constexpr Bytes kA100Memory40{40960LL * 1024 * 1024};
inline constexpr Bytes kA100Memory80{81920LL * 1024 * 1024};

}  // namespace towtank::testing
