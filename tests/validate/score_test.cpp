// SPDX-License-Identifier: Apache-2.0
#include "validate/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"

namespace towtank::score_test {

constexpr double kExact = 1e-15;

ScoreRow row(const std::string& group, const std::string& plan, double measured,
             std::optional<double> predicted) {
  ScoreRow out;
  out.group_key = group;
  out.plan_key = plan;
  out.time = measured;
  out.predicted_time = predicted;
  out.predicted_outcome = CaseOutcome::kRan;
  return out;
}

TEST(UnitScore, ErrorsOfThreeRowsByHand) {
  // Errors +10 %, -10 % and 0.
  const std::vector<ScoreRow> rows{row("a", "1", 1, 1.1), row("b", "1", 2, 1.8),
                                   row("c", "1", 4, 4)};
  const Score s = score(rows);
  EXPECT_EQ(s.cases, 3);
  EXPECT_EQ(s.predicted, 3);
  EXPECT_NEAR(*s.mape, (0.1 + 0.1 + 0) / 3, kExact);
  EXPECT_NEAR(*s.bias, (0.1 - 0.1 + 0) / 3, kExact);
  EXPECT_NEAR(*s.median, 0.1, kExact);
  EXPECT_NEAR(*s.p90, 0.1, kExact);
}

TEST(UnitScore, QuantilesLieBetweenOrderStatistics) {
  EXPECT_EQ(*quantile({4, 1, 2}, 0.5), 2);
  EXPECT_EQ(*quantile({4, 1, 2}, 0.25), (1 + 2) / 2.0);
  EXPECT_EQ(*quantile({4, 1, 2}, 0.9), 2 + 0.8 * (4 - 2));
  EXPECT_EQ(*quantile({4, 1, 2}, 1.0), 4);
  EXPECT_EQ(quantile({}, 0.5), std::nullopt);
}

TEST(UnitScore, RowsWithoutATimeOrAPredictionAreCountedApart) {
  ScoreRow untimed = row("a", "1", 1, 1.5);
  untimed.time.reset();
  const std::vector<ScoreRow> rows{untimed, row("a", "1", 2, std::nullopt), row("a", "1", 2, 3)};
  const Score s = score(rows);
  EXPECT_EQ(s.cases, 3);
  EXPECT_EQ(s.timed, 2);
  EXPECT_EQ(s.predicted, 1);
  EXPECT_EQ(*s.mape, 0.5);
}

TEST(UnitScore, TauOfOneSwappedPair) {
  // Of three pairs two agree.
  const std::vector<TimePair> pairs{{1, 1}, {2, 3}, {3, 2}};
  EXPECT_NEAR(*kendall_tau_b(pairs), (2.0 - 1.0) / 3.0, kExact);
}

TEST(UnitScore, TauWithTies) {
  // tau-b = (C - D) / sqrt((C + D + ties only measured) (C + D + ties only predicted))
  const std::vector<TimePair> predicted_tie{{1, 1}, {2, 1}, {3, 2}};
  EXPECT_NEAR(*kendall_tau_b(predicted_tie), 2 / std::sqrt(2.0 * 3.0), kExact);
  const std::vector<TimePair> measured_tie{{1, 1}, {1, 2}, {2, 3}};
  EXPECT_NEAR(*kendall_tau_b(measured_tie), 2 / std::sqrt(3.0 * 2.0), kExact);
  const std::vector<TimePair> all_predicted_alike{{1, 5}, {2, 5}};
  EXPECT_EQ(*kendall_tau_b(all_predicted_alike), 0);
  const std::vector<TimePair> all_measured_alike{{1, 5}, {1, 6}};
  EXPECT_EQ(kendall_tau_b(all_measured_alike), std::nullopt);
}

TEST(UnitScore, RegretIsOfThePlanPredictedFastest) {
  const std::vector<TimePair> pairs{{3, 1}, {2, 2}};
  EXPECT_EQ(top1_regret(pairs), 3.0 / 2.0 - 1);
  // Two plans tie for fastest: the mean of what they took.
  const std::vector<TimePair> tied{{3, 1}, {4, 1}, {2, 2}};
  EXPECT_EQ(top1_regret(tied), (3.0 + 4.0) / 2 / 2.0 - 1);
}

TEST(UnitScore, OnlyDifferentPlansOfOneWorkloadAreCompared) {
  const std::vector<ScoreRow> rows{
      row("a", "1", 1, 2), row("a", "2", 2, 1),  // the wrong one chosen
      row("b", "1", 1, 1), row("b", "2", 2, 2),  // the right one
      row("c", "1", 1, 1), row("c", "1", 2, 2),  // one plan measured twice
      row("d", "1", 9, 9)};                      // alone
  const Score s = score(rows);
  EXPECT_EQ(s.groups, 2);
  EXPECT_EQ(s.plans_in_groups, 4);
  EXPECT_EQ(*s.tau, (-1.0 + 1.0) / 2);
  EXPECT_EQ(*s.regret_mean, (1.0 + 0.0) / 2);
  EXPECT_EQ(*s.regret_worst, 1.0);
}

TEST(UnitScore, MemoryIsComparedWhereBothAreKnown) {
  ScoreRow over = row("a", "1", 1, 1), under = row("a", "2", 1, 1), unknown = row("a", "3", 1, 1);
  over.memory = under.memory = 10;
  over.predicted_memory = 12;
  under.predicted_memory = 9;
  unknown.predicted_memory = 5;
  const Score s = score(std::vector<ScoreRow>{over, under, unknown});
  EXPECT_EQ(s.memory_cases, 2);
  EXPECT_NEAR(*s.memory_mape, (0.2 + 0.1) / 2, kExact);
  EXPECT_NEAR(*s.memory_bias, (0.2 - 0.1) / 2, kExact);
}

TEST(UnitScore, VerdictsFillAConfusionMatrix) {
  std::vector<ScoreRow> rows(5, row("a", "1", 1, 1));
  rows[1].predicted_outcome = CaseOutcome::kOom;
  rows[2].predicted_outcome.reset();
  rows[3].outcome = CaseOutcome::kOom;
  rows[4].outcome = CaseOutcome::kOom;
  rows[4].predicted_outcome = CaseOutcome::kOom;
  const Score s = score(rows);
  EXPECT_EQ(s.measured_ran, (VerdictCounts{.ran = 1, .oom = 1, .none = 1}));
  EXPECT_EQ(s.measured_oom, (VerdictCounts{.ran = 1, .oom = 1, .none = 0}));
}

TEST(UnitScore, CoverageCountsEndsAsInside) {
  std::vector<ScoreRow> rows(4, row("a", "1", 2, 2));
  rows[0].interval90 = {1, 3};
  rows[1].interval90 = {2, 3};
  rows[2].interval90 = {3, 4};  // outside; the last row has no interval and is not counted
  EXPECT_NEAR(*score(rows).coverage90, 2.0 / 3.0, kExact);
  EXPECT_EQ(score(rows).coverage50, std::nullopt);
}

TEST(UnitScore, NothingToScoreIsNotZero) {
  const Score s = score({});
  EXPECT_EQ(s.mape, std::nullopt);
  EXPECT_EQ(s.tau, std::nullopt);
  EXPECT_EQ(s.regret_mean, std::nullopt);
  EXPECT_EQ(s.memory_mape, std::nullopt);
  EXPECT_EQ(s.coverage90, std::nullopt);
}

std::vector<ScoreRow> random_rows(Rng& rng) {
  std::vector<ScoreRow> rows;
  for (int i = 0; i < 40; ++i) {
    const double measured = 0.1 + rng.uniform();
    rows.push_back(
        row(std::to_string(i % 5), std::to_string(i), measured, measured * (0.5 + rng.uniform())));
  }
  return rows;
}

TEST(LawScore, RanksDoNotChangeWhenAllPredictionsAreScaled) {
  Rng rng(7);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<ScoreRow> rows = random_rows(rng);
    const Score before = score(rows);
    for (ScoreRow& r : rows) *r.predicted_time *= 3;
    const Score after = score(rows);
    EXPECT_EQ(*before.tau, *after.tau);
    EXPECT_EQ(*before.regret_mean, *after.regret_mean);
    EXPECT_GE(*before.regret_worst, *before.regret_mean);
    EXPECT_LE(std::abs(*before.bias), *before.mape);
    EXPECT_LE(*before.median, *before.p90);
  }
}

TEST(LawScore, APerfectPredictionScoresPerfectly) {
  Rng rng(8);
  std::vector<ScoreRow> rows = random_rows(rng);
  for (ScoreRow& r : rows) r.predicted_time = r.time;
  const Score s = score(rows);
  EXPECT_EQ(*s.mape, 0);
  EXPECT_EQ(*s.tau, 1);
  EXPECT_EQ(*s.regret_worst, 0);
}

}  // namespace towtank::score_test
