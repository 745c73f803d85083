// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When each task of a graph runs if every communication has its links to itself: the exact longest
/// path. The oracle of the simulation without contention, and what contention is counted from.
///
///     start(t) = max over predecessors of end;   end(t) = start(t) + duration + transfer
#include <vector>

#include "sim/task_graph.h"

namespace towtank {

struct TaskTimes {
  std::vector<double> start, end;  ///< s, by task
  [[nodiscard]] double makespan() const;
};

/// O(tasks + dependencies). Pre: the graph has no cycle.
[[nodiscard]] TaskTimes longest_path(const TaskGraph&);

}  // namespace towtank
