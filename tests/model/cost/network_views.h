// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small networks and groups for tests of collectives, in numbers that a reader can multiply.
#include <cstddef>
#include <string>
#include <vector>

#include "model/cost/collective_cost.h"

namespace towtank::testing {

inline constexpr std::int64_t kGigabyte = 1'000'000'000;

struct LevelNumbers {
  int joins;         ///< units of the level below
  double bandwidth;  ///< bytes/s of one device
  double latency;    ///< s
};

/// A view whose level l joins `joins` units of the level below; the last joins all devices.
[[nodiscard]] inline NetworkView view_of(const std::vector<LevelNumbers>& numbers) {
  NetworkView view;
  int group = 1;
  for (const LevelNumbers& n : numbers) {
    group *= n.joins;
    NetworkView::Level level;
    level.name = view.levels.empty() ? "intranode" : "level " + std::to_string(view.levels.size());
    level.group = group;
    level.bandwidth = {n.bandwidth};
    level.latency = {n.latency};
    view.levels.push_back(level);
  }
  view.devices = group;
  view.devices_per_node = numbers.front().joins;
  view.node_slots = numbers.front().joins;
  return view;
}

[[nodiscard]] inline GroupShape shape_of(std::vector<int> per_level) {
  GroupShape shape;
  for (const int ranks : per_level) shape.size *= ranks;
  shape.per_level = std::move(per_level);
  return shape;
}

/// Every link reaches its hardware rate and nothing costs time but hops and bytes.
[[nodiscard]] inline CollectiveParameters hardware_rates() {
  const LinkParameters link = uniform_link(1.0, {0.0}, {0.0});
  return uniform_parameters(link, link);
}

/// Bus bandwidth in GB/s that nccl-tests would print for a predicted call.
[[nodiscard]] inline double predicted_bus(Collective op, std::int64_t payload,
                                          const GroupShape& group, const NetworkView& view,
                                          const CollectiveParameters& parameters) {
  const CollectiveCost cost = collective_cost({op, {payload}, group}, view, parameters);
  return bus_bandwidth(op, {payload}, group.size, cost.time()).value / 1e9;
}

}  // namespace towtank::testing
