// SPDX-License-Identifier: Apache-2.0
#include "model/cost/collective_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr std::size_t kMaxLevels = CollectiveParameters::kMostLevels;

// All-reduce on large payloads over the hardware rate. A100 8 ranks 232 of 300 GB/s (vTrain
// all-reduce tables), H200 ring 365 of 450, B200 ring 682 of 900 (ml-engineering, network), GH200 4
// ranks 328 of 450 and 2 ranks 114 of 150 (Sailor): 0.73 to 0.81.
constexpr double kNodeShare = 0.79;
// Titan RTX 5.1 of 15.75 GB/s through the host (Sailor), A100 24 of 32 and H100 49 of 64 between
// pairs (Vidur): 0.32 to 0.77; their geometric mean.
constexpr double kPcieShare = 0.5;
// 4 A100 nodes of 4 x 25 GB/s 94 (ml-engineering, 1 GiB); 46 to 48 of a 50 GB/s port and 12.2 of a
// 12.5 GB/s one (nccl issue reports).
constexpr double kNetworkShare = 0.94;
// Zero-payload limit of the vTrain tables less the hops: 28 us on A100, 14 us on V100; less where a
// stream of work hides the launch. Assumed.
constexpr Seconds kLaunch{15e-6};
// NCCL src/graph/tuning.cc: a hop takes 3.4 us on NVLink with the protocol of large payloads and
// 0.6 us (which platforms state) with that of small ones.
constexpr Seconds kStep{2.8e-6};

enum class Protocol { kSimple, kLow };

/// One level of the network as one group sees it with one protocol.
struct GroupLevel {
  double latency;    ///< alpha + step of one hop
  double bandwidth;  ///< that one device reaches
  int ranks;         ///< p_l: units of the level below that the group joins here
  int below;         ///< r_l: ranks of the group in one such unit
  int units;         ///< such units in the whole group
};

struct GroupLevels {
  std::array<GroupLevel, kMaxLevels> level;
  std::size_t count = 0;
  int ranks = 1;
};

/// Share of a device's links into its node that lead to `peers` others.
double links_used(const NetworkView& view, int peers) {
  if (view.topology != IntranodeTopology::kMesh) return 1.0;
  const int links = std::max(1, view.node_slots - 1);
  return static_cast<double>(std::min(peers, links)) / links;
}

/// Devices of the node that a rank talks to at once.
int peers_in_node(Collective op, int ranks) { return op == Collective::kSendRecv ? 1 : ranks - 1; }

GroupLevels levels_of(Collective op, const GroupShape& group, const NetworkView& view,
                      const CollectiveParameters& parameters, Protocol protocol) {
  GroupLevels out;
  out.count = group.per_level.size();
  out.ranks = group.size;
  const bool low = protocol == Protocol::kLow;
  int units = 1;
  for (std::size_t i = out.count; i-- > 0;) {
    units *= group.per_level[i];
    const NetworkView::Level& level = view.levels[i];
    const int ranks = group.per_level[i];
    const LinkParameters& link = parameters.level[i][static_cast<std::size_t>(op)];
    double bandwidth = level.bandwidth.value * link.share_of(ranks);
    if (i == 0) bandwidth *= links_used(view, peers_in_node(op, ranks));
    if (low) bandwidth *= link.low_share;
    const int below = std::max(1, group.size / units);
    if (link.group_limit) bandwidth = std::min(bandwidth, link.group_limit->value / below);
    const Seconds step = low ? link.low_step : link.step;
    out.level[i] = {level.latency.value + step.value, bandwidth, ranks, below, units};
  }
  return out;
}

/// Sum of latencies over the hops of one pass through a ring.
double ring_latency(const GroupLevels& g) {
  double sum = 0.0;
  for (std::size_t i = 0; i < g.count; ++i) {
    const int above = i + 1 < g.count ? g.level[i + 1].units : 1;
    sum += static_cast<double>(g.level[i].units - above) * g.level[i].latency;
  }
  return sum;
}

double tree_latency(const GroupLevels& g) {
  double sum = 0.0;
  for (std::size_t i = 0; i < g.count; ++i) {
    const auto height = std::bit_width(static_cast<unsigned>(g.level[i].ranks) - 1U);
    sum += 2.0 * static_cast<double>(height) * g.level[i].latency;
  }
  return sum;
}

struct Binding {
  double bandwidth;
  int level;
};

/// What a ring reaches: each of its bytes crosses every level that it spans.
Binding ring_bandwidth(const GroupLevels& g) {
  Binding out{0.0, 0};
  for (std::size_t i = 0; i < g.count; ++i) {
    if (g.level[i].ranks == 1) continue;
    const double rate = g.level[i].bandwidth * static_cast<double>(g.level[i].below);
    if (out.bandwidth == 0.0 || rate < out.bandwidth) out = {rate, static_cast<int>(i)};
  }
  return out;
}

CollectiveCost cost_of(double latency, double transfer, int level) {
  CollectiveCost out;
  out.latency = {latency};
  out.transfer = {transfer};
  out.level = level;
  return out;
}

CollectiveCost ring(Collective op, double payload, const GroupLevels& g) {
  const Binding binding = ring_bandwidth(g);
  const double passes = op == Collective::kAllReduce ? 2.0 : 1.0;
  return cost_of(passes * ring_latency(g), wire_factor(op, g.ranks) * payload / binding.bandwidth,
                 binding.level);
}

/// NCCL's double binary tree: each byte goes up once and down once.
CollectiveCost tree(double payload, const GroupLevels& g) {
  const Binding binding = ring_bandwidth(g);
  return cost_of(tree_latency(g), 2.0 * payload / binding.bandwidth, binding.level);
}

CollectiveCost hierarchical(double payload, const GroupLevels& g) {
  double latency = 0.0;
  double transfer = 0.0;
  double slowest = -1.0;
  int binding = 0;
  for (std::size_t i = 0; i < g.count; ++i) {
    const GroupLevel& level = g.level[i];
    if (level.ranks == 1) continue;
    const double hops = 2.0 * static_cast<double>(level.ranks - 1);
    const double phase = hops / static_cast<double>(level.ranks) * payload /
                         (level.bandwidth * static_cast<double>(level.below));
    latency += hops * level.latency;
    transfer += phase;
    if (phase > slowest) {
      slowest = phase;
      binding = static_cast<int>(i);
    }
  }
  return cost_of(latency, transfer, binding);
}

CollectiveCost all_reduce(double payload, const GroupLevels& g, AllReduceAlgorithms algorithms) {
  CollectiveCost best = ring(Collective::kAllReduce, payload, g);
  const auto consider = [&best](const CollectiveCost& other) {
    if (other.time() < best.time()) best = other;
  };
  consider(tree(payload, g));
  if (algorithms == AllReduceAlgorithms::kHierarchical) consider(hierarchical(payload, g));
  return best;
}

CollectiveCost all_to_all(double payload, const GroupLevels& g) {
  const double n = g.ranks;
  double slowest = 0.0;
  double latency = 0.0;
  int binding = 0;
  for (std::size_t i = 0; i < g.count; ++i) {
    if (g.level[i].ranks == 1) continue;
    const int below = g.level[i].below;
    const int joined = i + 1 < g.count ? std::max(below, g.level[i + 1].below) : g.ranks;
    latency += static_cast<double>(joined - below) * g.level[i].latency;
    // Above the node all that leaves a unit passes its uplinks, wherever it goes.
    const int peers = i == 0 ? std::max(joined, g.level[0].ranks) - 1 : g.ranks - below;
    const double part = static_cast<double>(peers) / n * payload / g.level[i].bandwidth;
    if (part > slowest) {
      slowest = part;
      binding = static_cast<int>(i);
    }
  }
  return cost_of(latency, slowest, binding);
}

CollectiveCost send_recv(double payload, const GroupLevels& g) {
  std::size_t top = g.count - 1;
  while (top > 0 && g.level[top].ranks == 1) --top;
  return cost_of(g.level[top].latency, payload / g.level[top].bandwidth, static_cast<int>(top));
}

CollectiveCost fastest(Collective op, double payload, const GroupLevels& g,
                       AllReduceAlgorithms algorithms) {
  switch (op) {
    case Collective::kAllReduce:
      return all_reduce(payload, g, algorithms);
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kBroadcast:
      return ring(op, payload, g);
    case Collective::kAllToAll:
      return all_to_all(payload, g);
    case Collective::kSendRecv:
      return send_recv(payload, g);
  }
  contract_violated("EXPECTS", "op is a Collective", __FILE__, __LINE__);
}

struct LinkUse {
  Seconds launch;            ///< of the slowest level that the group spans
  bool low_protocol = true;  ///< every such level has one
};

LinkUse link_use(const CollectiveCall& call, const CollectiveParameters& parameters) {
  LinkUse use;
  for (std::size_t i = 0; i < call.group.per_level.size(); ++i) {
    if (call.group.per_level[i] == 1) continue;
    const LinkParameters& link = parameters.level[i][static_cast<std::size_t>(call.op)];
    use.launch = std::max(use.launch, link.launch);
    use.low_protocol = use.low_protocol && link.low_share > 0.0;
  }
  return use;
}

}  // namespace

double wire_factor(Collective op, int ranks) {
  EXPECTS(ranks >= 1);
  if (ranks == 1) return 0.0;
  const double n = ranks;
  switch (op) {
    case Collective::kAllReduce:
      return 2.0 * (n - 1.0) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1.0) / n;
    case Collective::kSendRecv:
    case Collective::kBroadcast:
      return 1.0;
  }
  contract_violated("EXPECTS", "op is a Collective", __FILE__, __LINE__);
}

double ring_steps(Collective op, int ranks) {
  EXPECTS(ranks >= 1);
  if (ranks == 1) return 0.0;
  const double n = ranks;
  switch (op) {
    case Collective::kAllReduce:
      return 2.0 * (n - 1.0);
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kBroadcast:
      return n - 1.0;
    case Collective::kSendRecv:
      return 1.0;
  }
  contract_violated("EXPECTS", "op is a Collective", __FILE__, __LINE__);
}

std::string_view to_text(Collective op) {
  switch (op) {
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllToAll:
      return "all-to-all";
    case Collective::kSendRecv:
      return "send-receive";
    case Collective::kBroadcast:
      return "broadcast";
  }
  contract_violated("EXPECTS", "op is a Collective", __FILE__, __LINE__);
}

LinkParameters uniform_link(double share, Seconds launch, Seconds step) {
  LinkParameters link;
  link.launch = launch;
  link.step = step;
  link.share.fill(share);
  return link;
}

CollectiveParameters uniform_parameters(const LinkParameters& node, const LinkParameters& network) {
  CollectiveParameters out;
  out.level.front().fill(node);
  for (std::size_t i = 1; i < out.level.size(); ++i) out.level[i].fill(network);
  return out;
}

CollectiveParameters documented_collective_parameters(const NetworkView& view) {
  const bool pcie = view.topology == IntranodeTopology::kPcie;
  return uniform_parameters(uniform_link(pcie ? kPcieShare : kNodeShare, kLaunch, kStep),
                            uniform_link(kNetworkShare, kLaunch, kStep));
}

CollectiveCost collective_cost(const CollectiveCall& call, const NetworkView& view,
                               const CollectiveParameters& parameters) {
  EXPECTS(call.payload.value >= 0 && call.group.size >= 1);
  if (call.group.size == 1 || call.payload.value == 0) return {};
  EXPECTS(!call.group.per_level.empty() && call.group.per_level.size() <= view.levels.size());
  EXPECTS(view.levels.size() <= kMaxLevels);
  const auto payload = static_cast<double>(call.payload.value);
  const auto with = [&](Protocol protocol) {
    return fastest(call.op, payload, levels_of(call.op, call.group, view, parameters, protocol),
                   parameters.algorithms);
  };
  CollectiveCost out = with(Protocol::kSimple);
  const LinkUse use = link_use(call, parameters);
  if (use.low_protocol) {
    const CollectiveCost low = with(Protocol::kLow);
    if (low.time() < out.time()) out = low;
  }
  out.launch = use.launch;
  return out;
}

BytesPerSecond bus_bandwidth(Collective op, Bytes payload, int ranks, Seconds measured) {
  EXPECTS(measured.value > 0.0);
  return {wire_factor(op, ranks) * static_cast<double>(payload.value) / measured.value};
}

}  // namespace towtank
