// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/planning.h"

namespace towtank {
namespace hardware_work_cases {

constexpr int kHidden = 1024, kLayers = 4, kSequence = 2048, kBatch = 8;

/// FLOP of one step, from the HFU that is printed.
double work(RecomputeMode mode) {
  const testing::Question q(testing::gpt2_config(kHidden, kLayers, 16, 50257, kSequence),
                            "dgx-a100-80g", 8, kSequence, kBatch);
  Plan plan;
  plan.framework = Framework::kMegatron2021;
  plan.data = 8;
  plan.recompute = mode;
  expand_stages(plan, kLayers);
  const Prediction p = q.predict(plan);
  return p.hfu * p.step_time.value * 8 * q.problem().peak.value;
}

// Korthikanti et al. 2022, appendix A: a layer's forward is 24 s h^2 + 4 s^2 h FLOP a sequence; full
// recomputation runs all of it again, selective the attention core, 4 s^2 h. What norms and softmax
// compute besides is below 2 % of it.
TEST(UnitHardwareWork, CountsWhatRecomputationRepeats) {
  const double s = kSequence, h = kHidden, layers = kLayers * kBatch;
  const double none = work(RecomputeMode::kNone);
  const double core = layers * 4 * s * s * h;
  const double all = layers * 24 * s * h * h + core;
  EXPECT_NEAR((work(RecomputeMode::kSelective) - none) / core, 1.0, 0.02);
  EXPECT_NEAR((work(RecomputeMode::kFull) - none) / all, 1.0, 0.02);
}

// 8 devices, tensor 2, pipeline 2, data 2, microbatch 1: 6 samples are 3 microbatches a replica, no
// multiple of the pipeline.
TEST(FaultSpace, InterleavingThatCannotRoundSaysSo) {
  const testing::Question q(testing::gpt2_config(kHidden, kLayers, 16, 50257, kSequence),
                            "dgx-a100-80g", 8, kSequence, 6);
  Pins pins;
  pins.tensor = 2;
  pins.pipeline = 2;
  pins.stages_per_rank = 2;
  pins.microbatch = 1;
  const auto reasons = why_empty(q.problem(), Framework::kMegatron, pins);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0],
            "interleaving needs microbatches a replica in multiples of pipeline=2, here are 3 with "
            "context=1");
}

}  // namespace hardware_work_cases
}  // namespace towtank
