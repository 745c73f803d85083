// SPDX-License-Identifier: Apache-2.0
// Bytes kept from forward for backward: Korthikanti et al. 2022, section 4, and the modern block.
#include <gtest/gtest.h>

#include "tests/model/graph/graph_testing.h"
#include "tests/support/near.h"

namespace towtank::activations_test {
namespace {

using graph_testing::block_of;
using graph_testing::gpt_config;
using graph_testing::group_bytes;
using graph_testing::import_example;
using graph_testing::import_text;
using graph_testing::rules;
using graph_testing::saved_bytes_of;
using graph_testing::shard_bf16;

constexpr double kGiB = 1073741824.0;

// --- Korthikanti ---------------------------------------------------------------------------------

struct KorthikantiRow {
  const char* name;
  int h, a, layers, b;
  double pipeline_factor;  ///< 1 + (p - 1)/(p v) where v > 1
  double none, selective;  ///< GiB of the first stage, layers only
};

std::ostream& operator<<(std::ostream& out, const KorthikantiRow& r) { return out << r.name; }

class UnitKorthikanti : public ::testing::TestWithParam<KorthikantiRow> {
 protected:
  static constexpr int kTensor = 8;
  static constexpr double kTokens = 2048;

  /// Bytes a layer and microbatch, in units of s b h.
  [[nodiscard]] static double units(double bytes) {
    return bytes / (kTokens * GetParam().b * GetParam().h);
  }
  [[nodiscard]] static LocalLayer layer(bool sequence_parallel) {
    const auto& x = GetParam();
    const ModelGraph graph = import_text(gpt_config(x.h, x.a, x.layers));
    return shard_bf16(
        block_of(graph),
        {.tensor = kTensor, .microbatch = x.b, .sequence_parallel = sequence_parallel},
        rules(false, true));
  }
  /// 5 a s / h.
  [[nodiscard]] static double scores() { return 5.0 * GetParam().a * kTokens / GetParam().h; }
};

TEST_P(UnitKorthikanti, TensorParallel) {
  const double t = kTensor;
  EXPECT_CLOSE(units(saved_bytes_of(layer(false))), 10 + 24 / t + scores() / t,
               testing::kSameArithmetic);
}

TEST_P(UnitKorthikanti, TensorAndSequenceParallel) {
  const double t = kTensor;
  EXPECT_CLOSE(units(saved_bytes_of(layer(true))), (34 + scores()) / t, testing::kSameArithmetic);
}

TEST_P(UnitKorthikanti, SelectiveDropsTheAttentionCore) {
  const double t = kTensor;
  const LocalLayer plain = layer(false);
  const LocalLayer sequence = layer(true);
  EXPECT_EQ(units(saved_bytes_of(plain) - group_bytes(plain, RecomputeGroup::kAttentionCore)),
            10 + 24 / t);
  EXPECT_EQ(units(saved_bytes_of(sequence) - group_bytes(sequence, RecomputeGroup::kAttentionCore)),
            34 / t);
}

TEST_P(UnitKorthikanti, FullKeepsTheInput) {
  EXPECT_EQ(units(static_cast<double>(layer(false).saved.layer_input.value)), 2);
  EXPECT_EQ(units(static_cast<double>(layer(true).saved.layer_input.value)), 2.0 / kTensor);
}

TEST_P(UnitKorthikanti, FirstStageOfThePaper) {
  const auto& x = GetParam();
  const double layers = x.layers * x.pipeline_factor;
  const LocalLayer sequence = layer(true);
  // "None" is tensor parallelism alone, without sequence parallelism and recomputation.
  EXPECT_EQ(saved_bytes_of(layer(false)) * layers / kGiB, x.none);
  EXPECT_EQ((saved_bytes_of(sequence) - group_bytes(sequence, RecomputeGroup::kAttentionCore)) *
                layers / kGiB,
            x.selective);
}

INSTANTIATE_TEST_SUITE_P(
    Models, UnitKorthikanti,
    ::testing::Values(KorthikantiRow{"gpt_22b", 6144, 64, 48, 4, 1.0, 59.25, 9.5625},
                      KorthikantiRow{"gpt_175b", 12288, 96, 96, 1, 1 + 7.0 / (8 * 3), 66.84375,
                                     12.3515625},
                      KorthikantiRow{"gpt_530b", 20480, 128, 105, 1, 1 + 34.0 / (35 * 3),
                                     114.0234375, 23.076171875},
                      KorthikantiRow{"gpt_1t", 25600, 160, 128, 1, 1.0, 131.25, 26.5625}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(UnitActivations, EmbeddingKeepsItsDropoutMask) {
  const ModelGraph graph = import_text(gpt_config(6144, 64, 48));
  const LayerKind& embedding = graph_testing::kind_of(graph, 0);
  const double sbh = 2048.0 * 6144;
  EXPECT_EQ(saved_bytes_of(shard_bf16(embedding, {.tensor = 8, .sequence_parallel = true},
                                      rules(false, true))),
            sbh / 8);
  EXPECT_EQ(saved_bytes_of(shard_bf16(embedding, {}, rules(false, false))), 0);
}

// 4 s b h (1 + V/h)/t with kappa = 4: final norm's input and output, and the logits.
TEST(UnitActivations, HeadAddsKorthikantisLastTerm) {
  const ModelGraph graph = import_text(gpt_config(6144, 64, 48));
  FrameworkRules r = rules(false, true);
  r.logits_bytes.value = 4;
  const LocalLayer head = shard_bf16(graph_testing::kind_of(graph, 49),
                                     {.tensor = 8, .microbatch = 4, .sequence_parallel = true}, r);
  const double sbh = 2048.0 * 4 * 6144;
  EXPECT_EQ(saved_bytes_of(head), 4 * sbh / 8);
  EXPECT_EQ(static_cast<double>(head.saved.logits.value), 4 * sbh * (51200.0 / 6144) / 8);
}

// --- the modern block ----------------------------------------------------------------------------

/// Bytes of a layer per token of one sample.
double per_token(const LayerKind& kind, const ShardDegrees& degrees, double tokens) {
  return saved_bytes_of(shard_bf16(kind, degrees, rules(true, false))) / tokens;
}

TEST(UnitModernBlock, Llama3KeepsItsBytesPerToken) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const double h = 4096, q = 4096, u = 1024, a = 32, f = 14336;
  const double bytes = 8 * h + 2 * (q + 2 * u) + (2 * q + 4 * a) + 6 * f;
  EXPECT_EQ(bytes, 139'392);
  EXPECT_EQ(per_token(block_of(graph), {}, 8192), bytes);
  EXPECT_EQ(per_token(block_of(graph), {.tensor = 8, .sequence_parallel = true}, 8192), bytes / 8);
  EXPECT_EQ(
      per_token(block_of(graph), {.tensor = 2, .context = 4, .sequence_parallel = true}, 8192),
      bytes / 8);
}

TEST(UnitModernBlock, NormsStayWholeWithoutSequenceParallelism) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const double h = 4096, q = 4096, u = 1024, a = 32, f = 14336;
  EXPECT_EQ(per_token(block_of(graph), {.tensor = 4}, 8192),
            8 * h + (2 * (q + 2 * u) + (2 * q + 4 * a) + 6 * f) / 4);
}

TEST(UnitModernBlock, KeyValueHeadsAreReplicatedBeyondTheirNumber) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const double h = 4096, q = 4096, u = 1024, a = 32, f = 14336;
  // t = 16 on 8 key-value heads: one a rank, not half of one.
  EXPECT_EQ(per_token(block_of(graph), {.tensor = 16, .sequence_parallel = true}, 8192),
            (8 * h + 2 * q + (2 * q + 4 * a) + 6 * f) / 16 + 4 * u / 8);
}

TEST(UnitModernBlock, RecomputeGroupsSubtractWhatTheyRebuild) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer layer = shard_bf16(block_of(graph), {}, rules(true, false));
  const double h = 4096, q = 4096, a = 32, f = 14336, s = 8192;
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kNorm), 4 * h * s);
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kGatedProduct), 2 * f * s);
  EXPECT_EQ(
      group_bytes(layer, RecomputeGroup::kGatedProduct) + group_bytes(layer, RecomputeGroup::kMlp),
      6 * f * s);
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kAttentionCore), (2 * q + 4 * a) * s);
  EXPECT_EQ(static_cast<double>(layer.saved.layer_input.value), 2 * h * s);
}

TEST(UnitModernBlock, PlainMlpKeepsFourBytesAColumn) {
  const ModelGraph graph = import_text(gpt_config(4096, 32, 4));
  const LocalLayer layer = shard_bf16(block_of(graph), {}, rules(true, false));
  const double f = 4 * 4096.0;
  EXPECT_EQ(
      group_bytes(layer, RecomputeGroup::kGatedProduct) + group_bytes(layer, RecomputeGroup::kMlp),
      4 * f * 2048);
}

TEST(UnitModernBlock, LatentAttention) {
  const ModelGraph graph = import_example("deepseek-v3", 4096);
  const LayerKind& dense = block_of(graph);
  const double h = 7168, ql = 1536, kl = 512, nope = 128, rope = 64, vd = 128, a = 128, f = 18432;
  const double latents = 2 * ql + 2 * (kl + rope);
  const double up = 4 * a * (nope + rope) + 2 * a * vd;
  const double output = 2 * a * vd + 4 * a;
  EXPECT_EQ(per_token(dense, {}, 4096), 8 * h + latents + up + output + 6 * f);
  // Latents are on every rank unless the sequence is split.
  EXPECT_EQ(per_token(dense, {.tensor = 8}, 4096), 8 * h + latents + (up + output + 6 * f) / 8);
  const LocalLayer layer = shard_bf16(dense, {}, rules(true, false));
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kMlaUp), up * 4096);
}

TEST(UnitModernBlock, Experts) {
  const ModelGraph graph = import_example("qwen3-30b-a3b", 4096);
  const LayerKind& moe = block_of(graph);
  const double h = 2048, q = 4096, u = 512, a = 32, e = 128, k = 8, fe = 768;
  // The inputs of the norm of each query and key head are kept beside Q, K and V.
  const double attention = 8 * h + 2 * (q + 2 * u) + 2 * (q + u) + 2 * q + 4 * a;
  const double routed = 2 * k * h + 4 * k * fe + 2 * k * fe + 2 * k * h;
  EXPECT_EQ(per_token(moe, {}, 4096), attention + 4 * e + routed);
  EXPECT_EQ(per_token(moe, {.tensor = 4, .expert = 8, .sequence_parallel = true}, 4096),
            (attention + 4 * e + routed) / 4);
  // Two ranks share an expert: each has its tokens twice, its width by half.
  const double shared = 2 * (2 * k * h + 2 * k * h) + 6 * k * fe;
  EXPECT_EQ(
      per_token(moe, {.tensor = 4, .expert = 8, .expert_tensor = 2, .sequence_parallel = true},
                4096),
      (attention + 4 * e + shared) / 4);
  // Imbalance enlarges what counts routed tokens, not the router.
  const double loaded =
      saved_bytes_of(shard(moe, {}, rules(true, false), DType::kBf16, 1.5)) / 4096;
  EXPECT_EQ(loaded, attention + 4 * e + 1.5 * routed);
}

TEST(UnitModernBlock, SharedExpertsAreAnMlpBeside) {
  const ModelGraph graph = import_example("deepseek-v3", 4096);
  const double k = 8, h = 7168, fe = 2048, fs = 2048, e = 256, f = 18432;
  const double dense = per_token(block_of(graph), {}, 4096);
  const double moe = per_token(graph_testing::kind_of(graph, 4), {}, 4096);
  EXPECT_EQ(moe - dense, 4 * e + 4 * k * h + 6 * k * fe + 6 * fs - 6 * f);
}

TEST(UnitModernBlock, ExpertRecomputeKeepsTheDispatchedTokens) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  const LocalLayer layer = shard_bf16(block_of(graph), {}, rules(true, false));
  const double h = 4096, k = 2, fe = 14336, s = 4096;
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kExperts), (4 * k * fe + 2 * k * h) * s);
  EXPECT_EQ(group_bytes(layer, RecomputeGroup::kGatedProduct), 2 * k * fe * s);
}

// V = 128,256, s = 8,192, b = 2, t = 1: 12.6 GB.
TEST(UnitModernBlock, LogitsOfLlama3) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const LocalLayer head =
      shard_bf16(graph_testing::kind_of(graph, 33), {.microbatch = 2}, rules(true, false));
  EXPECT_EQ(static_cast<double>(head.saved.logits.value), 128256.0 * 8192 * 2 * 6);
  EXPECT_CLOSE(static_cast<double>(head.saved.logits.value), 12.6e9, 5e-3);
}

TEST(UnitModernBlock, PaddedVocabularyIsKept) {
  const ModelGraph graph = import_example("gpt2", 1024);
  FrameworkRules r = rules(true, false);
  r.vocabulary_multiple.value = 128;
  // 50257 to a multiple of 128 * 8.
  const double padded = 51200;
  const LocalLayer head = shard_bf16(graph_testing::kind_of(graph, 13), {.tensor = 8}, r);
  EXPECT_EQ(static_cast<double>(head.saved.logits.value), padded * 1024 / 8 * 6);
  const LocalLayer table = shard_bf16(graph_testing::kind_of(graph, 0), {.tensor = 8}, r);
  EXPECT_EQ(table.dense_parameters, padded * 768 / 8 + 1024 * 768);
}

TEST(UnitModernBlock, SinglePrecisionDoublesAllButMasks) {
  const ModelGraph graph = import_text(gpt_config(1024, 16, 2));
  const FrameworkRules r = rules(false, true);
  const double half = saved_bytes_of(shard(block_of(graph), {}, r, DType::kFp16, 1.0));
  const double full = saved_bytes_of(shard(block_of(graph), {}, r, DType::kFp32, 1.0));
  const double s = 2048, h = 1024, a = 16;
  const double masks = 2 * s * h + a * s * s;
  EXPECT_EQ(full, 2 * (half - masks) + masks);
  // fp8 products keep two-byte tensors.
  EXPECT_EQ(saved_bytes_of(shard(block_of(graph), {}, r, DType::kFp8, 1.0)), half);
}

}  // namespace
}  // namespace towtank::activations_test
