// SPDX-License-Identifier: Apache-2.0
// Lowered tasks without contention against the closed form, and the shape of what is lowered.
#include "sim/lower.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/longest_path.h"
#include "tests/sim/random_plans.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kTwoEngines;
using testing::sim::Asked;
using testing::sim::RandomPlans;

TEST(DifferLongestPath, EqualsTheClosedFormOnRandomPlans) {
  RandomPlans plans(1);
  std::set<ScheduleKind> schedules;
  std::set<Framework> frameworks;
  std::set<int> sharding;
  for (int i = 0; i < 300; ++i) {
    const Asked asked = plans.next();
    const double closed = asked.question->predict(asked.plan).step_time.value;
    const LoweredStep step = lower(asked.question->problem(), asked.plan);
    EXPECT_CLOSE(longest_path(step.tasks).makespan(), closed, kTwoEngines)
        << short_text(asked.plan) << " "
        << kFrameworkNames[static_cast<std::size_t>(asked.plan.framework)] << " on "
        << asked.question->problem().devices();
    schedules.insert(asked.plan.schedule);
    frameworks.insert(asked.plan.framework);
    sharding.insert(asked.plan.sharding_stage);
  }
  EXPECT_EQ(schedules.size(), kScheduleNames.size());
  EXPECT_EQ(frameworks.size(), kFrameworkCount);
  EXPECT_EQ(sharding.size(), 4U);
}

TEST(DifferLongestPath, DoesNotDependOnFolding) {
  RandomPlans plans(2);
  for (int i = 0; i < 60; ++i) {
    const Asked asked = plans.next();
    LowerOptions unfolded;
    unfolded.fold_replicas = false;
    EXPECT_CLOSE(
        longest_path(lower(asked.question->problem(), asked.plan, unfolded).tasks).makespan(),
        longest_path(lower(asked.question->problem(), asked.plan).tasks).makespan(), kTwoEngines)
        << short_text(asked.plan);
  }
}

}  // namespace
}  // namespace towtank
