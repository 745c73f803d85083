// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/all_reduce_bench.h"

#include <gtest/gtest.h>

#include "tests/support/expect_fault.h"

namespace towtank {
namespace all_reduce_bench_test {

/// What one rank prints after a trial of 4 GB: 16 * 4e9 / throughput seconds.
std::string result(int rank, const std::string& duration, const std::string& throughput) {
  return std::to_string(rank) + ":\n duration: " + duration +
         " sec\n algo throughput: " + throughput + " bps, 1 Gbps\n busbw: 1  Gbps\n";
}

std::string head(int ranks) {
  std::string out = "export NCCL_DEBUG=info\n";
  for (int r = 0; r < ranks; ++r) {
    out +=
        "local_rank: " + std::to_string(r % 2) + "\n" + std::to_string(r) + " data size: 4.0 GB\n";
  }
  return out + "NCCL version 2.7.8+cuda10.2\nignore me 2\n";
}

Profile imported(const std::string& text, const ImportOptions& options = {}) {
  return import_all_reduce_bench({{"dir/log.txt", text}}, options);
}

// 64e9 / 0.5 = 128e9, and so on.
const std::string kTrial0 = result(0, "8.0000", "8e9") + result(1, "8.0000", "8e9");
const std::string kTrial1 = result(1, "0.5000", "128e9") + result(0, "0.2500", "256e9");
const std::string kTrial2 = result(0, "1.0000", "64e9") + result(1, "1.0000", "64e9");

TEST(ImportAllReduceBench, TheFirstTrialIsLeftOutAndRanksAreOneRepeat) {
  const Profile p = imported(head(2) + kTrial0 + kTrial1 + kTrial2);
  ASSERT_EQ(p.collectives.size(), 1U);
  const CollectiveMeasurement& c = p.collectives[0];
  EXPECT_EQ(c.payload.value, 4'000'000'000);
  EXPECT_EQ(c.ranks, 2);
  EXPECT_EQ(c.ranks_per_node, 2);
  EXPECT_DOUBLE_EQ(c.time.low->value, (0.5 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(c.time.high->value, 1.0);
  EXPECT_DOUBLE_EQ(c.time.median.value, ((0.5 + 0.25) / 2 + 1.0) / 2);
  EXPECT_EQ(c.time.repeats, 2);
  EXPECT_EQ(p.stats.rows_read, 6);
  EXPECT_EQ(p.stats.rows_kept, 4);
  EXPECT_TRUE(p.launch_included);
}

TEST(ImportAllReduceBench, LinesOfRanksMayInterleave) {
  const Profile p = imported(head(2) + kTrial0 +
                             "0:\n1:\n duration: 0.5000 sec\nignore me 4\n duration: 0.2500 sec\n"
                             " algo throughput: 256e9 bps, 256 Gbps\n busbw: 1  Gbps\n"
                             " algo throughput: 128e9 bps, 128 Gbps\n busbw: 1  Gbps\n" +
                             kTrial2);
  EXPECT_DOUBLE_EQ(p.collectives.at(0).time.low->value, (0.5 + 0.25) / 2);
}

TEST(ImportAllReduceBench, ATrialThatARankDidNotFinishIsLeftOut) {
  const Profile p =
      imported(head(4) + kTrial0 + result(2, "8.0000", "8e9") + result(3, "8.0000", "8e9") +
               kTrial2 + result(2, "1.0000", "64e9") + result(3, "1.0000", "64e9") + kTrial2);
  EXPECT_EQ(p.collectives.at(0).time.repeats, 1);
  EXPECT_EQ(p.collectives.at(0).ranks, 4);
  EXPECT_EQ(p.collectives.at(0).ranks_per_node, 2);
  ASSERT_FALSE(p.stats.counts.empty());
  EXPECT_EQ(p.stats.counts[0].what, "times of trials that some rank did not finish");
  EXPECT_EQ(p.stats.counts[0].rows, 2);
}

TEST(FaultAllReduceBench, SaysWhatDoesNotFit) {
  EXPECT_FAULT(imported(head(2) + kTrial0 + result(0, "0.5000", "64e9")),
               "dir/log.txt: line 18: has a throughput that does not fit duration and data size "
               "(throughput = 16 x size / duration)");
  EXPECT_FAULT(imported("0:\n"), "dir/log.txt: has no data size (one line a rank)");
  EXPECT_FAULT(imported(head(2) + kTrial0),
               "dir/log.txt: has fewer than two trials of all ranks (the first sets up the "
               "communicator)");
  EXPECT_FAULT(imported("0 data size: 4.0 MB\n"),
               "dir/log.txt: line 1: has a data size in another unit (GB is known)");
  EXPECT_FAULT(imported("0 data size: 4.0 GB\n1 data size: 2.0 GB\n"),
               "dir/log.txt: line 2: has another data size than the ranks before (a log is of one "
               "payload)");
  ImportOptions options;
  options.ranks = 8;
  EXPECT_FAULT(imported(head(2) + kTrial0 + kTrial1, options),
               "dir/log.txt: is of 2 ranks (--ranks says 8). Leave --ranks out.");
}

TEST(UnitAllReduceBench, TheLogIsKnownByItsLines) {
  EXPECT_TRUE(is_all_reduce_bench(head(2) + kTrial0));
  EXPECT_FALSE(is_all_reduce_bench("size,time\n"));
}

}  // namespace all_reduce_bench_test
}  // namespace towtank
