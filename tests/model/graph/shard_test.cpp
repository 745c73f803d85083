// SPDX-License-Identifier: Apache-2.0
// Local shapes, work, traffic and collectives of a layer.
#include <gtest/gtest.h>

#include "tests/model/graph/graph_testing.h"
#include "tests/support/near.h"

namespace towtank::shard_test {
namespace {

using graph_testing::block_of;
using graph_testing::collective_named;
using graph_testing::gpt_config;
using graph_testing::import_example;
using graph_testing::import_text;
using graph_testing::kind_of;
using graph_testing::op_named;
using graph_testing::rules;
using graph_testing::shard_bf16;
using testing::kSameArithmetic;

struct Shape {
  std::int64_t batch, m, n, k;
  friend bool operator==(const Shape&, const Shape&) = default;
};
std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.batch << " x " << s.m << " x " << s.n << " x " << s.k;
}
Shape shape_of(const OpSignature& s) { return {s.batch, s.m, s.n, s.k}; }

TEST(UnitShard, ProductsOfLlama3OverEightRanks) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer =
      shard_bf16(block_of(graph), {.tensor = 8, .microbatch = 2}, rules(true, false));
  const LocalOp& qkv = op_named(layer, "qkv");
  // (4096 + 2 * 1024) / 8 columns; both samples' rows.
  EXPECT_EQ(shape_of(qkv.forward), (Shape{1, 16384, 768, 4096}));
  EXPECT_EQ(shape_of(qkv.input_grad), (Shape{1, 16384, 4096, 768}));
  EXPECT_EQ(shape_of(qkv.weight_grad), (Shape{1, 4096, 768, 16384}));
  EXPECT_EQ(qkv.forward.pass, Pass::kForward);
  EXPECT_EQ(qkv.input_grad.pass, Pass::kInputGrad);
  EXPECT_EQ(qkv.weight_grad.pass, Pass::kWeightGrad);
  EXPECT_EQ(shape_of(op_named(layer, "projection").forward), (Shape{1, 16384, 4096, 512}));
  EXPECT_EQ(shape_of(op_named(layer, "fc1").forward), (Shape{1, 16384, 3584, 4096}));
  EXPECT_EQ(shape_of(op_named(layer, "fc2").forward), (Shape{1, 16384, 4096, 1792}));
  const OpSignature& fc2 = op_named(layer, "fc2").forward;
  EXPECT_EQ(fc2.work.value, 2.0 * 16384 * 4096 * 1792);
  // Both operands read, the result written, two bytes each.
  EXPECT_EQ(fc2.traffic.value, 2LL * (16384 * 1792 + 1792 * 4096 + 16384 * 4096));
}

TEST(UnitShard, KeyValueColumnsAreReplicated) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer = shard_bf16(block_of(graph), {.tensor = 16}, rules(true, false));
  // 4096/16 query columns; one of eight heads of 128 for K and for V.
  EXPECT_EQ(shape_of(op_named(layer, "qkv").forward), (Shape{1, 8192, 256 + 2 * 128, 4096}));
}

TEST(UnitShard, AttentionOfLlama3) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer fused =
      shard_bf16(block_of(graph), {.tensor = 8, .context = 2, .microbatch = 2}, rules(true, false));
  const LocalOp& core = op_named(fused, "attention");
  // 2 samples * 4 heads; half of the queries meet all keys.
  EXPECT_EQ(shape_of(core.forward), (Shape{8, 4096, 8192, 128}));
  EXPECT_TRUE(core.forward.fused);
  EXPECT_TRUE(core.forward.causal);
  // Causal: 2 s q a token; over 8 tensor and 2 context ranks, 2 samples.
  const double forward = 2.0 * 8192 * 4096 * 8192 * 2 / 16;
  EXPECT_EQ(core.forward.work.value, forward);
  EXPECT_EQ(core.input_grad.work.value, 2.5 * forward);
  EXPECT_EQ(core.weight_grad.work.value, 0);
  EXPECT_EQ(core.weight_grad.traffic.value, 0);
  EXPECT_EQ(core.forward.kernels, 1);
  // Per sample: Q and O of 4 heads over 4096 queries, K and V of one head over 8192 keys.
  const std::int64_t q = 4 * 4096 * 128, kv = 2 * 8192 * 128;
  EXPECT_EQ(core.forward.traffic.value, 2 * 2 * (2 * q + kv));
  EXPECT_EQ(core.input_grad.traffic.value, 2 * 2 * (2 * (q + kv) + 2 * q));
}

TEST(UnitShard, UnfusedAttentionComputesTheWholeMatrixAndMovesIt) {
  const ModelGraph graph = import_text(gpt_config(1024, 16, 2));
  const LocalOp core = op_named(shard_bf16(block_of(graph), {}, rules(false, true)), "attention");
  const double s = 2048, q = 1024, a = 16;
  EXPECT_EQ(core.forward.work.value, 4 * s * s * q);
  EXPECT_EQ(core.input_grad.work.value, 8 * s * s * q);
  EXPECT_FALSE(core.forward.fused);
  // Scores written, the kept half read by softmax and all written, dropout read and written and its
  // byte mask, read by the weighted sum; Q, K, V, O once.
  EXPECT_EQ(static_cast<double>(core.forward.traffic.value),
            2 * (4 * s * q) + (5.5 * 2 + 1) * a * s * s);
  EXPECT_EQ(static_cast<double>(core.input_grad.traffic.value),
            2 * (8 * s * q) + (8 * 2 + 1) * a * s * s);
  EXPECT_EQ(core.forward.kernels, 5);
  // The gradient of the scores is the largest temporary.
  EXPECT_EQ(
      static_cast<double>(shard_bf16(block_of(graph), {}, rules(false, true)).transient.value),
      2 * a * s * s);
}

TEST(UnitShard, WindowsNeedFewerKeys) {
  // Two layers of Gemma-2-9B: the first looks back 4096 tokens, the second at all 8192.
  const ModelGraph graph = import_example("gemma2-9b", 8192);
  const auto core = [&](int layer) {
    return op_named(shard_bf16(kind_of(graph, layer), {}, rules(true, false)), "attention")
        .forward.work.value;
  };
  const double s = 8192, w = 4096, q = 16 * 256;
  EXPECT_EQ(core(1), s * 4 * q * (w - w * (w - 1) / (2 * s)));
  EXPECT_EQ(core(2), s * 2 * s * q);
}

TEST(UnitShard, WindowAsLongAsTheSequenceIsNone) {
  const ModelGraph graph = import_example("gemma2-9b", 4096);
  EXPECT_EQ(graph.kinds.size(), 3U);
}

TEST(UnitShard, LatentAttentionIsWiderInKeysThanInValues) {
  const ModelGraph graph = import_example("deepseek-v3", 4096);
  const LocalLayer layer = shard_bf16(block_of(graph), {.tensor = 4}, rules(true, false));
  const double s = 4096;
  EXPECT_EQ(op_named(layer, "attention").forward.work.value, s * s * 128 * (192 + 128) / 4);
  // Latents are computed on every rank, and split only under sequence parallelism.
  EXPECT_EQ(shape_of(op_named(layer, "kv_a").forward), (Shape{1, 4096, 512 + 64, 7168}));
  EXPECT_EQ(shape_of(op_named(layer, "q_b").forward), (Shape{1, 4096, 128 * 192 / 4, 1536}));
  const LocalLayer split =
      shard_bf16(block_of(graph), {.tensor = 4, .sequence_parallel = true}, rules(true, false));
  EXPECT_EQ(shape_of(op_named(split, "kv_a").forward), (Shape{1, 1024, 512 + 64, 7168}));
}

TEST(UnitShard, ExpertsGetTheirShareOfTheRoutedTokens) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  const ShardDegrees degrees{.tensor = 2, .expert = 4, .microbatch = 2, .sequence_parallel = true};
  const LocalLayer layer = shard(block_of(graph), degrees, rules(true, false), DType::kBf16, 1.0);
  // 2 samples * 4096 tokens * 2 experts over 2 ranks, on 2 local experts.
  EXPECT_EQ(shape_of(op_named(layer, "expert_fc1").forward), (Shape{2, 4096, 2 * 14336, 4096}));
  EXPECT_EQ(shape_of(op_named(layer, "expert_fc2").forward), (Shape{2, 4096, 4096, 14336}));
  const double expert = 3.0 * 4096 * 14336;
  EXPECT_EQ(layer.expert_parameters, 8 * expert / 4);
  const double attention = 4096.0 * 6144 + 4096.0 * 4096;
  EXPECT_EQ(layer.dense_parameters, attention / 2 + 4096 * 8 + 2 * 4096);
  // One and a half times the mean load on the busiest rank.
  const LocalLayer loaded = shard(block_of(graph), degrees, rules(true, false), DType::kBf16, 1.5);
  EXPECT_EQ(op_named(loaded, "expert_fc1").forward.m, 6144);
}

TEST(UnitShard, ExpertTensorRanksShareWidthAndTokens) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  const LocalLayer layer = shard_bf16(
      block_of(graph), {.tensor = 4, .expert = 2, .expert_tensor = 4, .sequence_parallel = true},
      rules(true, false));
  // All 4096 * 2 routed tokens over 4 local experts, a quarter of the columns.
  EXPECT_EQ(shape_of(op_named(layer, "expert_fc1").forward), (Shape{4, 2048, 2 * 3584, 4096}));
  EXPECT_EQ(layer.expert_parameters, 8 * 3.0 * 4096 * 14336 / 8);
}

TEST(UnitShard, DropoutRunsWhereTheFrameworkKeepsIt) {
  const ModelGraph graph = import_text(gpt_config(1024, 16, 2));
  const LocalLayer with = shard_bf16(block_of(graph), {}, rules(false, true));
  const LocalLayer without = shard_bf16(block_of(graph), {}, rules(false, false));
  EXPECT_EQ(with.ops.size(), without.ops.size() + 2);
  EXPECT_NO_THROW(static_cast<void>(op_named(with, "attention_dropout")));
}

TEST(UnitShard, MemoryOpsMoveTheirElements) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer =
      shard_bf16(block_of(graph), {.tensor = 8, .sequence_parallel = true}, rules(true, false));
  const LocalOp& norm = op_named(layer, "norm1");
  // Read and written once; backward reads the gradient, too. Two bytes.
  EXPECT_EQ(norm.forward.traffic.value, 2 * 2 * 8192 * 4096 / 8);
  EXPECT_EQ(norm.input_grad.traffic.value, 2 * 3 * 8192 * 4096 / 8);
  EXPECT_EQ(norm.weight_grad.traffic.value, 0);
  // Without sequence parallelism every rank norms all tokens.
  const LocalLayer whole = shard_bf16(block_of(graph), {.tensor = 8}, rules(true, false));
  EXPECT_EQ(op_named(whole, "norm1").forward.traffic.value, 2 * 2 * 8192 * 4096);
  EXPECT_EQ(op_named(whole, "activation").forward.traffic.value, 2 * 3 * 8192 * 14336 / 8);
}

TEST(UnitShard, LowPrecisionIsForBlockProducts) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer = shard(block_of(graph), {}, rules(true, false), DType::kFp8, 1.0);
  EXPECT_EQ(op_named(layer, "fc1").forward.dtype, DType::kFp8);
  EXPECT_EQ(op_named(layer, "attention").forward.dtype, DType::kBf16);
  const LocalLayer head = shard(kind_of(graph, 33), {}, rules(true, false), DType::kFp8, 1.0);
  EXPECT_EQ(op_named(head, "head").forward.dtype, DType::kBf16);
}

// --- collectives ---------------------------------------------------------------------------------

struct Calls {
  int forward = 0, backward = 0, hidden = 0;
  friend bool operator==(const Calls&, const Calls&) = default;
};
std::ostream& operator<<(std::ostream& out, const Calls& c) {
  return out << c.forward << " forward, " << c.backward << " backward, " << c.hidden << " hidden";
}
Calls calls_of(const LocalLayer& layer, Axis axis, Collective op) {
  Calls sum;
  for (const LocalCollective& c : layer.collectives) {
    if (c.axis != axis) continue;
    if (c.forward == op) sum.forward += c.forward_count;
    if (c.backward == op) sum.backward += c.backward_count;
    if (op == Collective::kAllGather) sum.hidden += c.hidden_backward_count;
  }
  return sum;
}

TEST(UnitCollectives, TensorParallelReducesTwiceEachWay) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer =
      shard_bf16(block_of(graph), {.tensor = 8, .context = 2, .microbatch = 3}, rules(true, false));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllReduce), (Calls{2, 2, 0}));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllGather), (Calls{0, 0, 0}));
  for (const char* name : {"attention input", "attention output", "MLP input", "MLP output"}) {
    // 2 s b h / c
    EXPECT_EQ(collective_named(layer, name).payload.value, 2LL * 8192 * 3 * 4096 / 2) << name;
  }
}

TEST(UnitCollectives, SequenceParallelGathersAndScatters) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer =
      shard_bf16(block_of(graph), {.tensor = 8, .sequence_parallel = true}, rules(true, false));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllReduce), (Calls{0, 0, 0}));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllGather), (Calls{2, 2, 2}));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kReduceScatter), (Calls{2, 2, 0}));
  EXPECT_EQ(collective_named(layer, "MLP output").payload.value, 2LL * 8192 * 4096);
}

// Sent by a ring, forward: 4 s b u (c - 1)/(c t). An all-gather of S sends S (c - 1)/c.
TEST(UnitCollectives, ContextRingPassesKeysAndValues) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer =
      shard_bf16(block_of(graph), {.tensor = 4, .context = 2}, rules(true, false));
  const LocalCollective& ring = collective_named(layer, "keys and values");
  EXPECT_EQ(ring.axis, Axis::kContext);
  EXPECT_TRUE(ring.collective->overlaps_attention);
  EXPECT_EQ(ring.payload.value, 4LL * 8192 * 1024 / 4);
  EXPECT_EQ(ring.forward_count, 1);
  EXPECT_EQ(ring.backward_count, 2);
  // 16 ranks on 8 heads: one head a rank.
  const LocalLayer many =
      shard_bf16(block_of(graph), {.tensor = 16, .context = 2}, rules(true, false));
  EXPECT_EQ(collective_named(many, "keys and values").payload.value, 4LL * 8192 * 1024 / 8);
}

TEST(UnitCollectives, ExpertsDispatchAndCombineEachWay) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  const LocalLayer layer = shard_bf16(
      block_of(graph), {.tensor = 2, .expert = 4, .sequence_parallel = true}, rules(true, false));
  EXPECT_EQ(calls_of(layer, Axis::kExpert, Collective::kAllToAll), (Calls{2, 2, 0}));
  // 2 s b K h / t, and two such buffers while they travel.
  const std::int64_t payload = 2LL * 4096 * 2 * 4096 / 2;
  EXPECT_EQ(collective_named(layer, "expert dispatch and combine").payload.value, payload);
  EXPECT_EQ(layer.transient.value, 2 * payload);
  // Attention still pairs a gather and a scatter; the experts' tokens are split already.
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllGather), (Calls{1, 1, 1}));
}

TEST(UnitCollectives, ExpertTensorRanksGatherRoutedTokens) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  const LocalLayer layer = shard_bf16(
      block_of(graph), {.tensor = 4, .expert = 2, .expert_tensor = 2, .sequence_parallel = true},
      rules(true, false));
  EXPECT_EQ(calls_of(layer, Axis::kExpertTensor, Collective::kAllGather), (Calls{1, 1, 0}));
  EXPECT_EQ(calls_of(layer, Axis::kExpertTensor, Collective::kReduceScatter), (Calls{1, 1, 0}));
  // The gathered buffer: both ranks' 2 s K h / t bytes.
  EXPECT_EQ(collective_named(layer, "expert input").payload.value, 2 * 2LL * 4096 * 2 * 4096 / 4);
}

TEST(UnitCollectives, EmbeddingAndHead) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LayerKind& embedding = kind_of(graph, 0);
  const LayerKind& head = kind_of(graph, 33);
  const FrameworkRules r = rules(true, false);
  const LocalLayer plain = shard_bf16(embedding, {.tensor = 8}, r);
  EXPECT_EQ(calls_of(plain, Axis::kTensor, Collective::kAllReduce), (Calls{1, 0, 0}));
  const LocalLayer split = shard_bf16(embedding, {.tensor = 8, .sequence_parallel = true}, r);
  EXPECT_EQ(calls_of(split, Axis::kTensor, Collective::kReduceScatter), (Calls{1, 0, 0}));
  EXPECT_EQ(calls_of(split, Axis::kTensor, Collective::kAllGather), (Calls{0, 1, 0}));
  // The head's input gradient, and three small reductions of the loss.
  EXPECT_EQ(calls_of(shard_bf16(head, {.tensor = 8}, r), Axis::kTensor, Collective::kAllReduce),
            (Calls{3, 1, 0}));
  EXPECT_EQ(collective_named(shard_bf16(head, {.tensor = 8}, r), "cross entropy").payload.value,
            4 * 8192);
}

// Queries of a T5 decoder come from its own tokens, keys and values from the encoder's.
TEST(UnitCollectives, CrossAttentionGathersBothSequences) {
  const ModelGraph graph = import_example("t5-base", 512);
  const LocalLayer decoder = shard_bf16(kind_of(graph, 14), {.tensor = 4}, rules(true, false));
  EXPECT_EQ(collective_named(decoder, "cross_attention input").payload.value,
            2LL * (512 + 512) * 768);
  EXPECT_EQ(calls_of(decoder, Axis::kTensor, Collective::kAllReduce), (Calls{3, 3, 0}));
}

TEST(UnitCollectives, ParallelAttentionReducesOnce) {
  const ModelGraph graph = import_example("falcon-40b", 2048);
  const LocalLayer layer = shard_bf16(block_of(graph), {.tensor = 8}, rules(true, false));
  EXPECT_EQ(calls_of(layer, Axis::kTensor, Collective::kAllReduce), (Calls{1, 1, 0}));
}

// --- laws ----------------------------------------------------------------------------------------

const std::vector<const char*> kExamples{"llama-3.1-70b", "mixtral-8x7b", "gpt3-175b",
                                         "deepseek-v3",   "qwen2-7b",     "qwen1.5-moe-a2.7b",
                                         "gpt-oss-120b",  "falcon-40b",   "nemotron-4-15b",
                                         "bert-large",    "gemma2-9b",    "t5-base"};

/// Valid degrees for every kind of every example above but the few that check_shard refuses.
std::vector<ShardDegrees> some_degrees() {
  std::vector<ShardDegrees> all;
  for (const int t : {1, 2, 4}) {
    for (const int c : {1, 2}) {
      for (const bool sequence : {false, true}) {
        all.push_back({.tensor = t,
                       .context = c,
                       .expert_tensor = sequence ? 1 : t,
                       .sequence_parallel = sequence});
        all.push_back({.tensor = t,
                       .context = c,
                       .expert = 2,
                       .expert_tensor = t,
                       .sequence_parallel = sequence});
      }
    }
  }
  return all;
}

template <class Check>
void for_every_layer_kind(Check check) {
  const FrameworkRules r = rules(true, false);
  for (const char* name : kExamples) {
    const ModelGraph graph = import_example(name, 512);
    for (const LayerKind& kind : graph.kinds) {
      for (const ShardDegrees& degrees : some_degrees()) {
        if (!check_shard(kind, degrees, r).empty()) continue;
        SCOPED_TRACE(
            std::string(name) + " " + kind.name + " t" + std::to_string(degrees.tensor) + " c" +
            std::to_string(degrees.context) + " e" + std::to_string(degrees.expert) + " tau" +
            std::to_string(degrees.expert_tensor) + (degrees.sequence_parallel ? " sp" : ""));
        check(kind, degrees, shard_bf16(kind, degrees, r));
      }
    }
  }
}

/// What each tensor or expert rank holds beside its share: replicas.
struct Parameters {
  double dense = 0, dense_copied = 0, expert = 0;
};
Parameters parameters_of(const LayerKind& kind) {
  Parameters p;
  for (const Op& op : kind.ops) {
    const bool split = op.split == Split::kColumn || op.split == Split::kRow;
    if (op.expert) {
      p.expert += op.parameters + op.replicated_parameters;
    } else {
      p.dense += split ? op.parameters : 0;
      p.dense_copied += op.replicated_parameters + (split ? 0 : op.parameters);
    }
  }
  return p;
}

TEST(LawShard, ParametersOfAllRanksAreTheTotalAndItsReplicas) {
  for_every_layer_kind([](const LayerKind& kind, const ShardDegrees& d, const LocalLayer& layer) {
    const Parameters p = parameters_of(kind);
    if (kind.limits.kv_heads > 0 && d.tensor > kind.limits.kv_heads) return;  // K, V replicated
    if (kind.ops.front().vocabulary || kind.ops.back().kind == OpKind::kCrossEntropy) {
      return;  // an odd vocabulary is padded
    }
    EXPECT_CLOSE(d.tensor * layer.dense_parameters, p.dense + d.tensor * p.dense_copied,
                 kSameArithmetic);
    double expert_copied = 0;
    for (const Op& op : kind.ops) {
      if (op.expert) expert_copied += op.replicated_parameters;
    }
    EXPECT_CLOSE(d.expert * d.expert_tensor * layer.expert_parameters,
                 p.expert + (d.expert_tensor - 1) * expert_copied, kSameArithmetic);
  });
}

TEST(LawShard, SplitWorkOfAllRanksIsTheWhole) {
  for_every_layer_kind([](const LayerKind&, const ShardDegrees& d, const LocalLayer& layer) {
    for (const LocalOp& op : layer.ops) {
      const bool split = op.op->expert || op.op->split == Split::kColumn ||
                         op.op->split == Split::kRow ||
                         (op.op->split == Split::kSequence && d.sequence_parallel);
      if (op.op->vocabulary || op.op->key_value_columns > 0 || op.op->columns == 1) continue;
      const double ranks = d.context * (split ? d.tensor : 1);
      EXPECT_CLOSE(ranks * op.forward.work.value, forward_flop(*op.op, true).value, kSameArithmetic)
          << op.op->name;
    }
  });
}

TEST(LawShard, BackwardProductsDoForwardsWorkTwice) {
  for_every_layer_kind([](const LayerKind&, const ShardDegrees&, const LocalLayer& layer) {
    for (const LocalOp& op : layer.ops) {
      if (op.op->kind != OpKind::kMatmul) continue;
      EXPECT_EQ(op.input_grad.work.value, op.forward.work.value);
      EXPECT_EQ(op.weight_grad.work.value, op.forward.work.value);
      EXPECT_GT(op.forward.traffic.value, 0);
    }
  });
}

TEST(LawShard, MoreRanksNeverKeepMore) {
  const FrameworkRules r = rules(true, false);
  for (const char* name : kExamples) {
    const ModelGraph graph = import_example(name, 512);
    for (const LayerKind& kind : graph.kinds) {
      for (const bool sequence : {false, true}) {
        for (const int t : {1, 2, 4, 8}) {
          for (const int c : {1, 2, 4}) {
            const auto bytes = [&](int tensor, int context) {
              return shard_bf16(kind,
                                {.tensor = tensor,
                                 .context = context,
                                 .expert_tensor = sequence ? 1 : tensor,
                                 .sequence_parallel = sequence},
                                r)
                  .saved.without_recompute()
                  .value;
            };
            // Whole bytes are rounded up once a group.
            EXPECT_LE(bytes(2 * t, c), bytes(t, c) + 8) << name << " " << kind.name;
            EXPECT_LE(bytes(t, 2 * c), bytes(t, c) + 8) << name << " " << kind.name;
          }
        }
      }
    }
  }
}

TEST(LawShard, MicrobatchScalesWhatIsKeptAndComputed) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const FrameworkRules r = rules(true, false);
  const LocalLayer one = shard_bf16(block_of(graph), {.tensor = 2}, r);
  const LocalLayer three = shard_bf16(block_of(graph), {.tensor = 2, .microbatch = 3}, r);
  EXPECT_EQ(three.saved.without_recompute().value, 3 * one.saved.without_recompute().value);
  EXPECT_EQ(three.dense_parameters, one.dense_parameters);
  for (std::size_t i = 0; i < one.ops.size(); ++i) {
    EXPECT_CLOSE(three.ops[i].forward.work.value, 3 * one.ops[i].forward.work.value,
                 kSameArithmetic);
  }
}

}  // namespace
}  // namespace towtank::shard_test
