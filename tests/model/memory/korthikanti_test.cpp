// SPDX-License-Identifier: Apache-2.0
// The memory numbers of Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
// Models", MLSys 2023: four GPT models of the paper's table 3, sequence 2048, fp16 activations with
// dropout and unfused attention, no embeddings.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/json.h"
#include "model/graph/hf_import.h"
#include "model/graph/shard.h"
#include "model/memory/memory.h"

namespace towtank {
namespace memory_korthikanti_test {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr int kSequence = 2048;

struct Row {
  const char* name;
  int b, h, a, layers, t, p, v;
  double states_gib;     // 18 * 12 L h^2 / N
  double none_gib;       // activations, tensor parallel only
  double selective_gib;  // sequence parallel and selective recomputation
};
constexpr std::array<Row, 4> kRows{{
    {"22B", 4, 6144, 64, 48, 8, 1, 1, 45.5625, 59.25, 9.5625},
    {"175B", 1, 12288, 96, 96, 8, 8, 3, 45.5625, 66.84375, 12.3515625},
    {"530B", 1, 20480, 128, 105, 8, 35, 3, 31.640625, 114.0234375, 23.076171875},
    {"1T", 1, 25600, 160, 128, 8, 64, 1, 32.958984375, 131.25, 26.5625},
}};

/// The model's decoder layer, from a Hugging Face config.
LayerKind gpt_block(const Row& r) {
  const std::string config = R"({"model_type": "gpt2", "n_embd": )" + std::to_string(r.h) +
                             R"(, "n_layer": )" + std::to_string(r.layers) + R"(, "n_head": )" +
                             std::to_string(r.a) + R"(, "n_positions": 2048, "vocab_size": 51200})";
  const ModelGraph graph = import_hf_config(JsonFile::parse(config, r.name), kSequence);
  EXPECT_EQ(graph.free_layers(), r.layers);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph.layers.size()); ++i) {
    const Layer& layer = graph.layers[LayerId{i}];
    if (layer.pin == Pin::kFree) return graph.kinds[layer.kind];
  }
  return {};
}

LocalLayer local_block(const LayerKind& kind, const Row& r, bool sequence_parallel) {
  const ShardDegrees degrees{
      .tensor = r.t, .microbatch = r.b, .sequence_parallel = sequence_parallel};
  return shard(kind, degrees, rules_of(Framework::kMegatronDeepSpeed), DType::kFp16, 1.0);
}

/// Microbatches in flight on the first rank, in whole ranks: p (1 + (p-1)/(p v)) interleaved, p
/// with one stage a rank.
double in_flight(const Row& r) { return r.v > 1 ? r.p * (1.0 + (r.p - 1.0) / (r.p * r.v)) : r.p; }

/// In backward, the phase that holds activations.
MemoryBreakdown first_rank(const LocalLayer& layer, const Row& r, RecomputeMode mode,
                           bool sequence_parallel) {
  const std::array<StageLayers, 1> layers{{{&layer, r.layers / r.p, mode}}};
  StageMemoryInput in;
  in.layers = layers;
  in.microbatches_in_flight = in_flight(r);
  in.tensor = r.t;
  in.sequence_parallel = sequence_parallel;
  in.pipelined = r.p > 1;
  const StateBytes states =
      state_bytes(Framework::kMegatron, DType::kBf16, OptimizerKind::kAdam).value;
  return stage_memory_phases(in, rules_of(Framework::kMegatronDeepSpeed), states)[0];
}

double activations_gib(const LayerKind& kind, const Row& r, RecomputeMode mode, bool sequence) {
  const LocalLayer layer = local_block(kind, r, sequence);
  return static_cast<double>(first_rank(layer, r, mode, sequence).activations.value) / kGiB;
}

constexpr double kOneByte = 1.0 / kGiB;  // a rank's activations are rounded up once

TEST(UnitMemoryKorthikanti, ActivationsWithoutRecomputation) {
  for (const Row& r : kRows) {
    EXPECT_NEAR(activations_gib(gpt_block(r), r, RecomputeMode::kNone, false), r.none_gib, kOneByte)
        << r.name;
  }
}

TEST(UnitMemoryKorthikanti, ActivationsWithSequenceParallelAndSelective) {
  for (const Row& r : kRows) {
    EXPECT_NEAR(activations_gib(gpt_block(r), r, RecomputeMode::kSelective, true), r.selective_gib,
                kOneByte)
        << r.name;
  }
}

// 18 bytes of states for the paper's 12 h^2 weights a layer; the graph counts 13 h biases and norms
// as well, of which tensor ranks share 7 h (query, key, value and first MLP biases).
TEST(UnitMemoryKorthikanti, ParametersAndOptimizer) {
  for (const Row& r : kRows) {
    const double h = r.h;
    const LayerKind kind = gpt_block(r);
    LocalLayer layer = local_block(kind, r, true);
    EXPECT_DOUBLE_EQ(layer.dense_parameters, (12 * h * h + 7 * h) / r.t + 6 * h) << r.name;
    layer.dense_parameters = 12 * h * h / r.t;
    const MemoryBreakdown m = first_rank(layer, r, RecomputeMode::kSelective, true);
    const Bytes states = m.parameters + m.gradients + m.optimizer;
    EXPECT_DOUBLE_EQ(static_cast<double>(states.value) / kGiB, r.states_gib) << r.name;
  }
}

// Table 2, activations of a layer in units of s b h bytes.
TEST(UnitMemoryKorthikanti, LayerTotals) {
  for (const Row& r : kRows) {
    const LayerKind kind = gpt_block(r);
    const FrameworkRules& rules = rules_of(Framework::kMegatronDeepSpeed);
    const double unit = static_cast<double>(kSequence) * r.b * r.h;
    const double scores = 5.0 * r.a * kSequence / r.h;
    const double t = r.t;
    const LocalLayer plain = local_block(kind, r, false);
    const LocalLayer sequence = local_block(kind, r, true);
    const auto units = [&](const LocalLayer& layer, RecomputeMode mode) {
      return static_cast<double>(saved_bytes(layer, mode, rules).value) / unit;
    };
    EXPECT_DOUBLE_EQ(units(plain, RecomputeMode::kNone), 10 + 24 / t + scores / t) << r.name;
    EXPECT_DOUBLE_EQ(units(sequence, RecomputeMode::kNone), (34 + scores) / t) << r.name;
    EXPECT_DOUBLE_EQ(units(plain, RecomputeMode::kSelective), 10 + 24 / t) << r.name;
    EXPECT_DOUBLE_EQ(units(sequence, RecomputeMode::kSelective), 34 / t) << r.name;
    EXPECT_DOUBLE_EQ(units(plain, RecomputeMode::kFull), 2) << r.name;
    EXPECT_DOUBLE_EQ(units(sequence, RecomputeMode::kFull), 2 / t) << r.name;
  }
}

// Figure 7, as a percentage of tensor parallelism without recomputation.
struct Percentages {
  double sequence, selective, both, full;
  double tolerance;  // the paper's own rounding of the figure
};
constexpr std::array<Percentages, 4> kPublished{{
    {66.84, 49.42, 16.18, 7.64, 0.1},
    {62.04, 56.53, 18.49, 8.71, 0.1},
    {58.31, 62.04, 20.27, 9.42, 0.14},
    {58.31, 62.04, 20.27, 9.42, 0.14},
}};

TEST(UnitMemoryKorthikanti, PercentagesOfTheFigure) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& r = kRows[i];
    const LayerKind kind = gpt_block(r);
    const double none = activations_gib(kind, r, RecomputeMode::kNone, false);
    const auto percent = [&](RecomputeMode mode, bool sequence) {
      return 100 * activations_gib(kind, r, mode, sequence) / none;
    };
    const Percentages& p = kPublished[i];
    EXPECT_NEAR(percent(RecomputeMode::kNone, true), p.sequence, p.tolerance) << r.name;
    EXPECT_NEAR(percent(RecomputeMode::kSelective, false), p.selective, p.tolerance) << r.name;
    EXPECT_NEAR(percent(RecomputeMode::kSelective, true), p.both, p.tolerance) << r.name;
    EXPECT_NEAR(percent(RecomputeMode::kFull, false), p.full, p.tolerance) << r.name;
  }
}

}  // namespace memory_korthikanti_test
}  // namespace towtank
