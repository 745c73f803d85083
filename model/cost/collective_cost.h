// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long one collective takes on one process group, alone on its links.
///
///     t(n, S) = launch + sum over hops of (alpha_l + step_l) + wire(n) * S / beta
///
///   n        ranks in the group
///   S        payload as nccl-tests counts it: the whole buffer of an all-reduce, the gathered
///            buffer of an all-gather or reduce-scatter, one rank's buffer of an all-to-all [bytes]
///   alpha_l  latency of one hop at level l of the network                                 [s]
///   step_l   what the library's protocol adds to each hop                                 [s]
///   beta     bandwidth of the level that binds, one direction: hardware * share(ranks) [bytes/s]
///
///   ring                         hops        wire(n)
///   AllReduce                    2(n-1)      2(n-1)/n
///   AllGather, ReduceScatter      n-1         (n-1)/n
///   AllToAll                      n-1         (n-1)/n
///   SendRecv                      1           1
///   Broadcast                     n-1         1
///
/// A ring over a group with g ranks on each of w nodes (GroupShape) makes w (g-1) of its hops
/// inside nodes and the others between them; likewise for leaves and all levels above. A level's
/// Level::bandwidth is per device, so the r ranks of the group below one uplink of it drive r times
/// that together: with one rank a node a group has its own rail only, with half of a node's devices
/// half of its rails. Devices that are not in the group are busy with its siblings. In a node whose
/// devices are joined point to point (mesh) a device reaches p of the others through p/(slots-1) of
/// its links, taken as equal.
///
/// An all-reduce takes the fastest of what the library offers:
///   ring          beta = min over levels of r_l * bandwidth_l
///   tree          2 sum ceil(log2 p_l) hops for p_l = per_level[l]; wire 2 at the ring's beta
///   hierarchical  reduce-scatter in each level on the way up, all-gather on the way down: 2
///   (p_l-1)
///                 hops and wire 2 (p_l-1)/p_l of S/r_l at each level, one after the other. Only
///                 where AllReduceAlgorithms says so: NCCL has none
/// An all-to-all sends (n - r_l)/n of S through each level l above the node and (g-1)/n inside it,
/// all at once; the slowest binds. A SendRecv runs at the share of one device of the highest level
/// that its group spans: describe adjacent pipeline ranks by a GroupShape of size 2, and one shift
/// of a ring (context parallelism) by that of the ring.
///
/// Where the transport of a communicator binds and not the ports, a group gets no more than
/// group_limit through a node, while its siblings beside it get the same.
///
/// Small payloads may travel with a protocol of less latency and bandwidth (low_step, low_share);
/// the faster of the two counts.
///
/// A group that is smaller than the product of per_level lies unevenly; its emptiest node binds.
///
/// Sources: nccl-tests doc/PERFORMANCE.md (wire); Thakur et al., IJHPCA 19(1), 2005 (steps, trees);
/// NCCL src/graph/tuning.cc (hops by level, tree at half the bandwidth). In-network reduction
/// (NVLS) is a larger share of groups of many ranks, where it was measured. Not modelled: SHARP;
/// contention is sim/'s job.
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "model/cost/cost_model.h"

namespace towtank {

/// Bytes that cross the binding link per byte of payload. Pre: ranks >= 1. One rank: 0.
[[nodiscard]] double wire_factor(Collective op, int ranks);
/// Hops one after the other in a ring. Pre: ranks >= 1. One rank: 0.
[[nodiscard]] double ring_steps(Collective op, int ranks);
/// "all-reduce", "all-gather", ...
[[nodiscard]] std::string_view to_text(Collective op);

/// What the communication library can choose from for an all-reduce.
enum class AllReduceAlgorithms {
  kRingAndTree,   ///< NCCL
  kHierarchical,  ///< also reduce-scatter inside, all-reduce across, all-gather inside
};

/// What one fabric reaches at one level of a network, for one collective.
struct LinkParameters {
  /// Ranks beyond have the share of the last.
  static constexpr int kMostRanks = 16;
  Seconds launch;          ///< per call; that of the slowest level of a group counts
  Seconds step;            ///< per hop, on top of the level's latency
  double low_share = 0.0;  ///< of the bandwidth with the low-latency protocol; 0: it has none
  Seconds low_step;        ///< per hop with it
  /// What one group gets through one unit of the level below (a node), however many of its ranks
  /// are there: less than one port where the library's transport binds. nullopt: what they drive.
  std::optional<BytesPerSecond> group_limit;
  /// Of the hardware rate, by ranks of the group at this level (units of the level below); in a
  /// mesh of the rate of the links to them, so that two links to one peer may give more than 1.
  std::array<double, kMostRanks + 1> share{};
  [[nodiscard]] double share_of(int ranks) const {
    return share[static_cast<std::size_t>(ranks < kMostRanks ? ranks : kMostRanks)];
  }
};

/// Fitted by calibration, documented defaults until then.
struct CollectiveParameters {
  static constexpr std::size_t kMostLevels = 8;
  using ByCollective = std::array<LinkParameters, kCollectiveCount>;
  std::array<ByCollective, kMostLevels> level;  ///< by level of a NetworkView
  AllReduceAlgorithms algorithms = AllReduceAlgorithms::kRingAndTree;
};
/// One link for every collective, level and number of ranks.
[[nodiscard]] LinkParameters uniform_link(double share, Seconds launch, Seconds step);
[[nodiscard]] CollectiveParameters uniform_parameters(const LinkParameters& node,
                                                      const LinkParameters& network);
/// Documented values for uncalibrated machines, with their sources in the .cpp.
[[nodiscard]] CollectiveParameters documented_collective_parameters(const NetworkView&);

/// Zero for one rank and for an empty payload. Monotone in payload.
/// Pre: payload >= 0; no more levels in the group than in the view, all levels with bandwidth > 0.
[[nodiscard]] CollectiveCost collective_cost(const CollectiveCall&, const NetworkView&,
                                             const CollectiveParameters&);

/// The busbw column that nccl-tests would print for a measured time. Pre: measured > 0.
[[nodiscard]] BytesPerSecond bus_bandwidth(Collective op, Bytes payload, int ranks,
                                           Seconds measured);

}  // namespace towtank
