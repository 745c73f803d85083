// SPDX-License-Identifier: Apache-2.0
// Collectives step by step, each message a flow of its own, against macro flows and closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cost/collective_cost.h"
#include "tests/sim/hand_made.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kTwoEngines;
using testing::sim::HandMade;

constexpr double kBuffer = 1e9, kPort = 50e9, kHop = 5e-6;

/// `ports` devices under one switch, each with a way out and a way in.
struct Switch {
  explicit Switch(int ports, double latency = kHop) : hop(latency) {
    for (int i = 0; i < ports; ++i) up.push_back(net.link(kPort));
    for (int i = 0; i < ports; ++i) down.push_back(net.link(kPort));
  }
  std::int32_t message(int from, int to, double bytes, const std::vector<std::int32_t>& after) {
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    const std::int32_t id = net.flow(bytes, kPort, net.route({up[at(from)], down[at(to)]}), hop);
    for (const std::int32_t before : after) net.builder.depend(before, id);
    return id;
  }
  HandMade net;
  double hop;
  std::vector<std::int32_t> up, down;
};

/// One level of devices with its hops and nothing else.
CollectiveCost closed_form_of(Collective op, int n, double hop = kHop) {
  NetworkView view;
  view.devices = view.devices_per_node = n;
  view.node_slots = n;
  view.levels.push_back({"intranode", "switch", n, {kPort}, {hop}, false});
  const CollectiveParameters parameters =
      uniform_parameters(uniform_link(1.0, {}, {}), uniform_link(1.0, {}, {}));
  return collective_cost({op, Bytes{static_cast<std::int64_t>(kBuffer)}, {n, {n}}}, view,
                         parameters);
}

/// Group collectives as rings of point-to-point steps, each on a link of its own, against one macro
/// flow of wire(n) S bytes and against collective_cost: 2 (n-1) steps of S / n.
TEST(DifferCollectives, StepByStepRingEqualsItsMacroFlow) {
  NEEDS_WORKER();
  constexpr double kPayload = kBuffer, kRate = kPort, kAlpha = kHop;
  for (const int n : {2, 4, 8}) {
    HandMade ring;
    std::vector<std::int32_t> routes;
    for (int i = 0; i < n; ++i) routes.push_back(ring.route({ring.link(kRate)}));
    std::vector<std::int32_t> last(static_cast<std::size_t>(n), -1);
    for (int step = 0; step < 2 * (n - 1); ++step) {
      std::vector<std::int32_t> now;
      for (int i = 0; i < n; ++i) {
        now.push_back(ring.flow(kPayload / n, kRate, routes[static_cast<std::size_t>(i)], kAlpha));
        const std::int32_t from = last[static_cast<std::size_t>((i + n - 1) % n)];
        const std::int32_t own = last[static_cast<std::size_t>(i)];
        if (from >= 0) ring.builder.depend(from, now.back());
        if (own >= 0) ring.builder.depend(own, now.back());
      }
      last = now;
    }
    HandMade macro;
    const double bytes = 2.0 * (n - 1) / n * kPayload;
    macro.flow(bytes, kRate, macro.route({macro.link(kRate)}), 2 * (n - 1) * kAlpha);
    const double expected = 2 * (n - 1) * (kAlpha + kPayload / n / kRate);
    EXPECT_CLOSE(ring.run().makespan(), expected, kTwoEngines) << n;
    EXPECT_CLOSE(macro.run().makespan(), expected, kTwoEngines) << n;
    EXPECT_CLOSE(closed_form_of(Collective::kAllReduce, n).time().value, expected, kTwoEngines)
        << n;
  }
}

/// n-1 rounds; in round k device i sends its share to device i + k. Every port is full, both ways.
TEST(DifferCollectives, StepByStepAllToAllEqualsItsMacroFlow) {
  NEEDS_WORKER();
  for (const int n : {2, 4, 8}) {
    Switch s(n);
    std::vector<std::int32_t> last;
    for (int round = 1; round < n; ++round) {
      std::vector<std::int32_t> now;
      for (int i = 0; i < n; ++i) {
        const int from = (i + n - round + 1) % n;  // who sent to i in the round before
        std::vector<std::int32_t> after;
        if (!last.empty()) {
          after = {last[static_cast<std::size_t>(i)], last[static_cast<std::size_t>(from)]};
        }
        if (after.size() == 2 && after[0] == after[1]) after.pop_back();
        now.push_back(s.message(i, (i + round) % n, kBuffer / n, after));
      }
      last = now;
    }
    HandMade macro;
    macro.flow((n - 1) * kBuffer / n, kPort, macro.route({macro.link(kPort)}), (n - 1) * kHop);
    const double expected = (n - 1) * (kHop + kBuffer / n / kPort);
    EXPECT_CLOSE(s.net.run().makespan(), expected, kTwoEngines) << n;
    EXPECT_CLOSE(macro.run().makespan(), expected, kTwoEngines) << n;
    EXPECT_CLOSE(closed_form_of(Collective::kAllToAll, n).time().value, expected, kTwoEngines) << n;
  }
}

/// All shares at once: max-min sharing fills every port as well.
TEST(DifferCollectives, AllToAllAtOnceTakesAsLongAsInRounds) {
  NEEDS_WORKER();
  for (const int n : {3, 5}) {
    Switch s(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (i != j) s.message(i, j, kBuffer / n, {});
      }
    }
    EXPECT_CLOSE(s.net.run().makespan(), kHop + (n - 1) * kBuffer / n / kPort, kTwoEngines) << n;
  }
}

/// Reduction and broadcast of half of the buffer over one tree of four devices, piece by piece: a
/// piece goes up when both children's have come, and down when it was at the root.
void add_tree(Switch& s, const std::array<int, 4>& parent, int pieces) {
  using Ids = std::vector<std::int32_t>;
  const double bytes = kBuffer / 2 / pieces;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::array<Ids, 4> up, down;  // by device: the last message to its parent, from its parent
  const auto wait = [](Ids& for_what, const Ids& messages) {
    for_what.insert(for_what.end(), messages.begin(), messages.end());
  };
  // Leaves first on the way up, the root's child first on the way down.
  std::vector<int> order{0, 1, 2, 3};
  const auto depth = [&](int i) {
    int d = 0;
    for (; parent[at(i)] >= 0; i = parent[at(i)]) ++d;
    return d;
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return depth(a) > depth(b); });
  for (int p = 0; p < pieces; ++p) {
    Ids at_root;
    for (const int i : order) {
      Ids before = up[at(i)];
      for (int child = 0; child < 4; ++child) {
        if (parent[at(child)] == i) wait(before, up[at(child)]);
      }
      if (parent[at(i)] < 0) {
        at_root = before;
      } else {
        up[at(i)] = {s.message(i, parent[at(i)], bytes, before)};
      }
    }
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      const int from = parent[at(*i)];
      if (from < 0) continue;
      Ids before = down[at(*i)];
      wait(before, parent[at(from)] < 0 ? at_root : down[at(from)]);
      down[at(*i)] = {s.message(from, *i, bytes, before)};
    }
  }
}

/// NCCL's double tree: 0 over 2 over {1, 3} and its mirror image 3 over 1 over {2, 0}. A device
/// that is inner in one is a leaf in the other: 2 S out of the busiest port and 2 S into it, so no
/// less than 2 S / beta; with more pieces both passes overlap the more.
TEST(DifferCollectives, StepByStepDoubleTreeTendsToItsMacroFlow) {
  NEEDS_WORKER();
  const double limit = 2 * kBuffer / kPort;
  double excess = HUGE_VAL;
  for (const int pieces : {8, 16, 32, 64}) {
    Switch s(4, 0.0);
    add_tree(s, {-1, 2, 0, 2}, pieces);
    add_tree(s, {1, 3, 1, -1}, pieces);
    const double over = s.net.run().makespan() / limit - 1;
    EXPECT_GE(over, -kTwoEngines) << pieces;
    EXPECT_LE(over, 0.7 * excess) << pieces;
    excess = over;
  }
  EXPECT_LE(excess, 0.05);
  HandMade macro;
  macro.flow(2 * kBuffer, kPort, macro.route({macro.link(kPort)}));
  EXPECT_CLOSE(macro.run().makespan(), limit, kTwoEngines);
  // A hop so long that the tree is what the library takes: 2 log2 4 of them, and 2 S / beta.
  const CollectiveCost tree = closed_form_of(Collective::kAllReduce, 4, 1.0);
  EXPECT_CLOSE(tree.latency.value, 4.0, kTwoEngines);
  EXPECT_CLOSE(tree.transfer.value, limit, kTwoEngines);
}

}  // namespace
}  // namespace towtank
