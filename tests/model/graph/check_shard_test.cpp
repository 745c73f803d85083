// SPDX-License-Identifier: Apache-2.0
// Why degrees do not fit a layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/graph/graph_testing.h"

namespace towtank::check_shard_test {
namespace {

using graph_testing::block_of;
using graph_testing::import_example;
using graph_testing::kind_of;
using graph_testing::rules;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> reasons(const LayerKind& kind, const ShardDegrees& degrees) {
  return check_shard(kind, degrees, rules(true, false));
}

TEST(UnitCheckShard, HeadsAndColumnsDivide) {
  const ModelGraph graph = import_example("qwen2-7b", 4096);
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 4}), IsEmpty());
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 8}),
              ElementsAre("28 heads do not divide by tensor = 8 (valid: 1, 2, 4, 7, 14, 28)"));
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 3}),
              ElementsAre("28 heads do not divide by tensor = 3 (valid: 1, 2, 4, 7, 14, 28)",
                          "18944 MLP columns do not divide by tensor = 3 (valid: 1, 2, 4, 8, 16, "
                          "32, 37, 64, 74, 128, 148, ..., 18944)",
                          "4 key-value heads do not divide by tensor = 3 (valid: 1, 2, 4, or a "
                          "multiple of 4)"));
}

TEST(UnitCheckShard, SeventyOneHeadsRunOnOneRankOrSeventyOne) {
  const ModelGraph graph = import_example("falcon-7b", 2048);
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 1}), IsEmpty());
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 71}), IsEmpty());
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 2}),
              ElementsAre("71 heads do not divide by tensor = 2 (valid: 1, 71)"));
}

TEST(UnitCheckShard, KeyValueHeadsAreReplicatedOnlyWhereTheFrameworkDoes) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  FrameworkRules never = rules(true, false);
  never.kv_replication.value = false;
  EXPECT_THAT(check_shard(block_of(graph), {.tensor = 16}, rules(true, false)), IsEmpty());
  EXPECT_THAT(check_shard(block_of(graph), {.tensor = 16}, never),
              ElementsAre("8 key-value heads do not divide by tensor = 16 (valid: 1, 2, 4, 8)"));
}

TEST(UnitCheckShard, CausalContextRanksTakeTwoPiecesEach) {
  const ModelGraph graph = import_example("llama-3-8b", 8190);
  EXPECT_THAT(reasons(block_of(graph), {.context = 2}),
              ElementsAre("8190 tokens do not divide by 2 * context = 4 (valid: context = 1, 3, 5, "
                          "7, 9, 13, 15, 21, 35, 39, 45, ..., 4095)"));
  const ModelGraph image = import_example("vit-base", 0);
  EXPECT_THAT(reasons(block_of(image), {.context = 2}),
              ElementsAre("197 tokens do not divide by context = 2 (valid: context = 1, 197)"));
}

TEST(UnitCheckShard, SequenceParallelRanksDivideTheTokens) {
  const ModelGraph image = import_example("vit-base", 0);
  EXPECT_THAT(reasons(block_of(image), {.tensor = 4, .sequence_parallel = true}),
              ElementsAre("197 tokens do not divide by tensor * context = 4 (sequence parallelism; "
                          "valid: 1, 197)"));
  EXPECT_THAT(reasons(block_of(image), {.tensor = 4}), IsEmpty());
}

TEST(UnitCheckShard, ExpertsDivideAndNeedSplitSequences) {
  const ModelGraph graph = import_example("mixtral-8x7b", 4096);
  EXPECT_THAT(reasons(block_of(graph), {.expert = 8}), IsEmpty());
  EXPECT_THAT(reasons(block_of(graph), {.expert = 3}),
              ElementsAre("8 experts do not divide by expert = 3 (valid: 1, 2, 4, 8)"));
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 4, .expert = 2}),
              ElementsAre("experts on tensor = 4 ranks need sequence parallelism (or "
                          "expert_tensor = 4)"));
  EXPECT_THAT(reasons(block_of(graph), {.tensor = 4, .expert_tensor = 4}), IsEmpty());
  EXPECT_THAT(
      reasons(block_of(graph), {.tensor = 4, .expert_tensor = 3, .sequence_parallel = true}),
      ElementsAre("4 tensor ranks do not divide by expert_tensor = 3 (valid: 1, 2, 4)",
                  "14336 columns of an expert do not divide by expert_tensor = 3 (valid: "
                  "1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 64, ..., 14336)"));
}

TEST(UnitCheckShard, PaddedVocabularyAlwaysDivides) {
  const ModelGraph graph = import_example("gpt2", 1024);
  EXPECT_THAT(reasons(kind_of(graph, 0), {.tensor = 7}), IsEmpty());
  EXPECT_THAT(reasons(kind_of(graph, 13), {.tensor = 7}), IsEmpty());
}

TEST(UnitCheckShard, LayersWithoutShardingStayWhole) {
  LayerKind kind;
  kind.name = "stem";
  kind.limits.tensor = false;
  kind.limits.context = false;
  EXPECT_THAT(reasons(kind, {}), IsEmpty());
  EXPECT_THAT(reasons(kind, {.tensor = 2, .context = 2}),
              ElementsAre("layer stem has no sharding over tensor ranks (valid: tensor = 1)",
                          "layer stem has no sharding over context ranks (valid: context = 1)"));
  kind.limits.context = true;
  kind.limits.context_divides = {{"rows of the image", 96}};
  EXPECT_THAT(
      reasons(kind, {.context = 5}),
      ElementsAre("96 rows of the image do not divide by context = 5 (valid: 1, 2, 3, 4, 6, "
                  "8, 12, 16, 24, 32, 48, 96)"));
}

// Every divisor of the heads is accepted and nothing else.
TEST(LawCheckShard, ValidTensorDegreesAreTheDivisors) {
  const ModelGraph graph = import_example("gpt3-175b", 2048);
  for (int t = 1; t <= 100; ++t) {
    EXPECT_EQ(reasons(block_of(graph), {.tensor = t}).empty(), 96 % t == 0) << t;
  }
}

}  // namespace
}  // namespace towtank::check_shard_test
