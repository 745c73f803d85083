// SPDX-License-Identifier: Apache-2.0
// Published memory numbers and verdicts: what must fit fits, what ran out runs out.
#include <gtest/gtest.h>

#include "tests/model/memory/stages.h"

namespace towtank {
namespace memory_published_test {

using testing::DecoderStage;
using testing::gib;

/// FSDP of torchtitan over all ranks: context ranks share the shards.
Bytes fsdp_allocated(int tokens, const ShardDegrees& degrees, int shards, RecomputeMode recompute) {
  DecoderStage stage(testing::kLlama8b, tokens, degrees, Framework::kTorchtitan, DType::kBf16,
                     recompute);
  stage.input.data_shards = stage.input.expert_data_shards = shards;
  stage.input.sharding_stage = 3;
  return stage.memory().allocated();
}

// Llama-3-8B has 8,030,261,248 parameters; fp32 shards of 16 bytes: between 8 and 128 ranks
// 16 P (1/8 - 1/128) = 14.0 GiB go.
TEST(UnitMemoryPublished, TorchtitanDeltaLaw) {
  const ShardDegrees b2{.microbatch = 2};
  const Bytes at_8 = fsdp_allocated(8192, b2, 8, RecomputeMode::kSelective);
  const Bytes at_128 = fsdp_allocated(8192, b2, 128, RecomputeMode::kSelective);
  const double p = 8'030'261'248;
  EXPECT_NEAR(static_cast<double>((at_8 - at_128).value), 16 * p * (1.0 / 8 - 1.0 / 128), 8);
  EXPECT_NEAR(gib(at_8 - at_128), 14.0, 0.05);
}

// torchtitan benchmarks/llama3_h100_202412: 83.9, 84.2, 84.0, 84.5 GiB at 8 x 1, 4 x 2, 2 x 4, 1 x
// 8 (data x context): tokens a device stay, so memory does (measured within 1 GiB).
TEST(LawMemoryPublished, FsdpTimesContextIsFlat) {
  const Bytes first = fsdp_allocated(32768, {.context = 1}, 8, RecomputeMode::kFull);
  for (const int c : {2, 4, 8}) {
    const Bytes m = fsdp_allocated(32768 * c, {.context = c}, 8, RecomputeMode::kFull);
    EXPECT_NEAR(gib(m), gib(first), 0.01) << c;
  }
}

// V 128,256, 16,384 tokens, bf16 logits and an fp32 softmax: 6 bytes each, 12.6 GB.
TEST(UnitMemoryPublished, LogitsOfALargeVocabulary) {
  const DecoderStage stage(testing::kLlama8b, 8192, {.microbatch = 2}, Framework::kMegatron,
                           DType::kBf16, RecomputeMode::kNone);
  EXPECT_EQ(stage.head().saved.logits, (Bytes{6LL * 128'256 * 8192 * 2}));
  EXPECT_NEAR(static_cast<double>(stage.head().saved.logits.value), 12.6e9, 0.05e9);
}

// Llama-3-8B: 139,392 bytes a token and layer, fused attention, sequence parallel.
TEST(UnitMemoryPublished, BytesATokenOfAModernBlock) {
  const DecoderStage stage(testing::kLlama8b, 8192, {}, Framework::kMegatron, DType::kBf16,
                           RecomputeMode::kNone);
  const double h = 4096, q = 4096, u = 1024, a = 32, f = 14336;
  const double bytes = 8 * h + 2 * (q + 2 * u) + 2 * q + 4 * a + 6 * f;
  EXPECT_EQ(bytes, 139'392);
  EXPECT_EQ(stage.block().saved.without_recompute(), bytes_from(8192 * bytes));
}

// torchtitan's "op" option saves every second product (q, v, w1, w2), attention with its
// log-sum-exp and the layer input; the MLP's output stands in for the second norm's input.
TEST(UnitMemoryPublished, TorchtitanSelectiveSavesEverySecondProduct) {
  const DecoderStage stage(testing::kLlama8b, 8192, {}, Framework::kTorchtitan, DType::kBf16,
                           RecomputeMode::kSelective);
  const double h = 4096, q = 4096, u = 1024, a = 32, f = 14336;
  const double policy = 2 * h + 2 * q + 2 * u + (2 * q + 4 * a) + 2 * f + 2 * h;
  const Bytes saved =
      saved_bytes(stage.block(), RecomputeMode::kSelective, rules_of(Framework::kTorchtitan));
  // The table cannot drop k alone, an error of 2 u.
  EXPECT_EQ(saved, bytes_from(8192 * (policy + 2 * u)));
}

Fit verdict(const DecoderStage& stage, Bytes capacity) {
  return fit_of(stage.memory().total(), capacity);
}

// Full fine-tuning of a 6.7B model (stanford_alpaca issue 56): out of memory on one A100-80, 107 GB
// of states; runs on two with FSDP.
TEST(UnitMemoryPublished, SevenBillionOnOneAndTwoDevices) {
  DecoderStage stage(testing::kLlama7b, 512, {}, Framework::kFsdp, DType::kBf16,
                     RecomputeMode::kNone);
  EXPECT_NEAR(16 * stage.parameters(), 107e9, 1e9);
  stage.input.sharding_stage = 3;
  EXPECT_EQ(verdict(stage, testing::kA100Memory80), Fit::kOom);
  stage.input.data_shards = stage.input.expert_data_shards = 2;
  EXPECT_EQ(verdict(stage, testing::kA100Memory80), Fit::kFits);
}

// LLaDA-8B under ZeRO-2 on two A100-40 (dllm issue 9): a request of 14.9 GiB for the fp32
// partition, 4 bytes of half of 8.0e9 parameters, fails before any activation.
TEST(UnitMemoryPublished, EightBillionZeroTwoOnTwoSmallDevices) {
  DecoderStage stage({4096, 32, 32, 32, 12288, 126'464}, 512, {.microbatch = 2},
                     Framework::kDeepSpeed, DType::kBf16, RecomputeMode::kNone);
  EXPECT_NEAR(4 * stage.parameters() / 2 / (1024.0 * 1024 * 1024), 14.9, 0.05);
  stage.input.sharding_stage = 2;
  stage.input.data_shards = stage.input.expert_data_shards = 2;
  for (const MemoryBreakdown& phase : stage.phases()) {
    EXPECT_EQ(fit_of(phase.parameters + phase.gradients + phase.optimizer, testing::kA100Memory40),
              Fit::kOom);
  }
}

// Megatron-LM issue 1308: Llama-3-70B with 18 bytes a parameter on 16 devices of 80 GB is out of
// memory even at 16 tokens (73.9 GiB of states on the mean device); 70 of its 80 layers run.
TEST(UnitMemoryPublished, SeventyBillionOnSixteenDevices) {
  const ShardDegrees degrees{.tensor = 8, .sequence_parallel = true};
  DecoderStage stage(testing::kLlama70b, 16, degrees, Framework::kMegatron, DType::kBf16,
                     RecomputeMode::kFull);
  stage.input.microbatches_in_flight = 2;
  stage.input.pipelined = true;
  stage.keep(1, 40, 0);
  EXPECT_NEAR(
      gib(stage.phases()[0].parameters + stage.phases()[0].gradients + stage.phases()[0].optimizer),
      73.9, 0.1);
  EXPECT_NE(verdict(stage, testing::kA100Memory80), Fit::kFits);
  stage.keep(1, 35, 0);
  EXPECT_EQ(verdict(stage, testing::kA100Memory80), Fit::kFits);
}

}  // namespace memory_published_test
}  // namespace towtank
