// SPDX-License-Identifier: Apache-2.0
#include "placement/nearest.h"

#include <gtest/gtest.h>

#include "tests/support/planning.h"

namespace towtank {
namespace nearest_cases {

using testing::Question;

/// Llama-70B on 64 H100, tensor 8: what the cases below vary.
Plan tensor_eight(int pipeline, int data, int microbatch) {
  Plan plan;
  plan.tensor = 8;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.microbatch = microbatch;
  plan.sharding_stage = data > 1 ? 1 : 0;
  plan.sequence_parallel = true;
  plan.schedule = pipeline > 1 ? ScheduleKind::kOneFOneB : ScheduleKind::kNone;
  expand_stages(plan, 80);
  return plan;
}

bool fits(const Question& q, const Plan& plan) {
  return q.predict(plan).peak_memory().total() <= q.problem().capacity;
}

Plan recomputed(Plan plan, RecomputeMode mode) {
  plan.recompute = mode;
  plan.stages.clear();
  expand_stages(plan, 80);
  return plan;
}

}  // namespace nearest_cases

using namespace nearest_cases;

TEST(UnitNearest, RecomputationIsTriedFirst) {
  const Question q(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  const Plan plan = tensor_eight(1, 8, 4);
  ASSERT_FALSE(fits(q, plan));
  ASSERT_FALSE(fits(q, recomputed(plan, RecomputeMode::kSelective)));
  ASSERT_TRUE(fits(q, recomputed(plan, RecomputeMode::kFull)));
  const auto change = nearest_change(q.problem(), plan, {});
  ASSERT_TRUE(change);
  EXPECT_EQ(change->text, "recompute full");
  EXPECT_EQ(change->plan, recomputed(plan, RecomputeMode::kFull));
}

TEST(UnitNearest, ThenASmallerMicrobatch) {
  const Question q(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  const Plan plan = recomputed(tensor_eight(1, 8, 16), RecomputeMode::kFull);
  ASSERT_FALSE(fits(q, plan));
  const auto change = nearest_change(q.problem(), plan, {});
  ASSERT_TRUE(change);
  // The largest divisor of 16 that fits: all larger ones do not.
  ASSERT_EQ(change->text, "microbatch " + std::to_string(change->plan.microbatch));
  for (const int b : {16, 8, 4, 2, 1}) {
    Plan other = plan;
    other.microbatch = b;
    EXPECT_EQ(fits(q, other), b <= change->plan.microbatch) << b;
  }
}

TEST(UnitNearest, ThenDegrees) {
  // Without tensor parallelism the states alone are too large, whatever is recomputed.
  const Question q(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  Plan plan;
  plan.data = 64;
  plan.sharding_stage = 1;
  expand_stages(plan, 80);
  ASSERT_FALSE(fits(q, recomputed(plan, RecomputeMode::kFull)));
  const auto change = nearest_change(q.problem(), plan, {});
  ASSERT_TRUE(change);
  EXPECT_TRUE(fits(q, change->plan));
  EXPECT_EQ(change->plan.devices(), 64);
  EXPECT_TRUE(check_plan(change->plan, q.graph(), q.workload(), q.problem().view).empty());
}

TEST(UnitNearest, NothingWhereNothingFits) {
  const Question q(testing::llama_405b(), "dgx-h100", 8, 8192, 128);
  Plan plan;
  plan.tensor = 8;
  plan.sequence_parallel = true;
  expand_stages(plan, 126);
  EXPECT_FALSE(nearest_change(q.problem(), plan, {}));
}

}  // namespace towtank
