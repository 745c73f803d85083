// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which shared links the actors of a plan load, folded before anything is built.
///
/// A unit of level l is what hangs below one uplink of it: a device (l = 0), a node (1), a leaf
/// (2), ... with up and down links of the hardware rate, devices * bandwidth_l. Units with the same
/// numbers of devices of the same actors, sending to the same places, carry the same load at the
/// same times: one pair of links stands for all of them.
///
/// Links are shared fairly by flow, so an actor's flows must weigh as the ranks that it stands for:
/// where replicas are folded apart (ranks_per_flow > 0), a unit with the ranks of k replicas gets k
/// equal flows; where all are folded together, one, for every communication alike.
#include <map>
#include <span>
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

class Units {
 public:
  /// Adds links to the network.
  Units(const NetworkView&, const RankLayout&, int actors, int ranks_per_flow, Network& network);

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
  void add_level(const RankLayout&, int level, int size, int node, const std::string& name,
                 double capacity, int actors);
  [[nodiscard]] std::int32_t route(std::vector<std::int32_t> links);

  void add_flows(int devices, double bytes, double transfer, std::int32_t route,
                 std::vector<Flow>& flows) const;

  Network* network_;
  int ranks_per_flow_;
  std::vector<UnitClass> classes_;
  std::vector<std::vector<std::vector<Touch>>> touched_;  ///< by level, actor
  std::map<std::vector<std::int32_t>, std::int32_t> routes_;
};

}  // namespace towtank::detail
