// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/join_activities.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "tests/profiler/collect/fake_cupti.h"

namespace towtank {
namespace {

constexpr double kMicro = 1e-6;

TEST(UnitJoinActivities, KernelsOfOneMarkAddUpAndOverlapCountsOnceInBusy) {
  ActivityRecording r;
  r.activities = {kernel_at(1, 7, 10, 20), kernel_at(2, 8, 15, 30), kernel_at(3, 7, 40, 45)};
  r.links = {{1, 100}, {2, 100}, {3, 200}};
  const JoinedActivities joined = join_activities(r);
  ASSERT_EQ(joined.marks.size(), 2U);
  const MarkedTime& first = joined.marks[0];
  EXPECT_EQ(first.mark, 100U);
  EXPECT_EQ(first.kernels, 2);
  EXPECT_DOUBLE_EQ(first.kernel.value, (10 + 15) * kMicro);
  EXPECT_DOUBLE_EQ(first.busy.value, (30 - 10) * kMicro);
  EXPECT_DOUBLE_EQ(first.span.value, (30 - 10) * kMicro);
  EXPECT_DOUBLE_EQ(joined.marks[1].kernel.value, 5 * kMicro);
  EXPECT_DOUBLE_EQ(joined.busy.value, (20 + 5) * kMicro);
  EXPECT_TRUE(joined.stats.counts.empty());
}

TEST(UnitJoinActivities, AGapIsInTheSpanAndNotInBusy) {
  ActivityRecording r;
  r.activities = {kernel_at(1, 7, 10, 20), kernel_at(2, 7, 50, 60)};
  r.links = {{1, 5}, {2, 5}};
  const MarkedTime time = join_activities(r).marks.at(0);
  EXPECT_DOUBLE_EQ(time.busy.value, 20 * kMicro);
  EXPECT_DOUBLE_EQ(time.span.value, 50 * kMicro);
}

TEST(UnitJoinActivities, AllNodesOfAGraphBelongToTheMarkOfItsLaunch) {
  ActivityRecording r;
  for (int node = 1; node <= 4; ++node) {
    Activity a = kernel_at(9, 7, 10 * node, 10 * node + 5);
    a.graph = 3;
    a.graph_node = static_cast<std::uint64_t>(node);
    r.activities.push_back(a);
  }
  r.links = {{9, 77}};
  const JoinedActivities joined = join_activities(r);
  EXPECT_EQ(joined.marks.at(0).kernels, 4);
  EXPECT_DOUBLE_EQ(joined.marks.at(0).kernel.value, 4 * 5 * kMicro);
}

TEST(UnitJoinActivities, CopiesAndSetsCountWithTheirBytesAndWaitsDoNotMakeTheDeviceBusy) {
  ActivityRecording r;
  Activity copy = kernel_at(1, 7, 10, 20);
  copy.kind = ActivityKind::kCopy;
  copy.bytes = 4096;
  Activity set = kernel_at(2, 7, 30, 31);
  set.kind = ActivityKind::kSet;
  Activity wait = kernel_at(3, 7, 0, 100);
  wait.start_ns = 1;
  wait.kind = ActivityKind::kSynchronization;
  Activity overhead = kernel_at(0, 0, 50, 53);
  overhead.kind = ActivityKind::kOverhead;
  r.activities = {copy, set, wait, overhead};
  r.links = {{1, 5}, {2, 5}};
  const JoinedActivities joined = join_activities(r);
  const MarkedTime& time = joined.marks.at(0);
  EXPECT_EQ(time.kernels, 0);
  EXPECT_EQ(time.copies, 1);
  EXPECT_EQ(time.sets, 1);
  EXPECT_EQ(time.copied.value, 4096);
  EXPECT_DOUBLE_EQ(joined.busy.value, (10 + 1) * kMicro);
  EXPECT_DOUBLE_EQ(joined.overhead.value, 3 * kMicro);
}

TEST(ImportJoinActivities, EachOddityIsCounted) {
  ActivityRecording r;
  Activity unfinished = kernel_at(1, 7, 10, 0);
  r.activities = {kernel_at(2, 7, 50, 60), unfinished, kernel_at(3, 7, 30, 20),
                  kernel_at(4, 7, 5, 8)};
  r.links = {{2, 1}, {2, 2}, {44, 3}};
  r.lost = 5;
  r.refused = 1;
  r.beyond = 7;
  r.unreadable = 2;
  const JoinedActivities joined = join_activities(r);
  EXPECT_EQ(joined.stats.rows_read, 4);
  EXPECT_EQ(joined.stats.rows_kept, 2);
  EXPECT_EQ(count_of(joined.stats, "records without times"), 1);
  EXPECT_EQ(count_of(joined.stats, "records that end before they start"), 1);
  EXPECT_EQ(count_of(joined.stats, "records out of order"), 1);
  EXPECT_EQ(count_of(joined.stats, "kernels without a mark"), 1);
  EXPECT_EQ(count_of(joined.stats, "marks without an activity"), 1);
  EXPECT_EQ(count_of(joined.stats, "several marks of one launch"), 1);
  EXPECT_EQ(count_of(joined.stats, "records lost by the driver"), 5);
  EXPECT_EQ(count_of(joined.stats, "buffers refused: all were in use"), 1);
  EXPECT_EQ(count_of(joined.stats, "records beyond the limit of the recording"), 7);
  EXPECT_EQ(count_of(joined.stats, "unreadable records"), 2);
  EXPECT_EQ(joined.marks.at(0).mark, 2U);
  EXPECT_EQ(joined.activities.front().correlation, 4U);
}

/// In whatever order records arrive, the same is joined; and busy is never more than the sum.
TEST(LawJoinActivities, OrderOfArrivalChangesNothing) {
  Rng rng(11);
  for (int round = 0; round < 50; ++round) {
    ActivityRecording r;
    for (std::uint32_t i = 1; i <= 60; ++i) {
      const auto below = [&](std::int64_t n) { return rng.integer(0, n - 1); };
      const int start = 1 + static_cast<int>(below(500));
      r.activities.push_back(kernel_at(i, static_cast<std::uint32_t>(below(4)), start,
                                       start + static_cast<int>(below(40))));
      if (below(5) != 0) r.links.push_back({i, static_cast<std::uint64_t>(below(6))});
    }
    const JoinedActivities expected = join_activities(r);
    for (std::size_t i = r.activities.size(); i > 1; --i) {
      std::swap(
          r.activities[i - 1],
          r.activities[static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(i) - 1))]);
    }
    std::reverse(r.links.begin(), r.links.end());
    const JoinedActivities joined = join_activities(r);
    EXPECT_EQ(joined.activities, expected.activities);
    EXPECT_EQ(joined.marks, expected.marks);
    Seconds sum;
    for (const Activity& a : joined.activities) {
      sum += Seconds{static_cast<double>(a.end_ns - a.start_ns) * 1e-9};
    }
    EXPECT_LE(joined.busy.value, sum.value * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace towtank
