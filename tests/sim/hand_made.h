// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Task graphs and networks written out by hand, and run by the worker.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/simulate.h"

#define NEEDS_WORKER()                                                  \
  if (find_worker().empty()) {                                          \
    GTEST_SKIP() << "towtank-sim is not built: install libsimgrid-dev"; \
  }

namespace towtank::testing::sim {

/// A network of links and tasks that start together, written out by hand.
class HandMade {
 public:
  std::int32_t link(double capacity) {
    network.links.push_back({"link", 1, true, capacity, 1});
    return static_cast<std::int32_t>(network.links.size()) - 1;
  }
  std::int32_t route(std::vector<std::int32_t> links) {
    network.routes.push_back(std::move(links));
    return static_cast<std::int32_t>(network.routes.size()) - 1;
  }
  /// A communication of one flow: `bytes` at `rate` alone, after `latency`.
  std::int32_t flow(double bytes, double rate, std::int32_t on, double latency = 0) {
    const std::vector<Flow> flows{{bytes, rate, on}};
    Task t;
    t.kind = TaskKind::kCommunication;
    t.duration = latency;
    t.transfer = bytes / rate;
    t.first_flow = builder.add_flows(flows);
    t.flows = 1;
    return builder.add(t, std::vector<std::int32_t>{0});
  }
  TaskTimes run(bool contention = true) {
    graph = std::move(builder).build();
    SimulateOptions options;
    options.contention = contention;
    const SimulationResult result = simulate(graph, network, options);
    if (const auto* fault = std::get_if<SimulationFault>(&result)) {
      ADD_FAILURE() << fault->problem;
      return longest_path(graph);
    }
    return std::get<TaskTimes>(result);
  }

  TaskGraphBuilder builder;
  TaskGraph graph;
  Network network;
};

}  // namespace towtank::testing::sim
