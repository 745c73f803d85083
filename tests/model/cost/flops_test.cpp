// SPDX-License-Identifier: Apache-2.0
#include "model/cost/flops.h"

#include <gtest/gtest.h>

#include <array>

#include "core/contracts.h"
#include "core/rng.h"
#include "tests/support/near.h"

namespace towtank::flops_test {

using testing::kSameArithmetic;

constexpr FlopPerSecond kA100{312e12};

/// The forward work of one sample, op by op: four h x h projections, two h x 4h products, the core
/// with 4 s h FLOP a token, logits.
ForwardWork gpt_sample(const GptShape& g) {
  const double layer =
      2.0 * g.sequence * (4.0 * g.hidden * g.hidden + 2.0 * g.hidden * 4.0 * g.hidden);
  const double core = 4.0 * g.sequence * g.sequence * g.hidden;
  return {.matmul = {g.layers * layer + 2.0 * g.sequence * g.hidden * g.vocabulary},
          .attention_counted = {g.layers * core},
          .attention_run = {g.layers * core / 2.0}};
}

TEST(UnitFlops, ModelFlopIsThreeForwardsWithFullAttention) {
  const ForwardWork sample{.matmul = {10}, .attention_counted = {4}, .attention_run = {2}};
  EXPECT_EQ(model_flop(sample, 8).value, 3 * 8 * (10 + 4));
}

TEST(UnitFlops, HardwareFlopCountsWhatRuns) {
  const ForwardWork sample{.matmul = {10}, .attention_counted = {4}, .attention_run = {2}};
  const ForwardWork again{.matmul = {5}, .attention_counted = {4}, .attention_run = {2}};
  EXPECT_EQ(hardware_flop(sample, 1, AttentionKernel::kFused).value, 3 * 10 + 3.5 * 2);
  EXPECT_EQ(hardware_flop(sample, 1, AttentionKernel::kUnfused).value, 3 * 10 + 3 * 4);
  EXPECT_EQ(hardware_flop(sample, 2, AttentionKernel::kFused, again).value,
            2 * (3 * 10 + 3.5 * 2 + 5 + 2));
  EXPECT_EQ(hardware_flop(sample, 2, AttentionKernel::kUnfused, again).value,
            2 * (3 * 10 + 3 * 4 + 5 + 4));
}

TEST(UnitFlops, UtilisationIsOfAllDevices) {
  EXPECT_EQ(utilisation({2e15}, {10}, 4, {100e12}), 0.5);
  EXPECT_EQ(utilisation({2e15}, {0}, 4, {100e12}), 0.0);
  EXPECT_EQ(rate_per_device({2e15}, {10}, 4).value, 50e12);
  EXPECT_THROW(static_cast<void>(utilisation({1}, {1}, 0, {1})), ContractViolation);
  EXPECT_THROW(static_cast<void>(rate_per_device({1}, {0}, 1)), ContractViolation);
}

// gpt2: 124,439,808, of which the closed form leaves out the final norm, 2 h.
TEST(UnitFlops, ClosedFormOfParameters) {
  const GptShape gpt2{.layers = 12, .hidden = 768, .vocabulary = 50257, .sequence = 1024};
  EXPECT_CLOSE(gpt_parameters(gpt2), 124'439'808.0 - 2 * 768, kSameArithmetic);
}

TEST(DifferFlops, ClosedFormsEqualSumsOverOps) {
  Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    const GptShape g{.layers = static_cast<double>(rng.integer(1, 128)),
                     .hidden = static_cast<double>(64 * rng.integer(1, 400)),
                     .vocabulary = static_cast<double>(rng.integer(1000, 300000)),
                     .sequence = static_cast<double>(rng.integer(1, 100000))};
    const double batch = static_cast<double>(rng.integer(1, 4096));
    const ForwardWork sample = gpt_sample(g);
    EXPECT_CLOSE(gpt_model_flop(g, batch).value, model_flop(sample, batch).value, kSameArithmetic);

    ForwardWork core = sample;
    core.matmul = {0};
    EXPECT_CLOSE(gpt_selective_recompute_flop(g, batch).value,
                 hardware_flop(sample, batch, AttentionKernel::kUnfused, core).value,
                 kSameArithmetic);

    ForwardWork layers = sample;
    layers.matmul -= Flop{2.0 * g.sequence * g.hidden * g.vocabulary};  // the head runs once
    EXPECT_CLOSE(gpt_full_recompute_flop(g, batch).value,
                 hardware_flop(sample, batch, AttentionKernel::kUnfused, layers).value,
                 kSameArithmetic);
  }
}

TEST(LawFlops, RecomputationAddsHardwareFlopAndNoModelFlop) {
  const GptShape g{.layers = 96, .hidden = 12288, .vocabulary = 51200, .sequence = 2048};
  EXPECT_LT(gpt_model_flop(g, 1), gpt_selective_recompute_flop(g, 1));
  EXPECT_LT(gpt_selective_recompute_flop(g, 1), gpt_selective_recompute_flop_published(g, 1));
  EXPECT_LT(gpt_selective_recompute_flop_published(g, 1), gpt_full_recompute_flop(g, 1));
}

// Korthikanti et al., MLSys 2023, sequence parallel + selective: iteration times and the MFU and
// HFU columns of oracles.md section 3; four digits of a time of three give 0.5 %.
TEST(ValidateFlops, KorthikantiUtilisation) {
  struct Row {
    double hidden, layers;
    int devices;
    double batch, seconds, mfu, hfu;
  };
  constexpr std::array rows{Row{6144, 48, 8, 4, 1.10, .4165, .4381},
                            Row{12288, 96, 64, 64, 13.75, .5139, .5277},
                            Row{20480, 105, 280, 280, 37.83, .5605, .5696},
                            Row{25600, 128, 512, 512, 71.49, .5627, .5701}};
  for (const Row& r : rows) {
    const GptShape g{.layers = r.layers, .hidden = r.hidden, .vocabulary = 51200, .sequence = 2048};
    EXPECT_NEAR(utilisation(gpt_model_flop(g, r.batch), {r.seconds}, r.devices, kA100), r.mfu,
                1e-4);
    EXPECT_NEAR(utilisation(gpt_selective_recompute_flop_published(g, r.batch), {r.seconds},
                            r.devices, kA100),
                r.hfu, 1e-4);
  }
}

// Megatron SC'21: 175B parameters, 300 B tokens on 1,024 A100 at 140 TFLOP/s take 34 days by its
// rule of thumb, 8 T P / (N X); the closed form agrees within 3 %.
TEST(ValidateFlops, RuleOfThumbOfTrainingTime) {
  const GptShape gpt3{.layers = 96, .hidden = 12288, .vocabulary = 51200, .sequence = 2048};
  const double tokens = 300e9;
  const double thumb = 8 * tokens * 175e9;
  EXPECT_NEAR(thumb / (1024 * 140e12) / 86400, 34, 0.5);
  EXPECT_NEAR(gpt_full_recompute_flop(gpt3, tokens / gpt3.sequence).value / thumb, 1.0, 0.03);
}

// LLM-Foundry's table of training throughput: MPT-70B, 64 H100, 66,523 tokens/s, MFU 42.57 %. Its
// parameters: 12 L h^2 + V h + (2L + 1) h of norms without biases.
TEST(ValidateFlops, FoundryConvention) {
  const GptShape mpt{.layers = 80, .hidden = 8192, .vocabulary = 50368, .sequence = 2048};
  const double parameters = 12.0 * 80 * 8192 * 8192 + 50368.0 * 8192 + 161.0 * 8192;
  const double samples_a_second = 66523.0 / 2048;
  const Flop work = foundry_model_flop(parameters, mpt, samples_a_second);
  EXPECT_NEAR(utilisation(work, {1.0}, 64, {989.5e12}), 0.4257, 1e-3);
}

}  // namespace towtank::flops_test
