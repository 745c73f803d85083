// SPDX-License-Identifier: Apache-2.0
#include "sim/longest_path.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {

double TaskTimes::makespan() const {
  return end.empty() ? 0.0 : *std::max_element(end.begin(), end.end());
}

TaskTimes longest_path(const TaskGraph& graph) {
  const std::size_t n = graph.tasks.size();
  TaskTimes times{std::vector<double>(n, 0.0), std::vector<double>(n, 0.0)};
  std::vector<std::int32_t> waiting = graph.predecessors;
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t task = ready.back();
    ready.pop_back();
    ++done;
    times.end[task] = times.start[task] + graph.tasks[task].lone();
    for (const std::int32_t next : graph.after(task)) {
      const auto at = static_cast<std::size_t>(next);
      times.start[at] = std::max(times.start[at], times.end[task]);
      if (--waiting[at] == 0) ready.push_back(at);
    }
  }
  EXPECTS(done == n);
  return times;
}

}  // namespace towtank
