// SPDX-License-Identifier: Apache-2.0
#include "placement/schedule.h"

#include <gtest/gtest.h>

#include <map>

#include "core/contracts.h"
#include "tests/placement/stage_times.h"

namespace towtank::schedule_test {

Action act(int stage, Phase phase, int microbatch) {
  return {StageId{stage}, phase, MicrobatchId{microbatch}};
}

/// Ranks 2, 3, 4, 8, microbatches 1 .. 24 and stages per rank 1 .. 4, where the kind allows them.
std::vector<PipelineShape> shapes_of(ScheduleKind kind) {
  std::vector<PipelineShape> shapes;
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 3, 4, 8, 16, 24}) {
      for (const int v : {1, 2, 3, 4}) {
        const bool interleaved = kind == ScheduleKind::kInterleaved;
        if (interleaved ? m % p == 0 : v == 1) shapes.push_back({p, m, v});
      }
    }
  }
  return shapes;
}

/// Peaks of every rank: live forwards.
std::vector<int> peaks(const PipelineSchedule& schedule) {
  std::vector<int> peaks;
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    peaks.push_back(peak_live_forwards(schedule, RankId{r}));
  }
  return peaks;
}

std::vector<double> activations(const PipelineSchedule& schedule, double share_w) {
  std::vector<double> peaks;
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    peaks.push_back(peak_activation(schedule, RankId{r}, share_w));
  }
  return peaks;
}

TEST(GoldenSchedule, OrdersWrittenByHand) {
  EXPECT_EQ(to_text(gpipe({2, 3, 1})),
            "0F0 0F1 0F2 0B0 0B1 0B2\n"
            "1F0 1F1 1F2 1B0 1B1 1B2\n");
  EXPECT_EQ(to_text(one_f_one_b({3, 3, 1})),
            "0F0 0F1 0F2 0B0 0B1 0B2\n"
            "1F0 1F1 1B0 1F2 1B1 1B2\n"
            "2F0 2B0 2F1 2B1 2F2 2B2\n");
  // Rank 0 holds stages 0 and 2: warm-up 2 (2 - 0 - 1) + (2 - 1) 2 = 4, all there is.
  EXPECT_EQ(to_text(interleaved_1f1b({2, 2, 2})),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
  // Rank 1 keeps one weight gradient pending in the steady part.
  EXPECT_EQ(to_text(zb_h1({2, 3, 1})),
            "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
  EXPECT_EQ(to_text(make_schedule(ScheduleKind::kNone, {1, 2, 1})), "0F0 0B0 0F1 0B1\n");
}

TEST(UnitSchedule, NamesAreThoseOfPlanFiles) {
  EXPECT_EQ(kScheduleNames[static_cast<std::size_t>(ScheduleKind::kOneFOneB)], "1f1b");
  EXPECT_EQ(kScheduleNames[static_cast<std::size_t>(ScheduleKind::kZbH1)], "zb-h1");
}

int warm_up(const PipelineSchedule& schedule, int rank) {
  int forwards = 0;
  for (const Action& a : schedule.order[RankId{rank}]) {
    if (a.phase != Phase::kForward) break;
    ++forwards;
  }
  return forwards;
}

TEST(UnitSchedule, WarmUpForwards) {
  for (const PipelineShape& shape : shapes_of(ScheduleKind::kOneFOneB)) {
    const int p = shape.ranks;
    const int m = shape.microbatches;
    for (int r = 0; r < p; ++r) {
      EXPECT_EQ(warm_up(gpipe(shape), r), m);
      // The first forward of the steady part follows the warm-up without a backward between.
      const int before_steady = std::min(p - r - 1, m);
      EXPECT_EQ(warm_up(one_f_one_b(shape), r), std::min(before_steady + 1, m));
      EXPECT_EQ(warm_up(zb_h1(shape), r), std::min(before_steady + 1, m));
    }
  }
  for (const PipelineShape& shape : shapes_of(ScheduleKind::kInterleaved)) {
    const int p = shape.ranks;
    const int v = shape.stages_per_rank;
    const int total = shape.microbatches * v;
    for (int r = 0; r < p; ++r) {
      const int before_steady = std::min(2 * (p - r - 1) + (v - 1) * p, total);
      EXPECT_EQ(warm_up(interleaved_1f1b(shape), r), std::min(before_steady + 1, total));
    }
  }
}

TEST(LawSchedule, EveryKindIsCompleteAndFinishes) {
  for (const ScheduleKind kind : testing::kPipelineKinds) {
    for (const PipelineShape& shape : shapes_of(kind)) {
      EXPECT_EQ(find_fault(make_schedule(kind, shape)), std::nullopt);
    }
  }
}

TEST(DifferSchedule, PeakLiveForwardsByFormAndByWalk) {
  for (const ScheduleKind kind : testing::kPipelineKinds) {
    for (const PipelineShape& shape : shapes_of(kind)) {
      const PipelineSchedule schedule = make_schedule(kind, shape);
      for (int r = 0; r < shape.ranks; ++r) {
        EXPECT_EQ(peak_live_forwards(schedule, RankId{r}), peak_live_forwards(kind, shape, r))
            << kScheduleNames[static_cast<std::size_t>(kind)] << " p" << shape.ranks << " m"
            << shape.microbatches << " v" << shape.stages_per_rank << " rank " << r;
      }
    }
  }
  EXPECT_EQ(peak_live_forwards(ScheduleKind::kNone, {1, 9, 1}, 0), 1);
}

TEST(UnitSchedule, ForwardsInFlight) {
  EXPECT_EQ(peaks(one_f_one_b({4, 8, 1})), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peaks(gpipe({4, 8, 1})), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(peaks(interleaved_1f1b({4, 8, 2})), (std::vector<int>{11, 9, 7, 5}));
  EXPECT_EQ(peaks(interleaved_1f1b({4, 8, 4})), (std::vector<int>{19, 17, 15, 13}));
  EXPECT_EQ(peaks(interleaved_1f1b({8, 16, 2})), (std::vector<int>{23, 21, 19, 17, 15, 13, 11, 9}));
  EXPECT_EQ(peaks(interleaved_1f1b({8, 32, 3})),
            (std::vector<int>{31, 29, 27, 25, 23, 21, 19, 17}));
}

TEST(UnitSchedule, FirstRankOfInterleavedHoldsAFractionMoreThanAllStages) {
  for (const PipelineShape& shape : shapes_of(ScheduleKind::kInterleaved)) {
    const double p = shape.ranks;
    const double v = shape.stages_per_rank;
    if (shape.microbatches < 2 * shape.ranks) continue;  // else fewer microbatches than that
    EXPECT_DOUBLE_EQ(peak_live_forwards(ScheduleKind::kInterleaved, shape, 0) / v,
                     p * (1 + (p - 1) / (p * v)));
  }
}

TEST(UnitSchedule, ActivationsOfZbH1) {
  EXPECT_EQ(activations(zb_h1({8, 16, 1}), 1), std::vector<double>(8, 8.0));
  EXPECT_EQ(activations(zb_h1({8, 16, 1}), 0.5),
            (std::vector<double>{8, 7.5, 7, 6.5, 6, 5.5, 5, 4.5}));
  EXPECT_EQ(activations(zb_h1({4, 8, 1}), 0.5), (std::vector<double>{4, 3.5, 3, 2.5}));
  for (const int p : {2, 3, 4, 8}) {
    for (int r = 0; r < p; ++r) {
      EXPECT_DOUBLE_EQ(peak_activation(zb_h1({p, 3 * p, 1}), RankId{r}, 0.25), (p - r) + r * 0.25);
    }
  }
}

TEST(UnitSchedule, ActivationsOfWholeBackwardsAreLiveForwards) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
    for (const PipelineShape& shape : shapes_of(kind)) {
      const PipelineSchedule schedule = make_schedule(kind, shape);
      for (int r = 0; r < shape.ranks; ++r) {
        EXPECT_EQ(peak_activation(schedule, RankId{r}, 0.5),
                  peak_live_forwards(schedule, RankId{r}));
      }
    }
  }
}

TEST(LawSchedule, ZbH1KeepsAtMostRankManyWeightGradients) {
  for (const PipelineShape& shape : shapes_of(ScheduleKind::kZbH1)) {
    const PipelineSchedule schedule = zb_h1(shape);
    for (int r = 0; r < shape.ranks; ++r) {
      int pending = 0;
      for (const Action& a : schedule.order[RankId{r}]) {
        // When a forward or an input gradient starts, at most r weight gradients wait.
        if (a.phase != Phase::kWeightGrad) {
          EXPECT_LE(pending, r);
        }
        if (a.phase == Phase::kInputGrad) ++pending;
        if (a.phase == Phase::kWeightGrad) --pending;
      }
      EXPECT_EQ(pending, 0);
    }
  }
}

TEST(FaultSchedule, AnActionOnTheWrongRank) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  schedule.order[RankId{1}][2] = act(0, Phase::kForward, 1);
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 1, step 2: 0F1 is on the wrong rank: stage 0 is rank 0's\n"
            "  step    0    1    2    3\n"
            "rank 0  0F0  0F1  0B0  0B1\n"
            "rank 1  1F0  1B0  0F1  1B1\n"
            "                  ^^^");
}

TEST(FaultSchedule, AnActionTwice) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  schedule.order[RankId{0}][1] = act(0, Phase::kForward, 0);
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 0, step 1: 0F0 appears twice\n"
            "  step    0    1    2    3\n"
            "rank 0  0F0  0F0  0B0  0B1\n"
            "             ^^^\n"
            "rank 1  1F0  1B0  1F1  1B1");
}

TEST(FaultSchedule, AnActionMissing) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  schedule.order[RankId{1}].pop_back();
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 1, step 3: 1B1 is missing\n"
            "  step    0    1    2    3\n"
            "rank 0  0F0  0F1  0B0  0B1\n"
            "rank 1  1F0  1B0  1F1\n"
            "                       ^^^");
}

TEST(FaultSchedule, HalfABackwardMissing) {
  PipelineSchedule schedule = zb_h1({1, 1, 1});
  schedule.order[RankId{0}].pop_back();
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 0, step 2: 0W0 is missing\n"
            "  step    0    1    2\n"
            "rank 0  0F0  0I0\n"
            "                  ^^^");
}

TEST(FaultSchedule, ABackwardWholeAndInHalves) {
  PipelineSchedule schedule = zb_h1({1, 1, 1});
  schedule.order[RankId{0}].push_back(act(0, Phase::kBackward, 0));
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 0, step 3: 0B0 repeats work: a backward is either B or I and W\n"
            "  step    0    1    2    3\n"
            "rank 0  0F0  0I0  0W0  0B0\n"
            "                       ^^^");
}

TEST(FaultSchedule, AnActionThatDoesNotExist) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  schedule.order[RankId{0}][0] = act(2, Phase::kForward, -1);
  EXPECT_EQ(find_fault(schedule).value_or("").substr(0, 82),
            "rank 0, step 0: 2F-1 does not exist: stages are 0 to 1, microbatches 0 to 1\n  step");
}

TEST(FaultSchedule, AnOrderThatCannotFinish) {
  PipelineSchedule schedule = one_f_one_b({2, 2, 1});
  std::swap(schedule.order[RankId{0}][1], schedule.order[RankId{0}][2]);  // 0F0 0B0 0F1 0B1: fine
  EXPECT_EQ(find_fault(schedule), std::nullopt);
  std::swap(schedule.order[RankId{1}][1], schedule.order[RankId{1}][2]);  // 1F0 1F1 1B0 1B1
  EXPECT_EQ(find_fault(schedule).value_or(""),
            "rank 0, step 1: the order cannot finish: 0B0 waits for 1B0, which is never reached\n"
            "  step    0    1    2    3\n"
            "rank 0  0F0  0B0  0F1  0B1\n"
            "             ^^^\n"
            "rank 1  1F0  1F1  1B0  1B1");
}

TEST(FaultSchedule, AWideGridShowsTheNeighbourhood) {
  PipelineSchedule schedule = one_f_one_b({16, 64, 1});
  schedule.order[RankId{9}][100] = schedule.order[RankId{9}][99];
  const std::string fault = find_fault(schedule).value_or("");
  EXPECT_EQ(fault.substr(0, fault.find('\n')), "rank 9, step 100: 9B46 appears twice");
  EXPECT_NE(fault.find("\n rank 5 "), std::string::npos);
  EXPECT_NE(fault.find("\nrank 12 "), std::string::npos);
  EXPECT_EQ(fault.find("\n rank 4 "), std::string::npos);
  EXPECT_EQ(fault.find("\nrank 13 "), std::string::npos);
  std::size_t at = 0;
  while (at != std::string::npos) {
    const std::size_t end = fault.find('\n', at);
    EXPECT_LE(std::min(end, fault.size()) - at, 100U);
    at = end == std::string::npos ? end : end + 1;
  }
}

TEST(LawSchedule, AnyActionLeftOutDoubledOrMovedAwayIsAFault) {
  Rng rng(3);
  for (int n = 0; n < 300; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(1, 4));
    PipelineSchedule schedule = make_schedule(kind, testing::random_shape(kind, rng));
    const RankId rank{static_cast<int>(rng.integer(0, schedule.shape.ranks - 1))};
    std::vector<Action>& order = schedule.order[rank];
    const auto at =
        static_cast<std::ptrdiff_t>(rng.integer(0, static_cast<std::int64_t>(order.size()) - 1));
    const Action action = order[static_cast<std::size_t>(at)];
    switch (rng.integer(0, 2)) {
      case 0:
        order.erase(order.begin() + at);
        break;
      case 1:
        order.insert(order.begin() + at, action);
        break;
      case 2:
        if (schedule.shape.ranks == 1) continue;
        order.erase(order.begin() + at);
        schedule.order[RankId{(rank.value + 1) % schedule.shape.ranks}].push_back(action);
        break;
    }
    EXPECT_TRUE(find_fault(schedule).has_value());
  }
}

TEST(FaultSchedule, ShapesThatAKindCannotHaveAreContracts) {
  EXPECT_THROW(static_cast<void>(interleaved_1f1b({4, 6, 2})), ContractViolation);
  EXPECT_THROW(static_cast<void>(one_f_one_b({4, 8, 2})), ContractViolation);
  EXPECT_THROW(static_cast<void>(make_schedule(ScheduleKind::kNone, {2, 8, 1})), ContractViolation);
  EXPECT_THROW(static_cast<void>(gpipe({0, 8, 1})), ContractViolation);
}

}  // namespace towtank::schedule_test
