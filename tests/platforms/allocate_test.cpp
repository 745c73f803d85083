// SPDX-License-Identifier: Apache-2.0
#include "platforms/allocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

#include "core/contracts.h"
#include "core/rng.h"
#include "tests/platforms/small_platform.h"

namespace towtank {
namespace {

using testing::read_platform;
using testing::small_platform;

Allocation take(const Platform& p, int devices) {
  const auto taken = allocate(p, devices);
  EXPECT_TRUE(std::holds_alternative<Allocation>(taken));
  return std::get<Allocation>(taken);
}

TEST(UnitAllocate, NodeByNode) {
  const Platform p = read_platform(small_platform());
  const Allocation a = take(p, 20);
  ASSERT_EQ(a.parts.size(), 1U);
  EXPECT_EQ(a.nodes, 3);  // ceil(20 / 8)
  EXPECT_EQ(a.devices, 20);
  EXPECT_EQ(take(p, 32).nodes, 4);
}

TEST(UnitAllocate, TooMany) {
  const auto taken = allocate(read_platform(small_platform()), 33);
  ASSERT_TRUE(std::holds_alternative<TooManyDevices>(taken));
  EXPECT_EQ(std::get<TooManyDevices>(taken).asked, 33);
  EXPECT_EQ(std::get<TooManyDevices>(taken).available, 32);  // 4 x 8
}

TEST(UnitAllocate, ManyNodesDoNotOverflow) {
  const Platform p = read_platform(small_platform(R"("count": 4)", R"("count": 1000000)"));
  EXPECT_EQ(take(p, 8'000'000).nodes, 1'000'000);
  EXPECT_EQ(std::get<TooManyDevices>(allocate(p, 8'000'001)).available, 8'000'000);
  const Platform endless =
      read_platform(small_platform(R"(, "count": 4, "source": "made up")", ""));
  EXPECT_EQ(take(endless, 2'000'000'000).nodes, 250'000'000);
}

TEST(UnitAllocate, FileOrder) {
  const Platform p = read_platform(small_platform(
      R"("nodes": [ { "kind": "n", "count": 4, "source": "made up" } ])",
      R"("nodes": [ { "kind": "n", "count": 1, "source": "made up" }, { "kind": "dgx-a100-80g" } ])"));
  const Allocation a = take(p, 24);
  ASSERT_EQ(a.parts.size(), 2U);
  EXPECT_EQ(p.node_kinds[a.parts[0].kind].name, "n");
  EXPECT_EQ(a.parts[0].devices, 8);
  EXPECT_EQ(a.parts[1].nodes, 2);
  EXPECT_EQ(a.parts[1].devices, 16);
  EXPECT_EQ(take(p, 8).parts.size(), 1U);
  EXPECT_THROW(static_cast<void>(allocate(p, 0)), ContractViolation);
}

// --- the network as closed forms see it ---

TEST(UnitNetworkView, LevelsEndWhereTheAllocationDoes) {
  const Platform p = read_platform(small_platform());
  const auto groups = [&](int devices) {
    std::vector<int> out;
    for (const auto& level : network_view(p, take(p, devices)).levels) out.push_back(level.group);
    return out;
  };
  EXPECT_EQ(groups(1), (std::vector<int>{1}));
  EXPECT_EQ(groups(5), (std::vector<int>{5}));
  EXPECT_EQ(groups(8), (std::vector<int>{8}));
  EXPECT_EQ(groups(12), (std::vector<int>{8, 12}));
  EXPECT_EQ(groups(16), (std::vector<int>{8, 16}));      // one leaf: 2 nodes x 8
  EXPECT_EQ(groups(32), (std::vector<int>{8, 16, 32}));  // two leaves under the spine
}

TEST(UnitNetworkView, OversubscriptionCutsTheLevelsAbove) {
  const Platform p = read_platform(small_platform());
  const NetworkView view = network_view(p, take(p, 32));
  ASSERT_EQ(view.levels.size(), 3U);
  EXPECT_EQ(view.levels[1].bandwidth, BytesPerSecond{50e9});
  EXPECT_EQ(view.levels[2].bandwidth, BytesPerSecond{50e9 / 2});  // leaf 2:1
  EXPECT_EQ(view.levels[2].latency, Seconds{3e-6});
  EXPECT_EQ(view.devices_per_node, 8);
  EXPECT_FALSE(view.mixed);
}

TEST(UnitNetworkView, Substitutes) {
  const auto view = [](std::string_view from, std::string_view to) {
    const Platform p = read_platform(small_platform(from, to));
    return network_view(p, take(p, 32));
  };
  // Intra-node: the PCIe rate.
  NetworkView v = view(R"("bandwidth": "100 GB/s")", R"("bandwidth": null)");
  EXPECT_EQ(v.levels[0].bandwidth, BytesPerSecond{32e9});
  EXPECT_TRUE(v.levels[0].assumed);
  // A level that is not stated: the NICs' share is a stated fact, the level above inherits it.
  v = view(R"("bandwidth": "50 GB/s")", R"("bandwidth": null)");
  EXPECT_EQ(v.levels[1].bandwidth, BytesPerSecond{50e9});
  EXPECT_FALSE(v.levels[1].assumed);
  EXPECT_EQ(v.levels[2].bandwidth, BytesPerSecond{25e9});
  EXPECT_TRUE(v.levels[2].assumed);
  // Half the NICs, half the rate, whatever the level says.
  const Platform p = read_platform(small_platform(R"("count": 8, "bandwidth": "400 Gbit/s")",
                                                  R"("count": 8, "bandwidth": null)"));
  EXPECT_EQ(network_view(p, take(p, 32)).levels[1].bandwidth, BytesPerSecond{50e9});
}

TEST(UnitNetworkView, TwoSites) {
  const Platform p = read_platform(
      small_platform(R"("nodes": [ { "kind": "n", "count": 4, "source": "made up" } ])",
                     R"("nodes": [ { "kind": "n", "count": 2, "site": "a", "source": "s" },
                    { "kind": "n", "count": 1, "site": "b", "source": "s" } ],
         "links": { "wan": [ { "from": "a", "to": "b", "bandwidth": "16 GB/s", "latency": "5 ms",
                               "source": "s" } ] })"));
  EXPECT_EQ(network_view(p, take(p, 16)).levels.back().name, "leaf");
  const NetworkView view = network_view(p, take(p, 24));
  ASSERT_EQ(view.levels.size(), 3U);
  EXPECT_EQ(view.levels[1].name, "leaf");
  EXPECT_EQ(view.levels[1].group, 16);  // site a; b is smaller
  EXPECT_EQ(view.levels[2].name, "wan");
  EXPECT_EQ(view.levels[2].group, 24);
  EXPECT_EQ(view.levels[2].bandwidth, BytesPerSecond{1e9});  // 16 GB/s over 16 devices
  EXPECT_EQ(view.levels[2].latency, Seconds{5e-3});
}

TEST(UnitNetworkView, UnequalNodesShareTheirGreatestCommonDivisor) {
  std::string text = small_platform(
      R"("nodes": [ { "kind": "n", "count": 4, "source": "made up" } ])",
      R"("nodes": [ { "kind": "n", "count": 2, "source": "s" }, { "kind": "four" } ])");
  text.insert(text.find(R"("n": {)"), R"("four": { "use": "dgx-a100-80g", "devices": 4,
      "nics": { "count": 2, "bandwidth": "50 Gbit/s", "source": "s" }, "source": "s" },)");
  const Platform p = read_platform(text);
  const NetworkView view = network_view(p, take(p, 24));
  EXPECT_TRUE(view.mixed);
  EXPECT_EQ(view.devices_per_node, 4);                           // gcd(8, 4)
  EXPECT_EQ(p.device_kinds[view.device].name, "d");              // 100 against 312 TFLOP/s
  EXPECT_EQ(view.levels[0].bandwidth, BytesPerSecond{100e9});    // of the slower fabric
  EXPECT_EQ(view.levels[1].bandwidth, BytesPerSecond{3.125e9});  // 2 x 6.25 GB/s / 4
}

// --- how a group lies ---

/// Levels of these groups; bandwidths do not matter here.
NetworkView levels(std::vector<int> groups) {
  NetworkView view;
  view.devices = groups.back();
  view.devices_per_node = groups.front();
  for (const int group : groups) {
    NetworkView::Level level;
    level.group = group;
    view.levels.push_back(level);
  }
  return view;
}

std::vector<int> per_level(const NetworkView& view, int size, int stride) {
  return group_shape(view, size, stride).per_level;
}

using Shape = std::vector<int>;

TEST(UnitGroupShape, PowersOfTwo) {
  const NetworkView view = levels({8, 64, 512});       // 8 devices a node, 8 nodes a leaf, 8 leaves
  EXPECT_EQ(per_level(view, 8, 1), (Shape{8, 1, 1}));  // tensor: one node
  EXPECT_EQ(per_level(view, 16, 1), (Shape{8, 2, 1}));   // two nodes of one leaf
  EXPECT_EQ(per_level(view, 8, 8), (Shape{1, 8, 1}));    // one rank in each node of a leaf
  EXPECT_EQ(per_level(view, 64, 8), (Shape{1, 8, 8}));   // one rank in each node
  EXPECT_EQ(per_level(view, 128, 4), (Shape{2, 8, 8}));  // two ranks in each node
  EXPECT_EQ(per_level(view, 512, 1), (Shape{8, 8, 8}));  // all
  EXPECT_EQ(per_level(view, 8, 64), (Shape{1, 1, 8}));   // pipeline over leaves
  EXPECT_EQ(per_level(view, 4, 2), (Shape{4, 1, 1}));    // strided within a node
  EXPECT_EQ(per_level(view, 1, 1), (Shape{1, 1, 1}));
  EXPECT_EQ(group_shape(view, 16, 1).size, 16);
}

TEST(UnitGroupShape, GroupsThatStraddleNodes) {
  // 3 ranks on 8-device nodes: {0-2} {3-5} {6-8}: the third has two in one node, one in the next.
  EXPECT_EQ(per_level(levels({8, 24}), 3, 1), (Shape{2, 2}));
  // 6 on 8: {0-5} {6-11} {12-17} {18-23}: two nodes at most, ceil(6 / 2) in one.
  EXPECT_EQ(per_level(levels({8, 24}), 6, 1), (Shape{3, 2}));
  // 12 on 8: {0-11} touches 2 nodes, {12-23} too.
  EXPECT_EQ(per_level(levels({8, 24}), 12, 1), (Shape{6, 2}));
  // 7 on 8, 56 devices: {7-13} touches nodes 0 and 1.
  EXPECT_EQ(per_level(levels({8, 56}), 7, 1), (Shape{4, 2}));
  // Pairs on 3-device nodes: {2, 3} straddles.
  EXPECT_EQ(per_level(levels({3, 12}), 2, 1), (Shape{1, 2}));
  // Stride 3, size 2 on 8-device nodes: {0, 3} lies in one, {6, 9} in two.
  EXPECT_EQ(per_level(levels({8, 48}), 2, 3), (Shape{1, 2}));
  // All of them: {0, 4, 8} ... {3, 7, 11} have two ranks in the first node.
  EXPECT_EQ(per_level(levels({8, 12}), 3, 4), (Shape{2, 2}));
  // The only tile starts at rank 0, so that its groups cannot straddle.
  EXPECT_EQ(per_level(levels({8, 10}), 3, 2), (Shape{3, 1}));
}

TEST(UnitGroupShape, Preconditions) {
  const NetworkView view = levels({8, 16});
  EXPECT_THROW(static_cast<void>(group_shape(view, 0, 1)), ContractViolation);
  EXPECT_THROW(static_cast<void>(group_shape(view, 2, 0)), ContractViolation);
  EXPECT_THROW(static_cast<void>(group_shape(view, 17, 1)), ContractViolation);
  EXPECT_THROW(static_cast<void>(group_shape(view, 2, 16)), ContractViolation);
}

/// Every sibling group written out and its groups of each level counted.
Shape counted(const NetworkView& view, int size, int stride) {
  Shape out;
  int below = size;
  const int tiles = std::max(1, view.devices / (size * stride));
  for (const NetworkView::Level& level : view.levels) {
    int most = 1;
    for (int k = 0; k < tiles; ++k) {
      for (int j = 0; j < stride; ++j) {
        std::set<int> touched;
        for (int i = 0; i < size; ++i) {
          touched.insert((k * size * stride + j + i * stride) / level.group);
        }
        most = std::max(most, static_cast<int>(touched.size()));
      }
    }
    most = level.group == view.devices ? 1 : std::min(most, below);
    out.push_back((below + most - 1) / most);
    below = most;
  }
  return out;
}

TEST(DifferGroupShape, EqualsCounting) {
  Rng rng(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto pick = [&](int high) { return static_cast<int>(rng.integer(1, high)); };
    const int node = pick(9);
    const int leaf = node * pick(6);
    const int size = pick(12);
    const int stride = pick(10);
    const int devices = std::max(leaf + 1, size * stride * pick(8));
    const NetworkView view = leaf > node ? levels({node, leaf, devices}) : levels({node, devices});
    EXPECT_EQ(per_level(view, size, stride), counted(view, size, stride))
        << "node " << node << " leaf " << leaf << " devices " << devices << " size " << size
        << " stride " << stride;
  }
}

TEST(LawGroupShape, ProductCoversTheGroup) {
  Rng rng(2);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto pick = [&](int high) { return static_cast<int>(rng.integer(1, high)); };
    const int node = pick(9);
    const int size = pick(30);
    const int stride = pick(30);
    const NetworkView view = levels({node, node * 4, std::max(node * 4 + 1, size * stride)});
    const Shape shape = per_level(view, size, stride);
    EXPECT_GE(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()), size);
    // Powers of two lie regularly: the product is the size.
    const int two = 1 << pick(6);
    const int step = 1 << pick(4);
    const Shape even = per_level(levels({8, 64, 1024}), two, step);
    EXPECT_EQ(std::accumulate(even.begin(), even.end(), 1, std::multiplies<>()), two);
  }
}

}  // namespace
}  // namespace towtank
