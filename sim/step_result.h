// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a simulated step comes to.
///
///   critical     time by component along one path of tasks, each of which ends where the next one
///                starts: sums to step_time
///   contention   step_time - the longest path of the same tasks, each alone on its links: >= 0
///   busy, idle   of an actor's compute stream: they sum to step_time
///   utilisation  bytes through a link / (capacity * step_time)
#include <array>
#include <vector>

#include "sim/longest_path.h"
#include "sim/lower.h"

namespace towtank {

struct LinkUse {
  std::int32_t link = 0;   ///< into Network::links
  double bytes = 0;        ///< through one copy
  double utilisation = 0;  ///< [0, 1]
};

struct ActorUse {
  double busy = 0, idle = 0;                       ///< s
  std::array<double, kStreamCount> stream_busy{};  ///< tasks of each stream, overlaps counted once
};

struct StepResult {
  Seconds step_time;
  Seconds contention;
  std::array<double, kComponentCount> critical{};  ///< s
  std::vector<LinkUse> links;                      ///< used ones, busiest first
  std::vector<ActorUse> actors;
  TaskTimes times;
};

/// Pre: the times are of this step's tasks.
[[nodiscard]] StepResult step_result(const LoweredStep&, TaskTimes times);

/// Time by component of one task: its split, scaled to how long it took.
void add_components(const TaskGraph&, const Task&, double time,
                    std::array<double, kComponentCount>& out);

}  // namespace towtank
