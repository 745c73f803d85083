// SPDX-License-Identifier: Apache-2.0
#include "model/frameworks/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/graph/model_graph.h"

namespace towtank {
namespace frameworks_rules_test {

template <class Check>
void for_each_framework(Check&& check) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    SCOPED_TRACE(kFrameworkNames[i]);
    check(static_cast<Framework>(i));
  }
}

TEST(UnitFrameworkRules, NamesFindTheirRow) {
  for_each_framework([](Framework f) {
    EXPECT_EQ(rules_of(f).framework, f);
    EXPECT_EQ(framework_from(kFrameworkNames[static_cast<std::size_t>(f)]), f);
  });
  EXPECT_EQ(framework_from("Megatron"), std::nullopt);
  EXPECT_EQ(framework_from(""), std::nullopt);
}

TEST(UnitFrameworkRules, AssumedCellsAreTheLinesWithoutASource) {
  for_each_framework([](Framework f) {
    const auto lines = rule_lines(f);
    const auto assumed = std::count_if(lines.begin(), lines.end(),
                                       [](const RuleLine& l) { return l.source.empty(); });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(assumed_cells(f).size()), assumed);
  });
  EXPECT_THAT(assumed_cells(Framework::kNemo),
              ::testing::Contains("tensor-parallel communication hidden, fraction: 0.7 (assumed)"));
}

TEST(UnitFrameworkRules, LinesSayWhatSelectiveMeans) {
  const auto value = [](Framework f) {
    for (const RuleLine& l : rule_lines(f)) {
      if (l.name == "selective recompute drops") return l.value;
    }
    return std::string("(no line)");
  };
  EXPECT_EQ(value(Framework::kMegatron), "the attention core");
  EXPECT_EQ(value(Framework::kTorchtitan),
            "norms, the gated product, the MLP, the MLA up-projection, the experts");
}

// Every cell is a value of at most eight bytes and a string_view.
constexpr std::size_t kCells = (sizeof(FrameworkRules) - sizeof(Framework)) / sizeof(Cell<int>);
static_assert(sizeof(Cell<bool>) == sizeof(Cell<double>));

// One line a cell: a cell that the lines forget could be assumed without anyone being told.
TEST(LawFrameworkRules, LinesAreDistinctAndCoverTheTable) {
  for_each_framework([](Framework f) {
    std::set<std::string_view> names;
    for (const RuleLine& l : rule_lines(f)) {
      EXPECT_TRUE(names.insert(l.name).second) << l.name;
      EXPECT_FALSE(l.value.empty()) << l.name;
    }
    EXPECT_EQ(names.size(), kCells);
  });
}

TEST(LawFrameworkRules, ValuesAreInRange) {
  for_each_framework([](Framework f) {
    const FrameworkRules& r = rules_of(f);
    EXPECT_GE(r.logits_bytes.value, 2);
    EXPECT_GE(r.vocabulary_multiple.value, 1);
    EXPECT_GE(r.highest_sharding_stage.value, 0);
    EXPECT_LE(r.highest_sharding_stage.value, 3);
    EXPECT_GT(r.reduce_bytes.value, 0);
    EXPECT_GE(r.bucket_bytes.value.value, 0);
    EXPECT_GE(r.gather_layers.value, 1);
    EXPECT_GE(r.prefetch_units.value, 0);
    EXPECT_GE(r.tensor_overlap.value, 0);
    EXPECT_LE(r.tensor_overlap.value, 1);
    EXPECT_GE(r.selective_mlp_kept.value, 0);
    EXPECT_LE(r.selective_mlp_kept.value, 1);
    EXPECT_LT(r.selective_groups.value, 1U << kRecomputeGroupCount);
    EXPECT_EQ(r.selective_groups.value & 1U, 0U) << "what belongs to no group is never dropped";
    EXPECT_GE(r.reserved_factor.value, 1);
    EXPECT_GT(r.context_bytes.value.value, 0);
    EXPECT_GE(r.elementwise_kernels.value, 1);
  });
}

// What separates the frameworks, as their documents say it.
TEST(UnitFrameworkRules, FrameworksDifferWhereTheirSourcesSay) {
  const FrameworkRules& megatron = rules_of(Framework::kMegatron);
  const FrameworkRules& fork = rules_of(Framework::kMegatronDeepSpeed);
  const FrameworkRules& titan = rules_of(Framework::kTorchtitan);
  const FrameworkRules& deepspeed = rules_of(Framework::kDeepSpeed);
  EXPECT_EQ(megatron.vocabulary_multiple.value, 128);
  EXPECT_EQ(titan.vocabulary_multiple.value, 1);
  EXPECT_TRUE(megatron.fused_attention.value);
  EXPECT_FALSE(fork.fused_attention.value);
  EXPECT_TRUE(fork.dropout.value);
  // 1F1B of Megatron-LM waits for each message; its interleaved schedule does not.
  EXPECT_FALSE(megatron.async_p2p.value);
  EXPECT_TRUE(megatron.async_p2p_interleaved.value);
  EXPECT_TRUE(titan.async_p2p.value);
  // "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism."
  EXPECT_FALSE(deepspeed.sharding_stage_3_with_pipeline.value);
  EXPECT_TRUE(titan.sharding_stage_3_with_pipeline.value);
  // A pipeline of torch accumulates unsharded gradients until the last backward.
  EXPECT_EQ(titan.reduce_cadence_high.value, ReduceCadence::kPerMicrobatch);
  EXPECT_EQ(titan.reduce_cadence_pipeline.value, ReduceCadence::kPerStep);
  // Logits at the loss: bf16 and fp32 softmax; an eager loss holds three fp32 copies; with the
  // logits and their shifted copy in the model's output; a fused one bf16 logits and gradient.
  EXPECT_EQ(megatron.logits_bytes.value, 2 + 4);
  EXPECT_EQ(titan.logits_bytes.value, 3 * 4);
  EXPECT_EQ(deepspeed.logits_bytes.value, 2 + 3 * 4);
  EXPECT_EQ(rules_of(Framework::kFsdp).logits_bytes.value, 2 + 2);
  // 5e8 elements of 2 bytes.
  EXPECT_EQ(deepspeed.bucket_bytes.value, (Bytes{1'000'000'000}));
}

// A gradient of fp32 training has 4 bytes wherever it travels; a framework that reduces 16-bit
// gradients in fp32 goes on doing so.
TEST(UnitFrameworkRules, WideFormatsTravelWhole) {
  EXPECT_EQ(wire_bytes(DType::kFp32), 4);
  EXPECT_EQ(wire_bytes(DType::kTf32), 4);
  EXPECT_EQ(wire_bytes(DType::kBf16), 2);
  EXPECT_EQ(wire_bytes(DType::kFp8), 2);
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    const auto framework = static_cast<Framework>(i);
    const double narrow = rules_of(framework).reduce_bytes.value;
    EXPECT_EQ(rules_of(framework, DType::kFp32).reduce_bytes.value, 4) << kFrameworkNames[i];
    EXPECT_EQ(rules_of(framework, DType::kTf32).reduce_bytes.value, 4) << kFrameworkNames[i];
    EXPECT_EQ(rules_of(framework, DType::kFp16).reduce_bytes.value, narrow) << kFrameworkNames[i];
  }
}

}  // namespace frameworks_rules_test
}  // namespace towtank
