// SPDX-License-Identifier: Apache-2.0
#include "model/cost/collective_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/contracts.h"
#include "core/rng.h"
#include "tests/model/cost/network_views.h"
#include "tests/support/near.h"

namespace towtank::collective_cost_test {

using testing::hardware_rates;
using testing::kGigabyte;
using testing::kSameArithmetic;
using testing::shape_of;
using testing::view_of;

constexpr std::array kAll{Collective::kAllReduce,     Collective::kAllGather,
                          Collective::kReduceScatter, Collective::kAllToAll,
                          Collective::kSendRecv,      Collective::kBroadcast};

CollectiveCost cost(Collective op, std::int64_t payload, const GroupShape& group,
                    const NetworkView& view) {
  return collective_cost({op, {payload}, group}, view, hardware_rates());
}

// The table of nccl-tests doc/PERFORMANCE.md, and steps of rings.
TEST(UnitCollectiveFactors, FollowTheTable) {
  struct Row {
    Collective op;
    double wire2, wire8, steps2, steps8;
  };
  constexpr std::array rows{
      Row{Collective::kAllReduce, 2.0 * 1 / 2, 2.0 * 7 / 8, 2, 14},
      Row{Collective::kAllGather, 1.0 / 2, 7.0 / 8, 1, 7},
      Row{Collective::kReduceScatter, 1.0 / 2, 7.0 / 8, 1, 7},
      Row{Collective::kAllToAll, 1.0 / 2, 7.0 / 8, 1, 7},
      Row{Collective::kSendRecv, 1, 1, 1, 1},
      Row{Collective::kBroadcast, 1, 1, 1, 7},
  };
  static_assert(rows.size() == kCollectiveCount);
  for (const Row& row : rows) {
    SCOPED_TRACE(to_text(row.op));
    EXPECT_EQ(wire_factor(row.op, 1), 0.0);
    EXPECT_EQ(wire_factor(row.op, 2), row.wire2);
    EXPECT_EQ(wire_factor(row.op, 8), row.wire8);
    EXPECT_EQ(ring_steps(row.op, 1), 0.0);
    EXPECT_EQ(ring_steps(row.op, 2), row.steps2);
    EXPECT_EQ(ring_steps(row.op, 8), row.steps8);
  }
  EXPECT_THROW(static_cast<void>(wire_factor(Collective::kAllReduce, 0)), ContractViolation);
}

// Oracle: ring all-reduce, 8 ranks, 100 MB, 50 GB/s: 2 * 7/8 * 100e6 / 50e9 = 3.5 ms, +- 2 %.
TEST(UnitCollectiveCost, RingAllReduceOfEightRanks) {
  const NetworkView view = view_of({{8, 50e9, 1e-6}});
  const CollectiveCost c = cost(Collective::kAllReduce, 100'000'000, shape_of({8}), view);
  EXPECT_CLOSE(c.transfer.value, 2.0 * 7 / 8 * 100e6 / 50e9, kSameArithmetic);
  EXPECT_CLOSE(c.latency.value, 14 * 1e-6, kSameArithmetic);
  EXPECT_NEAR(c.time().value, 3.5e-3, 0.02 * 3.5e-3);
}

TEST(UnitCollectiveCost, OneRankAndAnEmptyPayloadCostNothing) {
  const NetworkView view = view_of({{8, 50e9, 1e-6}});
  for (const Collective op : kAll) {
    const CollectiveParameters documented = documented_collective_parameters(view);
    EXPECT_EQ(collective_cost({op, {kGigabyte}, shape_of({1})}, view, documented).time().value,
              0.0);
    EXPECT_EQ(collective_cost({op, {0}, shape_of({8})}, view, documented).time().value, 0.0);
  }
}

TEST(UnitCollectiveCost, BusBandwidthInvertsTheTransfer) {
  const NetworkView view = view_of({{8, 200e9, 0}, {4, 25e9, 0}});
  for (const Collective op :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast}) {
    const CollectiveCost c = cost(op, kGigabyte, shape_of({8, 4}), view);
    EXPECT_CLOSE(bus_bandwidth(op, {kGigabyte}, 32, c.time()).value, 8 * 25e9, kSameArithmetic);
    EXPECT_EQ(c.level, 0);  // 8 rails carry as much as one device's port: the node binds first
  }
}

// A group with g ranks on each of two nodes drives g rails of 10 GB/s.
TEST(UnitCollectiveCost, RanksOfANodeDriveTheirOwnRails) {
  const NetworkView view = view_of({{8, 1000e9, 0}, {2, 10e9, 0}});
  for (const int g : {1, 2, 4, 8}) {
    const double n = 2.0 * g;
    const CollectiveCost c = cost(Collective::kAllGather, kGigabyte, shape_of({g, 2}), view);
    EXPECT_CLOSE(c.transfer.value, (n - 1) / n * 1e9 / (g * 10e9), kSameArithmetic);
    EXPECT_EQ(c.level, 1);
  }
}

// 3 ranks on 8-device nodes at worst lie 2 + 1: the node with one drives one rail.
TEST(UnitCollectiveCost, AnUnevenGroupIsBoundByItsEmptiestNode) {
  const NetworkView view = view_of({{8, 1000e9, 0}, {2, 10e9, 0}});
  GroupShape uneven = shape_of({2, 2});
  uneven.size = 3;
  const CollectiveCost c = cost(Collective::kAllGather, kGigabyte, uneven, view);
  EXPECT_CLOSE(c.transfer.value, 2.0 / 3 * 1e9 / 10e9, kSameArithmetic);
}

// Hops of a ring over 2 leaves of 3 nodes of 4: 24 - 6 inside nodes, 6 - 2 between nodes of a leaf,
// 2 - 1 between leaves, and the all-reduce goes round twice.
TEST(UnitCollectiveCost, HopsAreCountedByLevel) {
  const NetworkView view = view_of({{4, 1e15, 1e-6}, {3, 1e15, 1e-3}, {2, 1e15, 1.0}});
  const GroupShape group = shape_of({4, 3, 2});
  const double once = 18 * 1e-6 + 4 * 1e-3 + 1 * 1.0;
  EXPECT_CLOSE(cost(Collective::kAllGather, 1, group, view).latency.value, once, kSameArithmetic);
  EXPECT_CLOSE(cost(Collective::kBroadcast, 1, group, view).latency.value, once, kSameArithmetic);
  // The tree goes up and down: ceil(log2) of 4, 3 and 2.
  EXPECT_CLOSE(cost(Collective::kAllReduce, 1, group, view).latency.value,
               2 * (2 * 1e-6 + 2 * 1e-3 + 1 * 1.0), kSameArithmetic);
  // One rank meets 3 in its node, 8 in its leaf and 12 beyond.
  EXPECT_CLOSE(cost(Collective::kAllToAll, 1, group, view).latency.value,
               3 * 1e-6 + 8 * 1e-3 + 12 * 1.0, kSameArithmetic);
}

// 64 ranks, one a node. Small: 2 * log2(64) hops of a tree against 2 * 63 of a ring; large: the
// ring's wire 2 * 63/64 against the tree's 2.
TEST(UnitCollectiveCost, TreesCarrySmallPayloadsAndRingsLargeOnes) {
  const NetworkView view = view_of({{1, 1e12, 0}, {64, 10e9, 5e-6}});
  const GroupShape group = shape_of({1, 64});
  const CollectiveCost small = cost(Collective::kAllReduce, 1000, group, view);
  EXPECT_CLOSE(small.latency.value, 12 * 5e-6, kSameArithmetic);
  EXPECT_CLOSE(small.transfer.value, 2 * 1000 / 10e9, kSameArithmetic);
  const CollectiveCost large = cost(Collective::kAllReduce, 10 * kGigabyte, group, view);
  EXPECT_CLOSE(large.latency.value, 126 * 5e-6, kSameArithmetic);
  EXPECT_CLOSE(large.transfer.value, 2.0 * 63 / 64 * 10e9 / 10e9, kSameArithmetic);
}

// 2 nodes of 8: 2 * 7/8 S at 500 GB/s inside, then 2 * 1/2 of S/8 at 10 GB/s across, against
// 2 * 15/16 S over 8 rails of 10 GB/s in a ring.
TEST(UnitCollectiveCost, HierarchicalAllReduceIsAChoiceOfTheLibrary) {
  const NetworkView view = view_of({{8, 500e9, 0}, {2, 10e9, 0}});
  const CollectiveCall call{Collective::kAllReduce, {kGigabyte}, shape_of({8, 2})};
  CollectiveParameters parameters = hardware_rates();
  EXPECT_CLOSE(collective_cost(call, view, parameters).transfer.value, 2.0 * 15 / 16 / 80,
               kSameArithmetic);
  parameters.algorithms = AllReduceAlgorithms::kHierarchical;
  const CollectiveCost c = collective_cost(call, view, parameters);
  EXPECT_CLOSE(c.transfer.value, 2.0 * 7 / 8 / 500 + 2.0 * 1 / 2 / 8 / 10, kSameArithmetic);
  EXPECT_EQ(c.level, 1);
}

// 2 nodes of 4: half of a rank's buffer leaves the node, 3/8 stay, both at once.
TEST(UnitCollectiveCost, AllToAllMovesInsideAndBetweenNodesAtOnce) {
  const GroupShape group = shape_of({4, 2});
  const double between = 4.0 / 8 * 1e9 / 10e9;
  const double inside = 3.0 / 8 * 1e9 / 5e9;
  const CollectiveCost slow_network =
      cost(Collective::kAllToAll, kGigabyte, group, view_of({{4, 100e9, 0}, {2, 10e9, 0}}));
  EXPECT_CLOSE(slow_network.transfer.value, between, kSameArithmetic);
  EXPECT_EQ(slow_network.level, 1);
  const CollectiveCost slow_nodes =
      cost(Collective::kAllToAll, kGigabyte, group, view_of({{4, 5e9, 0}, {2, 10e9, 0}}));
  EXPECT_CLOSE(slow_nodes.transfer.value, inside, kSameArithmetic);
  EXPECT_EQ(slow_nodes.level, 0);
}

// All that leaves a node passes its ports, whatever level it then takes: 14 of 16 ranks are outside
// a node of 2, 8 outside a leaf of 8.
TEST(UnitCollectiveCost, AllToAllPassesEveryLevelOnItsWay) {
  const GroupShape group = shape_of({2, 4, 2});
  const NetworkView full = view_of({{2, 1000e9, 0}, {4, 10e9, 0}, {2, 10e9, 0}});
  EXPECT_CLOSE(cost(Collective::kAllToAll, kGigabyte, group, full).transfer.value,
               14.0 / 16 * 1e9 / 10e9, kSameArithmetic);
  const NetworkView thin = view_of({{2, 1000e9, 0}, {4, 10e9, 0}, {2, 2.5e9, 0}});
  const CollectiveCost c = cost(Collective::kAllToAll, kGigabyte, group, thin);
  EXPECT_CLOSE(c.transfer.value, 8.0 / 16 * 1e9 / 2.5e9, kSameArithmetic);
  EXPECT_EQ(c.level, 2);
}

// A ring in rank order leaves each leaf once, over the share of all of its ranks in the leaf.
TEST(UnitCollectiveCost, ARingHardlyFeelsAnOversubscribedSpine) {
  const NetworkView view = view_of({{8, 300e9, 0}, {4, 50e9, 0}, {2, 12.5e9, 0}});  // spine 4:1
  const CollectiveCost whole = cost(Collective::kAllGather, kGigabyte, shape_of({8, 4, 2}), view);
  EXPECT_CLOSE(whole.transfer.value, 63.0 / 64 * 1e9 / 300e9, kSameArithmetic);
  // One rank in each leaf has nothing but its own share of the spine.
  const CollectiveCost thin = cost(Collective::kAllGather, kGigabyte, shape_of({1, 1, 2}), view);
  EXPECT_CLOSE(thin.transfer.value, 1.0 / 2 * 1e9 / 12.5e9, kSameArithmetic);
  EXPECT_EQ(thin.level, 2);
}

TEST(UnitCollectiveCost, APairRunsAtOneDevicesShareOfTheLevelItSpans) {
  const NetworkView view = view_of({{8, 300e9, 1e-6}, {4, 25e9, 3e-6}, {2, 12.5e9, 5e-6}});
  const auto pair = [&](std::vector<int> per_level) {
    return cost(Collective::kSendRecv, kGigabyte, shape_of(std::move(per_level)), view);
  };
  EXPECT_CLOSE(pair({2, 1, 1}).time().value, 1e9 / 300e9 + 1e-6, kSameArithmetic);
  EXPECT_CLOSE(pair({1, 2, 1}).time().value, 1e9 / 25e9 + 3e-6, kSameArithmetic);
  EXPECT_CLOSE(pair({1, 1, 2}).time().value, 1e9 / 12.5e9 + 5e-6, kSameArithmetic);
  // One shift of a ring over two whole nodes is as slow as its hop between them.
  EXPECT_CLOSE(pair({8, 2, 1}).time().value, 1e9 / 25e9 + 3e-6, kSameArithmetic);
}

// 4 devices, each joined to each other by a third of its 450 GB/s.
TEST(UnitCollectiveCost, PartOfAMeshUsesPartOfTheLinks) {
  NetworkView view = view_of({{4, 450e9, 0}});
  view.topology = IntranodeTopology::kMesh;
  const auto bus = [&](int ranks) {
    return testing::predicted_bus(Collective::kAllGather, kGigabyte, shape_of({ranks}), view,
                                  hardware_rates());
  };
  EXPECT_CLOSE(bus(2), 150.0, kSameArithmetic);
  EXPECT_CLOSE(bus(3), 300.0, kSameArithmetic);
  EXPECT_CLOSE(bus(4), 450.0, kSameArithmetic);
  EXPECT_CLOSE(cost(Collective::kSendRecv, kGigabyte, shape_of({4}), view).transfer.value,
               1.0 / 150, kSameArithmetic);
}

TEST(UnitCollectiveCost, SharesAreOfTheLevelThatBinds) {
  const CollectiveParameters half_and_quarter =
      uniform_parameters(uniform_link(0.5, {5e-6}, {2e-6}), uniform_link(0.25, {7e-6}, {2e-6}));
  const NetworkView view = view_of({{4, 100e9, 1e-6}, {2, 20e9, 3e-6}});
  const auto call = [&](std::vector<int> per_level) {
    const CollectiveCall c{Collective::kAllGather, {kGigabyte}, shape_of(std::move(per_level))};
    return collective_cost(c, view, half_and_quarter);
  };
  EXPECT_CLOSE(call({2, 1}).transfer.value, 1.0 / 2 / 50, kSameArithmetic);
  EXPECT_CLOSE(call({1, 2}).transfer.value, 1.0 / 2 / 5, kSameArithmetic);
  EXPECT_CLOSE(call({2, 1}).latency.value, 3e-6, kSameArithmetic);
  EXPECT_EQ(call({2, 1}).launch.value, 5e-6);
  EXPECT_EQ(call({1, 2}).launch.value, 7e-6);
  EXPECT_EQ(call({2, 2}).launch.value, 7e-6);
}

TEST(UnitCollectiveCost, PcieReachesLessThanSwitches) {
  NetworkView view = view_of({{4, 100e9, 1e-6}});
  const auto share = [&](IntranodeTopology topology) {
    view.topology = topology;
    return documented_collective_parameters(view).level[0][0].share_of(2);
  };
  EXPECT_LT(share(IntranodeTopology::kPcie), share(IntranodeTopology::kSwitch));
  EXPECT_EQ(share(IntranodeTopology::kMesh), share(IntranodeTopology::kSwitch));
}

// Shares by number of ranks, of one collective only.
TEST(UnitCollectiveCost, SharesDependOnRanksAndCollective) {
  const NetworkView view = view_of({{32, 100e9, 0}});
  CollectiveParameters p = hardware_rates();
  LinkParameters& reduce = p.level[0][static_cast<std::size_t>(Collective::kAllReduce)];
  reduce.share[2] = 0.5;
  reduce.share[LinkParameters::kMostRanks] = 0.8;
  const auto bus = [&](Collective op, int ranks) {
    return testing::predicted_bus(op, kGigabyte, shape_of({ranks}), view, p);
  };
  EXPECT_CLOSE(bus(Collective::kAllReduce, 2), 50.0, kSameArithmetic);
  EXPECT_CLOSE(bus(Collective::kAllReduce, 3), 100.0, kSameArithmetic);
  EXPECT_CLOSE(bus(Collective::kAllReduce, 32), 80.0, kSameArithmetic);
  EXPECT_CLOSE(bus(Collective::kAllGather, 2), 100.0, kSameArithmetic);
}

// 8 ranks at 100 GB/s, 14 hops: 14 * 3 us + 1.75 S / 100e9 against 14 * 1 us + 1.75 S / 25e9. Equal
// at S = 28e-6 / (1.75 * 3 / 100e9) = 533,333 bytes.
TEST(UnitCollectiveCost, SmallPayloadsTakeTheProtocolOfLessLatency) {
  const NetworkView view = view_of({{8, 100e9, 0}});
  LinkParameters link = uniform_link(1.0, {0.0}, {3e-6});
  link.low_step = {1e-6};
  link.low_share = 0.25;
  const CollectiveParameters p = uniform_parameters(link, link);
  const auto time = [&](Collective op, std::int64_t payload) {
    return collective_cost({op, {payload}, shape_of({8})}, view, p).time().value;
  };
  const double wire = 7.0 / 8;  // of an all-gather, 7 hops: the same payload
  EXPECT_CLOSE(time(Collective::kAllGather, 533'000), 7 * 1e-6 + wire * 533'000 / 25e9,
               kSameArithmetic);
  EXPECT_CLOSE(time(Collective::kAllGather, 534'000), 7 * 3e-6 + wire * 534'000 / 100e9,
               kSameArithmetic);
}

struct Scene {
  NetworkView view;
  GroupShape group;
};

/// A regular machine of 1 to 4 levels and a group on it, bandwidths falling outwards.
Scene random_scene(Rng& rng) {
  std::vector<testing::LevelNumbers> levels;
  std::vector<int> per_level;
  double bandwidth = rng.uniform(20e9, 900e9);
  double latency = rng.uniform(0.2e-6, 2e-6);
  const auto count = rng.integer(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    const int joins = 1 << rng.integer(i == 0 ? 0 : 1, 3);
    levels.push_back({joins, bandwidth, latency});
    per_level.push_back(1 << rng.integer(0, std::bit_width(static_cast<unsigned>(joins)) - 1));
    bandwidth *= rng.uniform(0.05, 1.0);
    latency *= rng.uniform(1.0, 5.0);
  }
  Scene scene{view_of(levels), shape_of(per_level)};
  constexpr std::array kinds{IntranodeTopology::kSwitch, IntranodeTopology::kMesh,
                             IntranodeTopology::kPcie};
  scene.view.topology = kinds[static_cast<std::size_t>(rng.integer(0, 2))];
  return scene;
}

/// The fastest that any byte of a ring leaves a unit of some level, at hardware rates.
double ring_hardware_rate(const Scene& s) {
  double rate = std::numeric_limits<double>::infinity();
  int below = 1;
  for (std::size_t i = 0; i < s.group.per_level.size(); ++i) {
    if (s.group.per_level[i] > 1) rate = std::min(rate, below * s.view.levels[i].bandwidth.value);
    below *= s.group.per_level[i];
  }
  return rate;
}

TEST(LawCollectiveCost, NeverFasterThanTheWireAndMonotoneInPayload) {
  Rng rng(1);
  for (int round = 0; round < 4000; ++round) {
    const Scene s = random_scene(rng);
    const CollectiveParameters parameters = documented_collective_parameters(s.view);
    for (const Collective op : kAll) {
      double before = 0.0;
      for (double payload = 1.0; payload < 1e12; payload *= rng.uniform(2.0, 20.0)) {
        const Bytes bytes = bytes_from(payload);
        const CollectiveCost c = collective_cost({op, bytes, s.group}, s.view, parameters);
        ASSERT_GE(c.time().value, before) << to_text(op);
        before = c.time().value;
        if (s.group.size == 1 || op == Collective::kAllToAll) continue;
        const double floor = wire_factor(op, s.group.size) * static_cast<double>(bytes.value) /
                             ring_hardware_rate(s);
        ASSERT_GE(c.time().value, floor) << to_text(op);
      }
    }
  }
}

TEST(LawCollectiveCost, FasterLinksAndMoreAlgorithmsNeverHurt) {
  Rng rng(2);
  for (int round = 0; round < 4000; ++round) {
    const Scene s = random_scene(rng);
    NetworkView better = s.view;
    const auto level = static_cast<std::size_t>(
        rng.integer(0, static_cast<std::int64_t>(better.levels.size()) - 1));
    better.levels[level].bandwidth = 2.0 * better.levels[level].bandwidth;
    better.levels[level].latency = better.levels[level].latency / 2.0;
    const CollectiveParameters nccl = documented_collective_parameters(s.view);
    CollectiveParameters more = nccl;
    more.algorithms = AllReduceAlgorithms::kHierarchical;
    const Bytes payload = bytes_from(std::exp2(rng.uniform(0.0, 36.0)));
    for (const Collective op : kAll) {
      const CollectiveCall call{op, payload, s.group};
      const double now = collective_cost(call, s.view, nccl).time().value;
      ASSERT_LE(collective_cost(call, better, nccl).time().value, now) << to_text(op);
      ASSERT_LE(collective_cost(call, s.view, more).time().value, now) << to_text(op);
    }
  }
}

TEST(LawCollectiveCost, TheBindingLevelIsOneThatTheGroupSpans) {
  Rng rng(3);
  for (int round = 0; round < 4000; ++round) {
    const Scene s = random_scene(rng);
    if (s.group.size == 1) continue;
    for (const Collective op : kAll) {
      const CollectiveCost c = cost(op, kGigabyte, s.group, s.view);
      ASSERT_LT(static_cast<std::size_t>(c.level), s.group.per_level.size());
      ASSERT_GT(s.group.per_level[static_cast<std::size_t>(c.level)], 1) << to_text(op);
    }
  }
}

/// Event run of `rings` equal rings, each a chain of links, chunk by chunk: a rank sends a chunk
/// when it has it and its link is free.
struct Link {
  double bandwidth, latency;
};
double ring_events(const std::vector<Link>& links, double payload, int passes) {
  const std::size_t n = links.size();
  const double chunk = payload / static_cast<double>(n);
  std::vector<double> has(n, 0.0);   // when the chunk that rank r sends next is there
  std::vector<double> free(n, 0.0);  // when the link out of rank r is free
  for (std::size_t step = 0; step < static_cast<std::size_t>(passes) * (n - 1); ++step) {
    std::vector<double> arrives(n);
    for (std::size_t r = 0; r < n; ++r) {
      const double start = std::max(has[r], free[r]);
      free[r] = start + chunk / links[r].bandwidth;
      arrives[(r + 1) % n] = free[r] + links[r].latency;
    }
    has = arrives;
  }
  return *std::max_element(has.begin(), has.end());
}

// Closed form against chunk-level events: within 1 % for payloads whose transfer dominates. g rings
// share the links inside nodes and have one rail each.
TEST(DifferCollectiveCost, RingsAgreeWithAnEventRun) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    const int g = 1 << rng.integer(0, 3);
    const int nodes = static_cast<int>(rng.integer(1, 6));
    if (g * nodes == 1) continue;
    const double inside = rng.uniform(100e9, 450e9);
    const double across = rng.uniform(5e9, 100e9);
    const NetworkView view = view_of({{8, inside, 1e-7}, {8, across, 1e-7}});
    std::vector<Link> links;
    for (int r = 0; r < g * nodes; ++r) {
      const bool leaves = nodes > 1 && r % g == g - 1;
      links.push_back({leaves ? across : inside / g, 1e-7});
    }
    const bool reduce = rng.integer(0, 1) == 0;
    const double events = ring_events(links, static_cast<double>(kGigabyte) / g, reduce ? 2 : 1);
    const Collective op = reduce ? Collective::kAllReduce : Collective::kAllGather;
    EXPECT_CLOSE(cost(op, kGigabyte, shape_of({g, nodes}), view).time().value, events, 0.01);
  }
}

}  // namespace towtank::collective_cost_test
