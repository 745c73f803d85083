// SPDX-License-Identifier: Apache-2.0
// Times of a schedule against closed forms for equal stages and published small instances.
// Instances: F = 1 and B = 2 of a stage, so that results are whole numbers. A hop of 2^-10 is
// exact.
#include "placement/recurrence.h"

#include <gtest/gtest.h>

#include "tests/placement/stage_times.h"
#include "tests/support/near.h"

namespace towtank::recurrence_test {

using testing::equal_hops;
using testing::equal_stages;
using testing::kSameArithmetic;
using testing::makespan;

constexpr double kHop = 0x1.0p-10;

/// What hops add to the makespan, in hops.
double extra_hops(ScheduleKind kind, const PipelineShape& shape, double f, double i, double w) {
  const auto stages = equal_stages(shape.ranks * shape.stages_per_rank, f, i, w);
  return (makespan(kind, shape, stages, kHop) - makespan(kind, shape, stages)) / kHop;
}

double one_f_one_b_time(int ranks, int microbatches) {
  return makespan(ScheduleKind::kOneFOneB, {ranks, microbatches, 1}, equal_stages(ranks, 1, 1, 1));
}
double interleaved_time(int ranks, int microbatches, int v) {
  return makespan(ScheduleKind::kInterleaved, {ranks, microbatches, v},
                  equal_stages(ranks * v, 1, 1, 1));
}
double zb_h1_time(int ranks, int microbatches) {
  return makespan(ScheduleKind::kZbH1, {ranks, microbatches, 1}, equal_stages(ranks, 1, 1, 1));
}
double one_f_one_b_extra(int ranks, int microbatches) {
  return extra_hops(ScheduleKind::kOneFOneB, {ranks, microbatches, 1}, 1, 1, 1);
}
double zb_h1_extra(int ranks, int microbatches) {
  return extra_hops(ScheduleKind::kZbH1, {ranks, microbatches, 1}, 1, 1, 1);
}

TEST(UnitRecurrence, SmallInstancesOneFOneB) {
  EXPECT_EQ(one_f_one_b_time(4, 8), (8 + 3) * 3);
  EXPECT_EQ(one_f_one_b_time(4, 4), 21);
  EXPECT_EQ(one_f_one_b_time(8, 16), 69);
  EXPECT_EQ(one_f_one_b_time(8, 64), 213);
  EXPECT_EQ(one_f_one_b_time(16, 16), 93);
}

TEST(UnitRecurrence, SmallInstancesInterleaved) {
  EXPECT_EQ(interleaved_time(4, 8, 2), 57);    // 8 * 2 * 3 + 3 * 3
  EXPECT_EQ(interleaved_time(4, 8, 4), 105);   // 8 * 4 * 3 + 3 * 3
  EXPECT_EQ(interleaved_time(8, 16, 2), 117);  // 16 * 2 * 3 + 7 * 3
  EXPECT_EQ(interleaved_time(8, 32, 3), 309);  // 32 * 3 * 3 + 7 * 3
}

TEST(UnitRecurrence, SmallInstancesZbH1) {
  EXPECT_EQ(zb_h1_time(4, 8), 27);  // 8 * 3 + 3 * (1 + 1 - 1)
  EXPECT_EQ(zb_h1_time(8, 16), 55);
  EXPECT_EQ(zb_h1_time(8, 64), 199);
}

TEST(UnitRecurrence, HopsOfOneFOneB) {
  EXPECT_EQ(one_f_one_b_extra(4, 4), 10);
  EXPECT_EQ(one_f_one_b_extra(4, 8), 16);
  EXPECT_EQ(one_f_one_b_extra(4, 16), 28);
  EXPECT_EQ(one_f_one_b_extra(4, 32), 52);
  EXPECT_EQ(one_f_one_b_extra(8, 8), 26);
  EXPECT_EQ(one_f_one_b_extra(8, 16), 40);
  EXPECT_EQ(one_f_one_b_extra(8, 32), 68);
  EXPECT_EQ(one_f_one_b_extra(8, 64), 124);
}

TEST(UnitRecurrence, HopsOfOneFOneBForAllMultiples) {
  int cases = 0;
  for (int p = 2; p <= 9; ++p) {
    for (int k = 1; k <= 6; ++k, ++cases) {
      const int m = k * p;
      EXPECT_EQ(one_f_one_b_extra(p, m), 2 * m * (p - 1) / p + 2 * (p - 2)) << p << " " << m;
    }
  }
  EXPECT_EQ(cases, 48);
}

TEST(UnitRecurrence, HopsOfOneFOneBWhereRanksDoNotDivideMicrobatches) {
  const std::vector<int> expected{10, 12, 12, 14, 16, 18, 18, 20, 22, 24, 24, 26, 28};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const int m = 4 + static_cast<int>(i);
    EXPECT_EQ(one_f_one_b_extra(4, m), expected[i]) << m;
  }
}

TEST(UnitRecurrence, HopsOfInterleavedDoNotGrowWithMicrobatches) {
  const auto extra = [](int p, int m, int v) {
    return extra_hops(ScheduleKind::kInterleaved, {p, m, v}, 1, 1, 1);
  };
  for (const int groups : {1, 2, 4, 8}) {
    EXPECT_EQ(extra(4, 4 * groups, 2), 14);
    EXPECT_EQ(extra(8, 8 * groups, 2), 30);
    EXPECT_EQ(extra(4, 4 * groups, 4), 30);
    EXPECT_EQ(extra(8, 8 * groups, 4), 62);
    for (const int p : {2, 3, 5}) {
      for (const int v : {2, 3}) EXPECT_EQ(extra(p, p * groups, v), 2 * (v * p - 1));
    }
  }
}

TEST(UnitRecurrence, HopsOfGpipeAreOneWayOutAndBack) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {1, 2, 8, 16}) {
      EXPECT_EQ(extra_hops(ScheduleKind::kGpipe, {p, m, 1}, 1, 1, 1), 2 * (p - 1));
    }
  }
}

TEST(UnitRecurrence, HopsOfZbH1) {
  for (const int m : {8, 12, 16}) EXPECT_EQ(zb_h1_extra(4, m), 12);
  for (const int m : {16, 32}) EXPECT_EQ(zb_h1_extra(8, m), 28);
  for (const int p : {2, 3, 5, 6}) EXPECT_EQ(zb_h1_extra(p, 2 * p), 4 * (p - 1));
  EXPECT_EQ(zb_h1_extra(4, 4), 10);  // fewer than 2 p microbatches
  EXPECT_EQ(zb_h1_extra(8, 8), 26);
}

TEST(UnitRecurrence, SlackOnOneStageHidesTheHopsOfTheSteadyState) {
  // A head makes the last stage longer by more than two hops: what is left is one way out and back.
  for (const int p : {4, 8}) {
    std::vector<StageTime> stages = equal_stages(p, 1, 1, 1);
    stages.back() = {Seconds{1.25}, Seconds{1.25}, Seconds{1.25}};
    for (const int m : {4 * p, 16 * p}) {
      const PipelineShape shape{p, m, 1};
      const double extra = (makespan(ScheduleKind::kOneFOneB, shape, stages, kHop) -
                            makespan(ScheduleKind::kOneFOneB, shape, stages)) /
                           kHop;
      EXPECT_EQ(extra, 2 * (p - 1));
    }
  }
}

TEST(UnitRecurrence, OneRankHasNoHop) {
  EXPECT_EQ(makespan(ScheduleKind::kNone, {1, 5, 1}, equal_stages(1, 1, 1, 1), 100), 15);
  EXPECT_EQ(makespan(ScheduleKind::kInterleaved, {1, 5, 3}, equal_stages(3, 1, 1, 1), 100), 45);
}

/// Ranks 2, 3, 4, 8 and microbatches 1 .. 24, where the kind allows them.
std::vector<PipelineShape> table_shapes(ScheduleKind kind) {
  std::vector<PipelineShape> shapes;
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {1, 2, 4, 8, 16, 24}) {
      if (kind != ScheduleKind::kInterleaved) {
        shapes.push_back({p, m, 1});
        continue;
      }
      for (const int v : {2, 3, 4}) {
        if (m % p == 0) shapes.push_back({p, m, v});
      }
    }
  }
  return shapes;
}

TEST(DifferRecurrence, EqualStagesTakeTheClosedForm) {
  for (const ScheduleKind kind : testing::kPipelineKinds) {
    for (const PipelineShape& shape : table_shapes(kind)) {
      const double v = shape.stages_per_rank;
      const StageTime rank{Seconds{1 * v}, Seconds{1.25 * v}, Seconds{0.75 * v}};
      const auto stages = equal_stages(shape.ranks * shape.stages_per_rank, 1, 1.25, 0.75);
      EXPECT_CLOSE(makespan(kind, shape, stages), equal_stage_makespan(kind, shape, rank).value,
                   kSameArithmetic);
    }
  }
}

TEST(UnitRecurrence, BubbleIsAFractionOfTheMakespan) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
    for (const PipelineShape& shape : table_shapes(kind)) {
      const auto stages = equal_stages(shape.ranks * shape.stages_per_rank, 1, 1, 1);
      const ScheduleTimes times = schedule_times(kind, shape, stages, equal_hops(stages.size(), 0));
      const double p = shape.ranks;
      const double vm = shape.stages_per_rank * shape.microbatches;
      for (const Seconds busy : times.rank_busy) {
        EXPECT_CLOSE(1 - busy / times.makespan, (p - 1) / (vm + p - 1), kSameArithmetic);
        EXPECT_CLOSE((times.makespan - busy) / busy, (p - 1) / vm, kSameArithmetic);
      }
    }
  }
}

TEST(UnitRecurrence, ZbH1SavesWeightGradientsOfTheBubble) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, p + 1, 2 * p, 24}) {
      const double f = 1, i = 1.25, w = 0.75;
      const auto stages = equal_stages(p, f, i, w);
      EXPECT_CLOSE(makespan(ScheduleKind::kZbH1, {p, m, 1}, stages),
                   m * (f + i + w) + (p - 1) * (f + i - w), kSameArithmetic);
    }
  }
}

TEST(LawRecurrence, ZbH1IsAboveItsFormWhereWeightGradientsAreLong) {
  Rng rng(7);
  for (int n = 0; n < 300; ++n) {
    const PipelineShape shape = testing::random_shape(ScheduleKind::kZbH1, rng);
    const StageTime rank{Seconds{1}, Seconds{rng.uniform(0.2, 1)}, Seconds{rng.uniform(1, 2)}};
    const std::vector<StageTime> stages(static_cast<std::size_t>(shape.ranks), rank);
    EXPECT_GE(makespan(ScheduleKind::kZbH1, shape, stages) * (1 + kSameArithmetic),
              equal_stage_makespan(ScheduleKind::kZbH1, shape, rank).value);
  }
}

TEST(DifferRecurrence, SweepEqualsTheWalkBitForBit) {
  Rng rng(11);
  for (int n = 0; n < 1500; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    const auto stages = testing::random_stages(shape, rng);
    const auto hops = testing::random_hops(stages.size(), rng.uniform(0, 1), rng);
    const ScheduleTimes sweep = schedule_times(kind, shape, stages, hops);
    const ScheduleTimes walk = schedule_times(make_schedule(kind, shape), stages, hops);
    const std::string at = std::string(kScheduleNames[static_cast<std::size_t>(kind)]) + " p" +
                           std::to_string(shape.ranks) + " m" + std::to_string(shape.microbatches) +
                           " v" + std::to_string(shape.stages_per_rank);
    ASSERT_EQ(sweep.makespan, walk.makespan) << at;
    ASSERT_EQ(sweep.rank_end, walk.rank_end) << at;
    ASSERT_EQ(sweep.rank_busy, walk.rank_busy) << at;
    ASSERT_EQ(sweep.last_backward_start, walk.last_backward_start) << at;
    ASSERT_EQ(sweep.last_backward_end, walk.last_backward_end) << at;
  }
}

TEST(RepeatRecurrence, AWorkspaceKeepsNothingFromTheCallBefore) {
  Rng rng(13);
  ScheduleWorkspace workspace;
  for (int n = 0; n < 200; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    const auto stages = testing::random_stages(shape, rng);
    const auto hops = testing::random_hops(stages.size(), 0.5, rng);
    const ScheduleTimes& kept = schedule_times(kind, shape, stages, hops, workspace);
    const ScheduleTimes fresh = schedule_times(kind, shape, stages, hops);
    ASSERT_EQ(kept.makespan, fresh.makespan);
    ASSERT_EQ(kept.rank_end, fresh.rank_end);
    ASSERT_EQ(kept.rank_busy, fresh.rank_busy);
    ASSERT_EQ(kept.last_backward_start, fresh.last_backward_start);
    ASSERT_EQ(kept.last_backward_end, fresh.last_backward_end);
  }
}

TEST(TightRecurrence, EveryActionStartsWhenSomethingItWaitsForEnds) {
  Rng rng(17);
  for (int n = 0; n < 100; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    const auto stages = testing::random_stages(shape, rng);
    const auto hops = testing::random_hops(stages.size(), 0.5, rng);
    const auto timed = timed_actions(make_schedule(kind, shape), stages, hops);
    const bool hop = shape.ranks > 1;
    std::vector<std::vector<TimedAction>> of_stage(stages.size());
    for (const auto& rank : timed) {
      for (const TimedAction& a : rank) {
        of_stage[static_cast<std::size_t>(a.action.stage.value)].push_back(a);
      }
    }
    for (const auto& rank : timed) {
      for (std::size_t i = 0; i < rank.size(); ++i) {
        const TimedAction& a = rank[i];
        const auto stage = static_cast<std::size_t>(a.action.stage.value);
        Seconds earliest = i > 0 ? rank[i - 1].end : Seconds{0};
        const auto wait = [&](std::size_t from, Phase phase, Seconds delay) {
          for (const TimedAction& b : of_stage[from]) {
            if (b.action.phase == phase && b.action.microbatch == a.action.microbatch) {
              earliest = std::max(earliest, b.end + delay);
            }
          }
        };
        const Phase phase = a.action.phase;
        if (phase == Phase::kForward && stage > 0) {
          wait(stage - 1, Phase::kForward, hop ? hops[stage].forward : Seconds{0});
        }
        if (phase == Phase::kBackward || phase == Phase::kInputGrad) {
          wait(stage, Phase::kForward, Seconds{0});
          if (stage + 1 < stages.size()) {
            wait(stage + 1, phase, hop ? hops[stage].backward : Seconds{0});
          }
        }
        if (phase == Phase::kWeightGrad) wait(stage, Phase::kInputGrad, Seconds{0});
        ASSERT_EQ(a.start, earliest) << to_text(a.action);
      }
    }
  }
}

TEST(LawRecurrence, ALongerStageOrHopNeverHelps) {
  Rng rng(19);
  for (int n = 0; n < 400; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    auto stages = testing::random_stages(shape, rng);
    auto hops = testing::random_hops(stages.size(), 0.5, rng);
    const Seconds before = schedule_times(kind, shape, stages, hops).makespan;
    const auto g =
        static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(stages.size()) - 1));
    const Seconds more{rng.uniform(0, 1)};
    switch (rng.integer(0, 4)) {
      case 0:
        stages[g].forward += more;
        break;
      case 1:
        stages[g].input_grad += more;
        break;
      case 2:
        stages[g].weight_grad += more;
        break;
      case 3:
        hops[g].forward += more;
        break;
      case 4:
        hops[g].backward += more;
        break;
    }
    ASSERT_GE(schedule_times(kind, shape, stages, hops).makespan, before);
  }
}

TEST(LawRecurrence, GradientsOfTheFirstStageAreCompleteLastInOneFOneB) {
  const auto stages = equal_stages(4, 1, 1, 1);
  const ScheduleTimes times =
      schedule_times(ScheduleKind::kOneFOneB, {4, 8, 1}, stages, equal_hops(4, 0));
  // Stage g ends its last backward g backwards of length 2 before stage 0.
  for (int g = 0; g < 4; ++g) {
    EXPECT_EQ(times.last_backward_end[static_cast<std::size_t>(g)].value, 33 - 2 * g);
    EXPECT_EQ(times.last_backward_start[static_cast<std::size_t>(g)].value, 31 - 2 * g);
  }
}

TEST(FaultRecurrence, AnOrderThatCannotFinishIsAContract) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  std::swap(schedule.order[RankId{1}][0], schedule.order[RankId{1}][1]);
  const auto stages = equal_stages(2, 1, 1, 1);
  EXPECT_THROW(static_cast<void>(schedule_times(schedule, stages, equal_hops(2, 0))),
               std::logic_error);
}

}  // namespace towtank::recurrence_test
