// SPDX-License-Identifier: Apache-2.0
#include "placement/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/contracts.h"
#include "core/rng.h"

namespace towtank::plan_test {

Plan plan_of(int t, int c, int d, int p, int e = 1, int tau = 1) {
  Plan plan;
  plan.tensor = t;
  plan.context = c;
  plan.data = d;
  plan.pipeline = p;
  plan.expert = e;
  plan.expert_tensor = tau;
  return plan;
}

using Groups = std::vector<std::vector<int>>;

/// Ranks that differ in one coordinate only, each group in rank order.
template <class Key>
Groups groups_by(const Plan& plan, Key key) {
  std::map<std::vector<int>, std::vector<int>> groups;
  for (int rank = 0; rank < plan.devices(); ++rank) {
    groups[key(coordinates_of(plan, rank))].push_back(rank);
  }
  Groups lists;
  for (auto& [at, ranks] : groups) lists.push_back(ranks);
  std::sort(lists.begin(), lists.end());
  return lists;
}

Groups expert_groups(const Plan& plan) {
  return groups_by(plan, [](const RankCoordinates& at) {
    return std::vector<int>{at.expert_tensor, at.expert_data, at.pipeline};
  });
}
Groups expert_data_groups(const Plan& plan) {
  return groups_by(plan, [](const RankCoordinates& at) {
    return std::vector<int>{at.expert_tensor, at.expert, at.pipeline};
  });
}

TEST(UnitPlan, ExpertGroupsAreFoldedIntoTheDenseGrid) {
  const Plan plan = plan_of(2, 1, 4, 1, 4, 1);
  EXPECT_EQ(plan.expert_data(), 4 * 1 * 2 / 4);
  EXPECT_EQ(expert_groups(plan), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(expert_data_groups(plan), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(UnitPlan, DenseOrderIsTensorContextDataPipeline) {
  const Plan plan = plan_of(2, 2, 2, 2);
  // Rank 13 = 1 + 2 (0 + 2 (1 + 2 * 1)).
  const RankCoordinates at = coordinates_of(plan, 13);
  EXPECT_EQ(at.tensor, 1);
  EXPECT_EQ(at.context, 0);
  EXPECT_EQ(at.data, 1);
  EXPECT_EQ(at.pipeline, 1);
  EXPECT_EQ(groups_by(plan,
                      [](const RankCoordinates& k) {
                        return std::vector<int>{k.tensor, k.context, k.data};
                      })
                .front(),
            (std::vector<int>{0, 8}));
}

Plan random_plan(Rng& rng) {
  const auto power = [&](int most) { return 1 << rng.integer(0, most); };
  Plan plan = plan_of(power(2), power(1), power(2), power(2));
  plan.expert_tensor = rng.uniform() < 0.5 ? 1 : plan.tensor;
  const int ranks = plan.data * plan.context * plan.tensor;
  plan.expert = 1 << rng.integer(0, 3);
  while (ranks % (plan.expert * plan.expert_tensor) != 0) plan.expert /= 2;
  return plan;
}

TEST(LawPlan, BothGridsNumberEveryRankOnce) {
  Rng rng(43);
  for (int n = 0; n < 200; ++n) {
    const Plan plan = random_plan(rng);
    const int in_stage = plan.tensor * plan.context * plan.data;
    for (int rank = 0; rank < plan.devices(); ++rank) {
      const RankCoordinates at = coordinates_of(plan, rank);
      const int dense =
          at.tensor +
          plan.tensor * (at.context + plan.context * (at.data + plan.data * at.pipeline));
      const int expert =
          at.expert_tensor +
          plan.expert_tensor *
              (at.expert + plan.expert * (at.expert_data + plan.expert_data() * at.pipeline));
      ASSERT_EQ(dense, rank);
      ASSERT_EQ(expert, rank);
      ASSERT_LT(at.data, plan.data);
      ASSERT_LT(at.expert_data, plan.expert_data());
      ASSERT_EQ(at.pipeline, rank / in_stage);
    }
  }
}

/// The ranks of the group that rank 0 is in, from its size and stride.
std::vector<int> first_group(const GroupStride& group) {
  std::vector<int> ranks;
  for (int i = 0; i < group.size; ++i) ranks.push_back(i * group.stride);
  return ranks;
}

TEST(DifferPlan, GroupsByStrideAndByCoordinates) {
  Rng rng(47);
  for (int n = 0; n < 200; ++n) {
    const Plan plan = random_plan(rng);
    const auto dense = [&](int axis) {
      return groups_by(plan,
                       [axis](const RankCoordinates& at) {
                         std::vector<int> key{at.tensor, at.context, at.data, at.pipeline};
                         key.erase(key.begin() + axis);
                         return key;
                       })
          .front();
    };
    EXPECT_EQ(first_group(group_of(plan, Axis::kTensor)), dense(0));
    EXPECT_EQ(first_group(group_of(plan, Axis::kContext)), dense(1));
    EXPECT_EQ(first_group(group_of(plan, Axis::kData)), dense(2));
    EXPECT_EQ(first_group(group_of(plan, Axis::kPipeline)), dense(3));
    EXPECT_EQ(first_group(group_of(plan, Axis::kExpert)), expert_groups(plan).front());
    EXPECT_EQ(first_group(group_of(plan, Axis::kExpertTensor)),
              groups_by(plan, [](const RankCoordinates& at) {
                return std::vector<int>{at.expert, at.expert_data, at.pipeline};
              }).front());
    EXPECT_EQ(first_group(gradient_group(plan, true)), expert_data_groups(plan).front());
    EXPECT_EQ(first_group(gradient_group(plan, false)),
              groups_by(plan, [](const RankCoordinates& at) {
                return std::vector<int>{at.tensor, at.pipeline};
              }).front());
  }
}

TEST(UnitPlan, GradientGroups) {
  const Plan plan = plan_of(4, 2, 8, 2, 8, 1);
  EXPECT_EQ(plan.devices(), 4 * 2 * 8 * 2);
  EXPECT_EQ(gradient_group(plan, false).size, 2 * 8);
  EXPECT_EQ(gradient_group(plan, false).stride, 4);
  EXPECT_EQ(gradient_group(plan, true).size, 8 * 2 * 4 / 8);
  EXPECT_EQ(gradient_group(plan, true).stride, 8);
}

TEST(FaultPlan, ARankOutsideThePlanIsAContract) {
  EXPECT_THROW(static_cast<void>(coordinates_of(plan_of(2, 1, 1, 1), 2)), ContractViolation);
  EXPECT_THROW(static_cast<void>(coordinates_of(plan_of(2, 1, 1, 1), -1)), ContractViolation);
}

TEST(GoldenPlan, ShortText) {
  Plan plan = plan_of(8, 1, 2, 4);
  plan.stages_per_rank = 5;
  plan.schedule = ScheduleKind::kInterleaved;
  plan.sharding_stage = 1;
  plan.sequence_parallel = true;
  plan.recompute = RecomputeMode::kFull;
  EXPECT_EQ(short_text(plan), "tp8 pp4 dp2 vp5 mb1 interleaved zero1 sp full");
  plan = plan_of(2, 4, 8, 1, 16, 2);
  plan.microbatch = 3;
  EXPECT_EQ(short_text(plan), "tp2 pp1 dp8 cp4 ep16 etp2 mb3 zero0");
}

TEST(UnitPlan, EqualityAsksEveryField) {
  const Plan plan = plan_of(2, 1, 2, 2);
  Plan other = plan;
  EXPECT_TRUE(plan == other);
  other.state_override = StateBytes{};
  EXPECT_FALSE(plan == other);
  other = plan;
  other.rank_map = {0};
  EXPECT_FALSE(plan == other);
  other = plan;
  other.stages = {{}};
  EXPECT_FALSE(plan == other);
  other = plan;
  other.compile = true;
  EXPECT_FALSE(plan == other);
}

std::vector<int> layers_of(const Plan& plan) {
  std::vector<int> layers;
  for (const PlanStage& stage : plan.stages) layers.push_back(stage.last - stage.first);
  return layers;
}

TEST(UnitPlan, StagesOfThePublishedLlama405B) {
  Plan plan = plan_of(8, 1, 128, 16);
  plan.recompute = RecomputeMode::kFull;
  expand_stages(plan, 126);  // 126 = 128 less one on the first and the last stage
  std::vector<int> expected(16, 8);
  expected.front() = expected.back() = 7;
  EXPECT_EQ(layers_of(plan), expected);
  EXPECT_EQ(plan.stages[3].recompute_full, 8);
  EXPECT_EQ(plan.stages[3].recompute_selective, 0);
}

TEST(LawPlan, ExpandedStagesHoldEveryLayerInOrder) {
  Rng rng(53);
  for (int n = 0; n < 300; ++n) {
    Plan plan = plan_of(1, 1, 1, static_cast<int>(rng.integer(1, 8)));
    plan.stages_per_rank = static_cast<int>(rng.integer(1, 4));
    plan.recompute = static_cast<RecomputeMode>(rng.integer(0, 2));
    const int stages = plan.pipeline * plan.stages_per_rank;
    const int layers = static_cast<int>(rng.integer(stages, 130));
    expand_stages(plan, layers);
    ASSERT_EQ(plan.stages.size(), static_cast<std::size_t>(stages));
    int next = 0;
    for (const PlanStage& stage : plan.stages) {
      ASSERT_EQ(stage.first, next);
      next = stage.last;
      const int held = stage.last - stage.first;
      ASSERT_TRUE(held == layers / stages || held == layers / stages + 1);
    }
    ASSERT_EQ(next, layers);
    ASSERT_LE(plan.stages.front().last, (layers + stages - 1) / stages);
    ASSERT_EQ(uniform_recompute(plan.stages), plan.recompute);
    const Plan before = plan;
    expand_stages(plan, layers);
    ASSERT_TRUE(plan == before);
  }
}

TEST(UnitPlan, UniformRecompute) {
  EXPECT_EQ(uniform_recompute({}), RecomputeMode::kNone);
  std::vector<PlanStage> stages{{0, 4, 4, 0, ""}, {4, 8, 4, 0, ""}};
  EXPECT_EQ(uniform_recompute(stages), RecomputeMode::kFull);
  stages[1].recompute_full = 3;
  EXPECT_EQ(uniform_recompute(stages), std::nullopt);
  stages[1].recompute_selective = 1;
  EXPECT_EQ(uniform_recompute(stages), std::nullopt);
}

}  // namespace towtank::plan_test
