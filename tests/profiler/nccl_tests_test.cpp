// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/nccl_tests.h"

#include <gtest/gtest.h>

#include "tests/support/expect_fault.h"

namespace towtank {
namespace nccl_tests_test {

// All numbers are made up so that size, time and bandwidths agree: 1 MiB in 40 us is 26.21 GB/s,
// and an all-reduce of 8 ranks has a bus bandwidth of 2 * 7 / 8 times that, 45.88 GB/s.

/// Device lines of ranks, so many a node.
std::string devices(int ranks, int per_node, const std::string& name = "SYNTH") {
  std::string out;
  for (int r = 0; r < ranks; ++r) {
    out += "#  Rank " + std::to_string(r) + " Group  0 Pid  4" + std::to_string(r) + " on node" +
           std::to_string(r / per_node) + " device  " + std::to_string(r % per_node) + " [0x0f] " +
           name + "\n";
  }
  return out;
}

constexpr const char* kStart =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup "
    "iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"
    "# Using devices\n";
constexpr const char* kNew =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)       \n";
constexpr const char* kNewRow =
    "     1048576        262144     float     sum      -1    40.00   26.21   45.88      0    39.50 "
    "  26.55   46.46      0\n";

Profile imported(const std::string& text, const ImportOptions& options = {}) {
  return import_nccl_tests({{"dir/run.txt", text}}, options);
}

std::vector<std::string> reasons(const Profile& p) {
  std::vector<std::string> out;
  for (const auto& c : p.stats.counts) {
    out.push_back(std::string(kSeverityNames[static_cast<std::size_t>(c.severity)]) + ": " +
                  std::to_string(c.rows) + " " + c.what + " (" + c.first + ")");
  }
  return out;
}

void expect_the_row(const Profile& p, int ranks, int per_node) {
  ASSERT_EQ(p.collectives.size(), 1U);
  const CollectiveMeasurement& c = p.collectives[0];
  EXPECT_EQ(c.op, Collective::kAllReduce);
  EXPECT_EQ(c.payload.value, 1 << 20);
  EXPECT_EQ(c.ranks, ranks);
  EXPECT_EQ(c.ranks_per_node, per_node);
  EXPECT_DOUBLE_EQ(c.time.median.value, (40.00e-6 + 39.50e-6) / 2);
  EXPECT_DOUBLE_EQ(c.time.low->value, 39.50e-6);
  EXPECT_EQ(c.time.repeats, 2);
  EXPECT_EQ(p.stats.rows_kept, 1);
}

TEST(ImportNcclTests, TodaysTable) {
  const Profile p = imported(
      "# nccl-tests version 2.17.6 nccl-headers=22703 nccl-library=22703\n"
      "# Collective test starting: all_reduce_perf\n" +
      std::string(kStart) + devices(8, 4, "NVIDIA H100 80GB HBM3") + "#\n" + kNew + kNewRow +
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 46.17\n#\n"
      "# Collective test concluded: all_reduce_perf\n");
  expect_the_row(p, 8, 4);
  EXPECT_EQ(p.device_kind, "h100-sxm-80g");
  EXPECT_EQ(p.machine,
            "NVIDIA H100 80GB HBM3; nccl-tests version 2.17.6 nccl-headers=22703 "
            "nccl-library=22703");
  EXPECT_EQ(p.source, "nccl-tests output: run.txt");
  EXPECT_TRUE(p.launch_included);
  EXPECT_EQ(p.collectives[0].group, "all_reduce float on 8 ranks, 4 a node");
  EXPECT_TRUE(p.stats.counts.empty());
}

TEST(ImportNcclTests, BeforeRootAndWithErrorInPlaceOfWrong) {
  const std::string text =
      std::string("$ mpirun -np 8 ./build/all_reduce_perf -b 1M -e 1M\n") + kStart + devices(8, 8) +
      "#                                                       out-of-place                       "
      "in-place          \n"
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw "
      " "
      " busbw  error\n"
      "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s) "
      " "
      "(GB/s)       \n"
      "     1048576        262144   float     sum    40.00   26.21   45.88  5e-07    39.50   26.55 "
      "  "
      "46.46  5e-07\n";
  expect_the_row(imported(text), 8, 8);
}

TEST(ImportNcclTests, WithRootAndWithoutReduction) {
  // An all-gather of 8 ranks: 26.21 * 7 / 8 = 22.94.
  const std::string text = "# Collective test starting: all_gather_perf\n" + std::string(kStart) +
                           devices(8, 8) +
                           "#       size         count    type    root     time   algbw   busbw "
                           "#wrong     time   algbw   "
                           "busbw #wrong\n"
                           "     1048576         32768   float      -1    40.00   26.21   22.94    "
                           "N/A    39.50   26.55   "
                           "23.23    N/A\n";
  const Profile p = imported(text);
  ASSERT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(p.collectives[0].op, Collective::kAllGather);
  EXPECT_EQ(p.collectives[0].payload.value, 1 << 20);
}

TEST(ImportNcclTests, PrefixesOfMpirunAndSrunAreRemoved) {
  const std::string body = "# Collective test starting: all_reduce_perf\n" + std::string(kStart) +
                           devices(8, 8) + kNew + kNewRow;
  for (const std::string prefix : {"[1,0]<stdout>:", "[0] ", "[node0:123] ", "0: "}) {
    std::string text;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = body.find('\n', at);
      text += prefix + body.substr(at, end - at + 1);
      at = end + 1;
    }
    SCOPED_TRACE(prefix);
    expect_the_row(imported(text), 8, 8);
  }
}

TEST(ImportNcclTests, OtherLinesColumnsAndTimestampsAreIgnored) {
  const std::string text =
      "node0: NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nNCCL version 2.21.5+cuda12.4\n"
      "# Collective test starting: all_reduce_perf\n" +
      std::string(kStart) + devices(8, 8) +
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw "
      "#wrong i_min i_max i_p99 i_cv% timestamp\n"
      "node0: NCCL INFO Connected all rings\n"
      "1048576 262144 float sum -1 40.00 26.21 45.88 0 39 41 41 1 39.50 26.55 46.46 0 39 41 41 1 "
      "2024-01-01 10:00:00\n";
  expect_the_row(imported(text), 8, 8);
}

TEST(ImportNcclTests, ARunForEachStartInOneFile) {
  const std::string text =
      "# Collective test starting: all_reduce_perf\n" + std::string(kStart) + devices(8, 8) + kNew +
      kNewRow + "# Collective test starting: sendrecv_perf\n" + kStart + devices(4, 2) + kNew +
      "     1048576        262144     float     sum      -1    40.00   26.21   "
      "26.21      0    39.50   26.55   26.55    N/A\n";
  const Profile p = imported(text);
  ASSERT_EQ(p.collectives.size(), 2U);
  EXPECT_EQ(p.collectives[1].op, Collective::kSendRecv);
  EXPECT_EQ(p.collectives[1].ranks, 4);
  EXPECT_EQ(p.collectives[1].ranks_per_node, 2);
}

TEST(ImportNcclTests, TheBandwidthsTellAnAllReduceWhereNoNameDoes) {
  const Profile p = imported(std::string(kStart) + devices(8, 8) + kNew + kNewRow);
  expect_the_row(p, 8, 8);
}

TEST(ImportNcclTests, ATableWithoutHeaderIsTakenWithGivenRanksAndCounted) {
  ImportOptions options;
  options.ranks = 8;
  options.ranks_per_node = 4;
  const Profile p = imported(kNewRow, options);
  expect_the_row(p, 8, 4);
  EXPECT_EQ(reasons(p),
            std::vector<std::string>{"info: 1 rows of tables without header lines (dir/run.txt)"});
}

TEST(ImportNcclTests, WhatDoesNotAgreeIsLeftOutAndCounted) {
  const std::string head =
      "# Collective test starting: all_reduce_perf\n" + std::string(kStart) + devices(8, 8) + kNew;
  const Profile p = imported(head + kNewRow +
                             "           0             0     float     sum      -1     9.00    "
                             "0.00    0.00      0     9.00 "
                             "   0.00    0.00      0\n"
                             "     2097152        524288     float     sum      -1    40.00   "
                             "26.21   45.88      0    39.50 "
                             "  53.09   92.91      0\n"
                             "     4194304       1048576     float     sum      -1    40.00  "
                             "104.86   99.99      0      nan "
                             "    nan     nan      0\n"
                             "     8388608       2097152     float     sum      -1    80.00  "
                             "104.86  183.50      3    80.00 "
                             " 104.86  183.50      0\n"
                             "    16777216       4194304     float\n"
                             "# Out of bounds values : 3 FAILED\n");
  EXPECT_EQ(reasons(p),
            (std::vector<std::string>{
                "error: 1 rows with too few numbers (dir/run.txt: line 20)",
                "error: 1 runs with values out of bounds (dir/run.txt: line 21)",
                "info: 1 rows of zero bytes (dir/run.txt: line 16)",
                "error: 1 times that do not agree with size and bandwidth (dir/run.txt: line 17)",
                ("error: 1 bus bandwidths that do not fit the collective and its ranks "
                 "(dir/run.txt: line 18)"),
                "loss: 1 times that are not numbers (dir/run.txt: line 18)",
                "loss: 1 times of runs with wrong results (dir/run.txt: line 19)"}));
  ASSERT_EQ(p.collectives.size(), 3U);
  EXPECT_EQ(p.collectives[1].time.repeats, 1);
  EXPECT_DOUBLE_EQ(p.collectives[1].time.median.value, 39.5e-6);
}

TEST(ImportNcclTests, GraphReplaysHaveNoLaunch) {
  std::string start(kStart);
  start.replace(start.find("graph: 0"), 8, "graph: 3");
  EXPECT_FALSE(imported("# Collective test starting: all_reduce_perf\n" + start + devices(8, 8) +
                        kNew + kNewRow)
                   .launch_included);
}

TEST(ImportNcclTests, ACollectiveWithoutANameHereIsALoss) {
  const std::string text = "# Collective test starting: all_reduce_perf\n" + std::string(kStart) +
                           devices(8, 8) + kNew + kNewRow +
                           "# Collective test starting: hypercube_perf\n" + kStart + devices(8, 8) +
                           kNew + kNewRow;
  const Profile p = imported(text);
  EXPECT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(reasons(p), std::vector<std::string>{"loss: 1 rows of hypercube_perf (dir/run.txt)"});
}

std::string json_run(const std::string& config, const std::string& results) {
  return R"({"version": 2, "start_time": "2025-01-01 00:00:00", "args": ["/opt/all_reduce_perf"],
             "env": ["SECRET_TOKEN=abc"], "nccl_version": 22703, "config": )" +
         config + R"(, "results": )" + results + "}";
}

constexpr const char* kJsonRow = R"([{"size": 1048576, "count": 262144, "type": "float",
    "redop": "sum", "root": "-1",
    "out_of_place": {"time": 40.0, "alg_bw": 26.2144, "bus_bw": 45.8752, "nwrong": 0},
    "in_place": {"time": 39.5, "alg_bw": 26.5462, "bus_bw": 46.4559, "nwrong": null},
    "actual_iterations": 20, "experiment_name": "x"}])";

TEST(ImportNcclTests, JsonWithOneDeviceAProcess) {
  const Profile p = imported(json_run(
      R"({"nthreads": 1, "ngpus": 4, "graph": 0, "devices": [
          {"rank": 0, "hostname": "a", "device_info": "NVIDIA A100-SXM4-80GB"},
          {"rank": 4, "hostname": "b", "device_info": "NVIDIA A100-SXM4-80GB"}]})",
      kJsonRow));
  expect_the_row(p, 8, 4);
  EXPECT_EQ(p.device_kind, "a100-sxm-80g");
  EXPECT_EQ(p.machine.find("SECRET"), std::string::npos);
  EXPECT_EQ(p.source.find("SECRET"), std::string::npos);
}

TEST(ImportNcclTests, JsonOfOneProcessWithNanAndCpuTime) {
  const Profile p = imported(json_run(
      R"({"nthreads": 2, "ngpus": 4, "graph": 1, "devices": [{"rank": 0, "hostname": "a"}]})",
      R"([{"size": 1048576, "type": "float", "redop": "sum", "out_of_place": null,
           "in_place": {"time": 40.0, "alg_bw": 26.2144, "bus_bw": 45.8752, "nwrong": 0}},
          {"size": 8, "type": "float", "redop": "sum",
           "out_of_place": {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": 0},
           "in_place": {"cpu_time": 4.0, "alg_bw": 1, "bus_bw": 1, "nwrong": 0}}])"));
  ASSERT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(p.collectives[0].ranks, 8);
  EXPECT_EQ(p.collectives[0].time.repeats, 1);
  EXPECT_FALSE(p.launch_included);
  EXPECT_EQ(reasons(p),
            (std::vector<std::string>{
                "loss: 1 rows with the host's time in place of the device's (dir/run.txt)",
                "loss: 1 times that are not numbers (dir/run.txt)"}));
}

TEST(ImportNcclTests, RcclWritesOneSideALine) {
  const Profile p = imported(
      R"({"numCycle": 0, "name": "AllReduce", "nodes": 2, "ranks": 8, "ranksPerNode": 4, "size": 1048576, "type": "float", "redop": "sum", "inPlace": 0, "time": 40.0, "algBw": 26.2144, "busBw": 45.8752, "wrong": "0"}
{"numCycle": 0, "name": "AllReduce", "nodes": 2, "ranks": 8, "ranksPerNode": 4, "size": 1048576, "type": "float", "redop": "sum", "inPlace": 1, "time": 39.5, "algBw": 26.5462, "busBw": 46.4559, "wrong": "N/A"}
this is not JSON
)");
  ASSERT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(p.collectives[0].ranks, 8);
  EXPECT_EQ(p.collectives[0].ranks_per_node, 4);
  EXPECT_EQ(p.collectives[0].time.repeats, 2);
  EXPECT_EQ(reasons(p),
            std::vector<std::string>{"error: 1 lines that are not JSON (dir/run.txt: line 3)"});
}

TEST(ImportNcclTests, RcclArraysAndTables) {
  const Profile array = imported(
      R"([
{"name":"AllReduce", "gpus":8, "size":1048576, "type":"float", "redop":"sum", "inPlace":0, "time":40.0, "algBw":26.2144, "busBw":45.8752, "wrong":0}
])");
  EXPECT_EQ(array.collectives.at(0).ranks, 8);
  const Profile table = imported(
      "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,"
      "busbw,#wrong\n"
      "0,AllReduce,2,8,4,1,1048576,float,sum,0,40.0,26.2144,45.8752,0\n"
      "0,AllReduce,2,8,4,1,1048576,float,sum,1,39.5,26.5462,46.4559,0\n");
  ASSERT_EQ(table.collectives.size(), 1U);
  EXPECT_EQ(table.collectives[0].ranks_per_node, 4);
  EXPECT_EQ(table.collectives[0].time.repeats, 2);
}

TEST(ImportNcclTests, CommasInPlaceOfBlanks) {
  ImportOptions options;
  options.ranks = 8;
  const Profile p = imported(
      "all_reduce_perf\n,,,,,out-of-place,,,,in-place,,,\n"
      "size,count,type,redop,root,time,algbw,busbw,#wrong,time,algbw,busbw,#wrong\n"
      "(B),(elements),,,,(us),(GB/s),(GB/s),,(us),(GB/s),(GB/s),\n"
      "1048576,262144,float,sum,-1,40.00,26.21,45.88,0,39.50,26.55,46.46,0\n",
      options);
  expect_the_row(p, 8, 8);
}

TEST(FaultNcclTests, RanksAreNeverGuessed) {
  EXPECT_FAULT(imported(kNewRow),
               "dir/run.txt: has a table without device lines (nothing says how many ranks it is "
               "of). Give --ranks N if you trust it, and --ranks-per-node where they are fewer.");
  ImportOptions options;
  options.ranks = 4;
  EXPECT_FAULT(
      imported(std::string(kStart) + devices(8, 8) + kNew + kNewRow, options),
      "dir/run.txt: is of 8 ranks by its device lines (--ranks says 4). Leave --ranks out.");
  EXPECT_FAULT(imported("# all_reduce_perf\n" + std::string(kNewRow), options),
               "dir/run.txt: has bus bandwidths that are not those of 4 ranks (they follow from "
               "size, time, collective and ranks). Check --ranks.");
}

TEST(FaultNcclTests, AnEmptyOrUnnamedTableSaysWhatIsMissing) {
  EXPECT_FAULT(imported(std::string(kStart) + devices(2, 2)),
               "dir/run.txt: no row gives a measurement (1 runs without results)");
  EXPECT_FAULT(imported("nothing\n"),
               "dir/run.txt: no row gives a measurement (it has no rows of numbers)");
  ImportOptions options;
  options.ranks = 2;
  EXPECT_FAULT(imported("1024 256 float none -1 4.00 0.26 0.13 0 4.00 0.26 0.13 0\n", options),
               "dir/run.txt: does not say which collective it is of (neither a program's name nor "
               "the bandwidths tell). Put a line \"# Collective test starting: all_gather_perf\" "
               "above the table.");
}

TEST(UnitNcclTests, FormatsAreToldApart) {
  EXPECT_TRUE(is_nccl_tests(kNew));
  EXPECT_TRUE(is_nccl_tests(kNewRow));
  EXPECT_TRUE(is_nccl_tests(json_run("{}", kJsonRow)));
  EXPECT_FALSE(is_nccl_tests("a,b\n1,2\n"));
  EXPECT_FALSE(is_nccl_tests(R"({"format": "towtank-plan"})"));
}

}  // namespace nccl_tests_test
}  // namespace towtank
