// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which shared links the actors of a plan load, folded before anything is built.
///
/// A unit of level l is what hangs below one uplink of it: a device (l = 0), the devices of a node
/// that share a network port, its rail (1), a leaf (2), ... with up and down links of the hardware
/// rate, devices * bandwidth_l. Units with the same numbers of devices of the same actors, sending
/// to the same places, carry the same load at the same times: one pair of links stands for all of
/// them, but for units that stand apart because others load them too.
///
/// Links are shared fairly by flow, so an actor's flows must weigh as the ranks that it stands for:
/// where replicas are folded apart (ranks_per_flow > 0), a unit with the ranks of k replicas gets k
/// equal flows; where all are folded together, one, for every communication alike.
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/detail/communication.h"
#include "sim/task_graph.h"

namespace towtank::detail {

/// Where the ranks of a plan lie, and who they belong to.
struct RankLayout {
  std::vector<int> device;  ///< by rank
  std::vector<int> actor;   ///< by rank
  std::vector<int>
      next;  ///< rank that receives the activations of a rank; itself without a pipeline
};

/// The units of one level.
struct UnitLevel {
  std::string name;     ///< "device", "node", "leaf", ...
  int size = 1;         ///< devices of one unit
  int rails = 1;        ///< units of one node: "node 3 rail 0"
  double capacity = 0;  ///< bytes/s, one direction
};
/// By level of the problem's view. A node whose ports do not divide among its devices is one unit.
[[nodiscard]] std::vector<UnitLevel> unit_levels(const PlanProblem&);
/// "device 12", "node 3 rail 0", "leaf 1": its links are named so, with " up" or " down" behind.
[[nodiscard]] std::string unit_name(const UnitLevel&, int unit);

/// Units that are never one with others, by level.
using UnitsApart = std::vector<std::set<int>>;

class Units {
 public:
  /// Adds links to the network. `apart` is empty, or has every level of the view.
  Units(const PlanProblem&, const RankLayout&, int actors, int ranks_per_flow,
        const UnitsApart& apart, Network& network);

  /// Of a collective of one or several actors, all their devices taking part.
  [[nodiscard]] std::vector<Flow> collective(const Communication&,
                                             std::span<const std::int32_t> actors);
  /// From the devices of an actor to their peers in the next pipeline rank, or back.
  [[nodiscard]] std::vector<Flow> send(const Communication&, std::int32_t from, std::int32_t to,
                                       bool forward);

 private:
  struct Touch {
    int unit = 0;     ///< class
    int devices = 0;  ///< of the actor
    int to_next = 0;  ///< whose traffic to the next pipeline rank passes this unit's links
    int to_previous = 0;
  };
  struct UnitClass {
    std::int32_t up = 0, down = 0;
  };
  void add_level(const RankLayout&, int level, const UnitLevel&, const std::set<int>& apart,
                 int actors);
  [[nodiscard]] std::int32_t route(std::vector<std::int32_t> links);

  void add_flows(int devices, double bytes, double transfer, std::int32_t route,
                 std::vector<Flow>& flows) const;

  Network* network_;
  int ranks_per_flow_, node_;
  std::vector<UnitClass> classes_;
  std::vector<std::vector<std::vector<Touch>>> touched_;  ///< by level, actor
  std::map<std::vector<std::int32_t>, std::int32_t> routes_;
};

}  // namespace towtank::detail
