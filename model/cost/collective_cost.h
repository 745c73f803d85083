// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long one collective takes on one process group, alone on its links.
///
///     t(n, S) = launch + steps(n) * alpha + wire(n) * S / beta
///
///   n      ranks in the group
///   S      payload as nccl-tests counts it                                     [bytes]
///   alpha  latency of one hop of the slowest level that the group spans        [s]
///   beta   bandwidth of a level, one direction, per device                     [bytes/s]
///
///   ring                         steps(n)    wire(n)
///   AllReduce                    2(n-1)      2(n-1)/n
///   AllGather, ReduceScatter      n-1         (n-1)/n
///   AllToAll                      n-1         (n-1)/n
///   SendRecv                      1           1
///   Broadcast                     n-1         1
///
/// A group with g ranks on each of w nodes (GroupShape) takes the best of:
///   ring          every byte crosses the slowest level, at that level's bandwidth times the g
///                 rails its ranks in a node drive together
///   tree          all-reduce: 2 log2(n) steps, same wire (small payloads)
///   hierarchical  reduce-scatter inside, all-reduce of S/g across, all-gather inside
/// An all-to-all moves (g w - g)/n of S between nodes and the rest inside, at once.
///
/// Sources: nccl-tests doc/PERFORMANCE.md (wire); Thakur et al., IJHPCA 19(1), 2005 (steps, trees);
/// NCCL rail-optimised rings. Not modelled: in-network reduction; contention is sim/'s job.
#include <string_view>

#include "model/cost/cost_model.h"

namespace towtank {

[[nodiscard]] double wire_factor(Collective op, int ranks);
[[nodiscard]] double ring_steps(Collective op, int ranks);
[[nodiscard]] std::string_view to_text(Collective op);

/// What a fabric reaches of its hardware rate, and what a launch costs; fitted by calibration,
/// documented defaults until then.
struct CollectiveParameters {
  double intranode_efficiency;   ///< (0, 1]
  double internode_efficiency;   ///< (0, 1]
  Seconds launch;                ///< per collective call
};
/// Documented values for uncalibrated machines, with their sources in the .cpp.
[[nodiscard]] CollectiveParameters documented_collective_parameters();

[[nodiscard]] CollectiveCost collective_cost(const CollectiveCall&, const NetworkView&,
                                             const CollectiveParameters&);

/// The busbw column that nccl-tests would print for a measured time.
[[nodiscard]] BytesPerSecond bus_bandwidth(Collective op, Bytes payload, int ranks,
                                           Seconds measured);

}  // namespace towtank
