// SPDX-License-Identifier: Apache-2.0
#include "profiler/profile.h"

#include <gtest/gtest.h>

#include "core/contracts.h"

namespace towtank {
namespace {

TEST(UnitDuration, MedianOfAnOddNumberOfRepeatsIsTheMiddleOne) {
  const Duration d = duration_of({Seconds{5}, Seconds{1}, Seconds{2}});
  EXPECT_EQ(d.median.value, 2);
  EXPECT_EQ(d.low->value, 1);
  EXPECT_EQ(d.high->value, 5);
  EXPECT_EQ(d.repeats, 3);
}

TEST(UnitDuration, MedianOfAnEvenNumberOfRepeatsIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(duration_of({Seconds{8}, Seconds{1}, Seconds{4}, Seconds{2}}).median.value,
            (2 + 4) / 2);
}

TEST(UnitDuration, NoRepeatIsADefectOfTheCaller) {
  EXPECT_THROW(static_cast<void>(duration_of({})), ContractViolation);
}

TEST(UnitImportStats, OneEntryForEachReasonWithTheFirstPlace) {
  using Severity = ImportStats::Severity;
  ImportStats stats;
  stats.add("late", Severity::kLoss, 2, "a.csv: line 3");
  stats.add("early", Severity::kLoss, 1, "a.csv: line 4");
  stats.add("late", Severity::kLoss, 3, "a.csv: line 5");
  stats.add("late", Severity::kInfo);
  stats.add("never", Severity::kError, 0);
  const std::vector<ImportStats::Count> expected{{"late", Severity::kLoss, 2 + 3, "a.csv: line 3"},
                                                 {"early", Severity::kLoss, 1, "a.csv: line 4"},
                                                 {"late", Severity::kInfo, 1, ""}};
  EXPECT_EQ(stats.counts, expected);
}

}  // namespace
}  // namespace towtank
