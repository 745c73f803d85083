// SPDX-License-Identifier: Apache-2.0
#pragma once
/// An allocation as a platform file that stock SimGrid (3.32 and later) reads, unfolded: the same
/// units and capacities that simulate() shares.
///
///   host    a device; speed is its dense peak in the widest precision that trains (bf16, else
///   fp16,
///           else fp32), properties hold its kind and memory
///   router  what joins devices in a node, the network ports of a node (rails), leaves, spines,
///   sites link    the way out of a unit and the way into it (SPLITDUPLEX), hardware rates,
///   latencies such
///           that a path through level l takes that level's latency in all
///
/// One zone with Dijkstra routing, which prefers few links: inside a node through its fabric,
/// between nodes through a device's own rail. From the device to its rail nothing binds.
///
/// SimGrid's defaults (LV08) change bandwidths and latencies: run with network/model:CM02,
/// network/crosstraffic:0, network/TCP-gamma:0; the file's first lines say so. Not in the file:
/// what a collective reaches of these rates.
#include <string>

#include "placement/evaluator.h"

namespace towtank {

/// `origin` stands in a comment: how the file was made.
[[nodiscard]] std::string simgrid_xml(const PlanProblem&, const std::string& origin);

}  // namespace towtank
