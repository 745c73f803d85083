// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When the tasks of a graph run if they share links: the worker towtank-sim asked through pipes.
///
/// The worker stands beside the running program, or where the environment variable TOWTANK_SIM
/// says. One worker runs one simulation at a time, each in a process of its own; simulate_all keeps
/// `parallel` of them busy and returns results in the order of the jobs, whatever finishes first.
///
/// Without contention every flow has its links to itself, and the times are those of longest_path.
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/longest_path.h"
#include "sim/task_graph.h"

namespace towtank {

struct SimulateOptions {
  bool contention = true;
  int parallel = 1;    ///< workers at once; >= 1
  std::string worker;  ///< path of towtank-sim; empty: find_worker()
};

/// Why a simulation has no result: no worker, or it broke.
struct SimulationFault {
  std::string problem;
};
using SimulationResult = std::variant<TaskTimes, SimulationFault>;

/// One simulation to run. Refers to what the caller keeps alive.
struct SimulationJob {
  const TaskGraph* tasks = nullptr;
  const Network* network = nullptr;
};

/// Path of the worker; empty if there is none.
[[nodiscard]] std::string find_worker();

/// What simulate would answer for want of a worker; nothing if there is one.
[[nodiscard]] std::optional<SimulationFault> missing_worker(const SimulateOptions& = {});

[[nodiscard]] SimulationResult simulate(const TaskGraph&, const Network&,
                                        const SimulateOptions& = {});
[[nodiscard]] std::vector<SimulationResult> simulate_all(std::span<const SimulationJob>,
                                                         const SimulateOptions& = {});

}  // namespace towtank
