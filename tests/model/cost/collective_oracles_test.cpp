// SPDX-License-Identifier: Apache-2.0
// Collectives of uncalibrated machines of the catalogue against published measurements.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/cost/collective_cost.h"
#include "platforms/allocate.h"
#include "platforms/catalogue.h"
#include "tests/model/cost/data_rows.h"
#include "tests/model/cost/network_views.h"

namespace towtank::collective_oracles_test {

constexpr std::int64_t kGiB = 1 << 30;
constexpr std::int64_t kKiB = 1024;

NetworkView view_on(const std::string& platform, int devices) {
  const Platform p = load_platform(platform);
  return network_view(p, std::get<Allocation>(allocate(p, devices)));
}

/// Bus bandwidth in GB/s of `size` ranks, `stride` apart.
double bus(const NetworkView& view, int size, int stride, std::int64_t payload,
           Collective op = Collective::kAllReduce) {
  return testing::predicted_bus(op, payload, group_shape(view, size, stride), view,
                                documented_collective_parameters(view));
}

// oracles.md, network expectations: 8 x A100 232.5; two nodes of 4 x 200 Gbit/s 86 to 96.
TEST(ValidateCollectives, TwoNodesOfA100WithFourPorts) {
  const NetworkView view = view_on("a100-80g-4xhdr", 16);
  EXPECT_NEAR(bus(view, 8, 1, 16 * kGiB), 232.5, 0.05 * 232.5);
  EXPECT_GT(bus(view, 16, 1, 16 * kGiB), 86);
  EXPECT_LT(bus(view, 16, 1, 16 * kGiB), 96);
}

// 8 x H100 without in-network reduction 363 to 367; two nodes at most 370 to 380 in a ring.
TEST(ValidateCollectives, NodesOfH100) {
  const NetworkView view = view_on("dgx-h100", 16);
  EXPECT_NEAR(bus(view, 8, 1, 16 * kGiB), 365, 0.05 * 365);
  EXPECT_NEAR(bus(view, 8, 1, 16 * kGiB, Collective::kAllGather), 361, 0.05 * 361);
  EXPECT_LT(bus(view, 16, 1, 16 * kGiB), 380);
  EXPECT_GT(bus(view, 16, 1, 16 * kGiB), 330);
}

// 46 to 48 GB/s for each 400 Gbit/s port: one rank a node drives one, half a node's ranks half.
TEST(ValidateCollectives, RailsOfH100) {
  const NetworkView view = view_on("dgx-h100", 16);
  EXPECT_GT(bus(view, 2, 8, 16 * kGiB), 46);
  EXPECT_LT(bus(view, 2, 8, 16 * kGiB), 48);
  EXPECT_NEAR(bus(view, 4, 4, 16 * kGiB), 2 * 47, 2);
}

// One 100 Gbit/s port of a node 12.2: within 5 %.
TEST(ValidateCollectives, OneSlowPort) {
  NetworkView view = view_on("dgx-a100-80g", 16);
  view.levels[1].bandwidth = {12.5e9 / 8};
  EXPECT_NEAR(bus(view, 16, 1, 4 * kGiB), 12.2, 0.05 * 12.2);
}

// GH200, 2 and 4 of a node of 4: 114 and 328 GB/s (Sailor): 150 and 450 of hardware.
TEST(ValidateCollectives, PartsOfAMesh) {
  const NetworkView view = view_on("gh200x4-slingshot", 4);
  EXPECT_NEAR(bus(view, 2, 1, kGiB), 114.4, 0.1 * 114.4);
  EXPECT_NEAR(bus(view, 4, 1, kGiB), 327.9, 0.1 * 327.9);
}

// oracles.md: four A100 nodes of 4 x 200 Gbit/s. Measured curves are not monotone and switch
// protocols: a factor of 1.6 below 32 MiB, 20 % above (the dip at 64 MiB), 3 % from 1 GiB on.
TEST(ValidateCollectives, FourNodesOfA100) {
  struct Row {
    std::int64_t payload;
    double bus, factor;
  };
  constexpr std::array rows{Row{32 * kKiB, 0.92, 1.6},    Row{1024 * kKiB, 17.1, 1.6},
                            Row{8192 * kKiB, 68.6, 1.6},  Row{32768 * kKiB, 98.3, 1.2},
                            Row{65536 * kKiB, 84.9, 1.2}, Row{kGiB, 94.2, 1.03},
                            Row{16 * kGiB, 91.7, 1.03}};
  const NetworkView view = view_on("a100-80g-4xhdr", 32);
  for (const Row& row : rows) {
    const double ratio = bus(view, 32, 1, row.payload) / row.bus;
    EXPECT_LT(ratio, row.factor) << row.payload;
    EXPECT_GT(ratio, 1 / row.factor) << row.payload;
  }
}

// An all-reduce of tensor parallelism over two nodes of A100 against one: 232 / 92 and 15/14 more
// on the wire; the step as a whole was measured 2.1 +- 0.4 times as slow (vTrain).
TEST(ValidateCollectives, TensorParallelismOverTwoNodes) {
  const NetworkView view = view_on("a100-80g-4xhdr", 16);
  const auto seconds = [&](int ranks) {
    const CollectiveCall call{Collective::kAllReduce, {100'000'000}, group_shape(view, ranks, 1)};
    return collective_cost(call, view, documented_collective_parameters(view)).time().value;
  };
  EXPECT_GT(seconds(16) / seconds(8), 2.0);
  EXPECT_LT(seconds(16) / seconds(8), 3.0);
}

struct Table {
  std::string file, platform;
  int ranks;
};

// vTrain's all-reduce tables, powers of two from 1 MiB to 1 GiB.
void expect_near_table(const Table& table, double mean, double largest) {
  const auto rows = testing::data_rows("vtrain/allreduce_lut/" + table.file);
  SKIP_WITHOUT_ROWS(rows, table.file);
  const NetworkView view = view_on(table.platform, table.ranks);
  testing::LogError error;
  testing::LogError last;
  for (const auto& row : rows) {
    const std::int64_t payload = std::stoll(row.at("size(B)"));
    if ((payload & (payload - 1)) != 0) continue;
    const CollectiveCall call{Collective::kAllReduce, {payload}, group_shape(view, table.ranks, 1)};
    const double time =
        collective_cost(call, view, documented_collective_parameters(view)).time().value;
    // The columns of the second run bear the same names and stand for it.
    error.add(time, std::stod(row.at("time(ns)")) * 1e-9);
    if (payload == kGiB) last.add(time, std::stod(row.at("time(ns)")) * 1e-9);
  }
  ASSERT_EQ(error.count, 11);
  EXPECT_LT(error.mean(), mean);
  EXPECT_LT(last.mean(), largest);
}

TEST(ValidateCollectives, VTrainA100) {
  expect_near_table({"a100/AR_GPU8_1M_1024M_LUT", "dgx-a100-80g", 8}, 0.25, 0.05);
}
TEST(ValidateCollectives, VTrainA100Pairs) {
  expect_near_table({"a100/AR_GPU2_1M_1024M_LUT", "dgx-a100-80g", 2}, 0.40, 0.20);
}
TEST(ValidateCollectives, VTrainV100) {
  expect_near_table({"v100/AR_GPU8_1M_1024M_LUT", "aws-p3-16xlarge", 8}, 0.25, 0.15);
}

// H100 in one node, medians of Vidur's CUDA graphs, 2 KiB to 64 MiB.
TEST(ValidateCollectives, VidurH100) {
  const auto rows = testing::data_rows("vidur/network/h100_dgx/all_reduce.csv");
  SKIP_WITHOUT_ROWS(rows, "vidur");
  testing::LogError error;
  for (const auto& row : rows) {
    const int ranks = std::stoi(row.at("num_workers"));
    const NetworkView view = view_on("dgx-h100", ranks);
    const CollectiveCall call{
        Collective::kAllReduce, {std::stoll(row.at("size"))}, group_shape(view, ranks, 1)};
    error.add(collective_cost(call, view, documented_collective_parameters(view)).time().value,
              std::stod(row.at("time_stats.all_reduce.median")) * 1e-3);
  }
  EXPECT_GT(error.count, 2000);
  EXPECT_LT(error.mean(), 0.45);
}

}  // namespace towtank::collective_oracles_test
