// SPDX-License-Identifier: Apache-2.0
// Unequal stages: bounds by random instances, and the published splits of layers with a head.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "placement/recurrence.h"
#include "tests/placement/stage_times.h"
#include "tests/support/near.h"

namespace towtank::unequal_stages_test {

using testing::equal_hops;
using testing::kSameArithmetic;
using testing::makespan;

Seconds whole(const StageTime& t) { return t.forward + t.input_grad + t.weight_grad; }

/// max over stages of the time before it plus m times its own.
double lower_form(const std::vector<StageTime>& stages, int m) {
  Seconds before;
  Seconds form;
  for (const StageTime& t : stages) {
    form = std::max(form, before + m * whole(t));
    before += whole(t);
  }
  return form.value;
}

double upper_form(const std::vector<StageTime>& stages, int m) {
  Seconds sum;
  Seconds longest;
  for (const StageTime& t : stages) {
    sum += whole(t);
    longest = std::max(longest, whole(t));
  }
  return (sum + (m - 1) * longest).value;
}

TEST(LawUnequalStages, OneFOneBLiesBetweenTheLowerAndTheUpperForm) {
  Rng rng(23);
  for (int n = 0; n < 4000; ++n) {
    const int p = static_cast<int>(rng.integer(2, 8));
    const int m = static_cast<int>(rng.integer(p, 24));
    std::vector<StageTime> stages;
    for (int r = 0; r < p; ++r) {
      const double f = rng.uniform(0.5, 2);  // B = 2F on every stage: else the upper form fails
      stages.push_back({Seconds{f}, Seconds{f}, Seconds{f}});
    }
    const double t = makespan(ScheduleKind::kOneFOneB, {p, m, 1}, stages);
    ASSERT_GE(t * (1 + kSameArithmetic), lower_form(stages, m));
    ASSERT_LE(t, upper_form(stages, m) * (1 + kSameArithmetic));
    // No split of the same total is faster than the best continuous one.
    const double total =
        std::accumulate(stages.begin(), stages.end(), 0.0,
                        [](double sum, const StageTime& s) { return sum + whole(s).value; });
    ASSERT_GE(t * (1 + kSameArithmetic), total / (1 - std::pow(1 - 1.0 / m, p)));
  }
}

TEST(LawUnequalStages, TheUpperFormIsNoBoundWhereStagesDifferInBackwardShare) {
  Rng rng(29);
  int exceeded = 0;
  for (int n = 0; n < 4000; ++n) {
    const int p = static_cast<int>(rng.integer(2, 8));
    const int m = static_cast<int>(rng.integer(p, 24));
    std::vector<StageTime> stages;
    for (int r = 0; r < p; ++r) {
      stages.push_back({Seconds{rng.uniform(0.1, 2)}, Seconds{rng.uniform(0.1, 2)}, Seconds{0}});
    }
    const double t = makespan(ScheduleKind::kOneFOneB, {p, m, 1}, stages);
    ASSERT_GE(t * (1 + kSameArithmetic), lower_form(stages, m));
    exceeded += t > upper_form(stages, m) * (1 + kSameArithmetic) ? 1 : 0;
  }
  EXPECT_GT(exceeded, 0);
}

TEST(LawUnequalStages, TheBoundIsNeverAboveTheMakespan) {
  Rng rng(31);
  for (int n = 0; n < 8000; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    std::vector<StageTime> stages = testing::random_stages(shape, rng);
    if (rng.uniform() < 0.3) {  // one stage dominates
      const auto g =
          static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(stages.size()) - 1));
      stages[g] = {5 * stages[g].forward, 5 * stages[g].input_grad, 5 * stages[g].weight_grad};
    }
    const double most = rng.uniform() < 0.5 ? 0.0 : 0.5;
    const auto hops = testing::random_hops(stages.size(), most, rng);
    ASSERT_LE(makespan_bound(kind, shape, stages).value,
              schedule_times(kind, shape, stages, hops).makespan.value * (1 + kSameArithmetic))
        << kScheduleNames[static_cast<std::size_t>(kind)] << " p" << shape.ranks << " m"
        << shape.microbatches << " v" << shape.stages_per_rank;
  }
}

TEST(LawUnequalStages, TheBoundIsNotBelowTheLowerForm) {
  Rng rng(37);
  for (int n = 0; n < 1000; ++n) {
    const auto kind = rng.uniform() < 0.5 ? ScheduleKind::kOneFOneB : ScheduleKind::kGpipe;
    const PipelineShape shape = testing::random_shape(kind, rng);
    const auto stages = testing::random_stages(shape, rng);
    ASSERT_GE(makespan_bound(kind, shape, stages).value * (1 + kSameArithmetic),
              lower_form(stages, shape.microbatches));
  }
}

TEST(DifferUnequalStages, TheBoundOfEqualStagesIsTheirMakespan) {
  Rng rng(41);
  for (int n = 0; n < 1000; ++n) {
    const auto kind = static_cast<ScheduleKind>(rng.integer(0, 4));
    const PipelineShape shape = testing::random_shape(kind, rng);
    const double i = rng.uniform(0.5, 2);
    const auto stages = testing::equal_stages(shape.ranks * shape.stages_per_rank,
                                              rng.uniform(0.5, 2), i, rng.uniform(0, i));
    EXPECT_CLOSE(makespan_bound(kind, shape, stages).value, makespan(kind, shape, stages),
                 kSameArithmetic);
  }
}

/// Layers in each stage; the head counts as so many layers more on the last one.
double split_time(std::vector<double> layers, double head, int m) {
  layers.back() += head;
  return makespan(ScheduleKind::kOneFOneB, {static_cast<int>(layers.size()), m, 1},
                  testing::layer_stages(layers));
}

std::vector<double> equal_split(int layers, int stages) {
  return std::vector<double>(static_cast<std::size_t>(stages),
                             static_cast<double>(layers) / stages);
}

struct SplitRow {
  int layers, stages;
  double head;
  int microbatches;
  double equal, best;
  std::vector<double> split;  ///< that reaches `best`; empty: not stated
};

const std::vector<SplitRow>& split_rows() {
  static const std::vector<double> small{9, 9, 8, 6};
  static const std::vector<double> large{11, 10, 10, 10, 10, 10, 10, 9};
  static const std::vector<SplitRow> rows{
      {32, 4, 2.0, 4, 192, 172, {11, 8, 8, 5}},
      {32, 4, 2.0, 8, 312, 285, small},
      {32, 4, 2.0, 16, 552, 501, small},
      {32, 4, 2.0, 32, 1032, 933, small},
      {80, 8, 1.4, 8, 484, 448, {14, 10, 10, 10, 10, 9, 9, 8}},
      {80, 8, 1.4, 16, 757, 719, large},
      {80, 8, 1.4, 32, 1304, 1247, large},
      {80, 8, 1.4, 64, 2399, 2303, large},
      {96, 8, 1.0, 8, 564, 534, {}},
      {96, 8, 1.0, 16, 876, 855, {}},
      {96, 8, 1.0, 32, 1500, 1479, {}},
      {96, 8, 1.0, 64, 2748, 2727, {}},
      {96, 8, 0, 8, 540, 528, {16, 12, 12, 12, 12, 10, 11, 11}},
      {48, 4, 0, 4, 252, 242, {16, 11, 11, 10}},
      {96, 16, 0, 16, 558, 554, {8, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 5}},
  };
  return rows;
}

TEST(UnitUnequalStages, SplitsWithAHeadTakeTheirPublishedTimes) {
  for (const SplitRow& row : split_rows()) {
    const std::string at =
        std::to_string(row.layers) + " layers, m " + std::to_string(row.microbatches);
    // The table prints whole numbers.
    EXPECT_NEAR(split_time(equal_split(row.layers, row.stages), row.head, row.microbatches),
                row.equal, 0.5)
        << at;
    if (row.split.empty()) continue;
    EXPECT_EQ(std::accumulate(row.split.begin(), row.split.end(), 0.0), row.layers) << at;
    EXPECT_NEAR(split_time(row.split, row.head, row.microbatches), row.best, 0.5) << at;
  }
}

/// Moves single layers between any two stages while that helps.
double hill_climb(std::vector<double> split, double head, int m) {
  double best = split_time(split, head, m);
  for (bool better = true; better;) {
    better = false;
    std::vector<double> best_move = split;
    for (std::size_t from = 0; from < split.size(); ++from) {
      for (std::size_t to = 0; to < split.size(); ++to) {
        if (from == to || split[from] < 2) continue;
        std::vector<double> moved = split;
        moved[from] -= 1;
        moved[to] += 1;
        const double time = split_time(moved, head, m);
        if (time >= best) continue;
        best = time;
        best_move = moved;
        better = true;
      }
    }
    split = best_move;
  }
  return best;
}

TEST(UnitUnequalStages, SingleLayerMovesReachThePublishedBest) {
  for (const SplitRow& row : split_rows()) {
    const double best = hill_climb(equal_split(row.layers, row.stages), row.head, row.microbatches);
    EXPECT_LE(best, row.best + 0.5) << row.layers << " layers, m " << row.microbatches;
    EXPECT_GE(best, 0.97 * row.best) << row.layers << " layers, m " << row.microbatches;
  }
}

TEST(LawUnequalStages, UniformLayersWithManyMicrobatchesAreBestSplitEvenly) {
  for (const int p : {2, 4, 8}) {
    for (const int layers_each : {2, 4, 12}) {
      for (const int m : {2 * p, 3 * p, 8 * p}) {
        const std::vector<double> even = equal_split(layers_each * p, p);
        EXPECT_EQ(hill_climb(even, 0, m), split_time(even, 0, m)) << p << " " << m;
      }
    }
  }
}

}  // namespace towtank::unequal_stages_test
