// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A communication as simulation needs it: its time alone, from the same CostModel call that the
/// closed form makes, and what it sends through each level of the network while it transfers.
///
///     bytes that one device sends through level l
///       ring (and tree)  wire(n) S / r_l       r_l ranks of the group below one uplink of level l
///       all-to-all       (n - r_l) / n S above the node, (g - 1) / n S inside it (g =
///       per_level[0]) send             S
///     at most transfer * bandwidth_l: a communication that was measured to reach a rate alone can
///     carry it
///
/// wire(n) and r_l as in model/cost/collective_cost.h. A tree is loaded as a ring: 2 (n-1)/n S
/// where it moves up to 2 S. Levels are loaded apart: a flow that one level holds up goes on
/// through the others.
#include <array>
#include <vector>

#include "placement/evaluator.h"

namespace towtank::detail {

inline constexpr std::size_t kMaxLevels = 8;  ///< of a NetworkView

struct Communication {
  double latency = 0;   ///< s: launch and hops
  double transfer = 0;  ///< s
  std::array<double, kMaxLevels> load{};

  [[nodiscard]] double time() const { return latency + transfer; }
  /// One after the other as one: the mean rate of both.
  void add(const Communication& other, double times = 1);
};
[[nodiscard]] Communication scaled(const Communication&, double factor);

/// Zero for one rank or no bytes.
[[nodiscard]] Communication collective_of(const PlanProblem&, Collective, Bytes payload,
                                          const GroupShape&);
/// The same in `calls` equal calls.
[[nodiscard]] Communication collective_in_calls(const PlanProblem&, Collective, double bytes,
                                                const GroupShape&, int calls);
/// Between peers of two pipeline ranks; which levels it passes is the units' question.
[[nodiscard]] Communication send_of(const PlanProblem&, Bytes payload, const GroupShape& pair);
/// The group has ranks in several nodes.
[[nodiscard]] bool leaves_node(const GroupShape&);

}  // namespace towtank::detail
