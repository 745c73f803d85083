// SPDX-License-Identifier: Apache-2.0
#include "sim/step_result.h"

#include <algorithm>
#include <numeric>

#include "core/contracts.h"

namespace towtank {
namespace {

/// For each task the predecessor that ends last; -1 if it has none.
std::vector<std::int32_t> last_predecessors(const TaskGraph& graph, const TaskTimes& times) {
  std::vector<std::int32_t> last(graph.tasks.size(), -1);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const std::int32_t next : graph.after(t)) {
      std::int32_t& known = last[static_cast<std::size_t>(next)];
      if (known < 0 || times.end[static_cast<std::size_t>(known)] < times.end[t]) {
        known = static_cast<std::int32_t>(t);
      }
    }
  }
  return last;
}

void add_critical(const TaskGraph& graph, StepResult& out) {
  const TaskTimes& times = out.times;
  if (times.end.empty()) return;
  const std::vector<std::int32_t> before = last_predecessors(graph, times);
  auto at = static_cast<std::int32_t>(std::max_element(times.end.begin(), times.end.end()) -
                                      times.end.begin());
  double until = times.end[static_cast<std::size_t>(at)];
  while (at >= 0) {
    const auto task = static_cast<std::size_t>(at);
    at = before[task];
    const double from = at >= 0 ? times.end[static_cast<std::size_t>(at)] : 0.0;
    add_components(graph, graph.tasks[task], until - from, out.critical);
    until = from;
  }
}

void add_links(const LoweredStep& step, StepResult& out) {
  std::vector<double> bytes(step.network.links.size(), 0.0);
  for (const Task& task : step.tasks.tasks) {
    for (const Flow& flow : step.tasks.flows_of(task)) {
      for (const std::int32_t link : step.network.routes[static_cast<std::size_t>(flow.route)]) {
        bytes[static_cast<std::size_t>(link)] += flow.bytes;
      }
    }
  }
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    if (bytes[l] <= 0) continue;
    out.links.push_back({static_cast<std::int32_t>(l), bytes[l],
                         bytes[l] / (step.network.links[l].capacity * out.step_time.value)});
  }
  std::stable_sort(out.links.begin(), out.links.end(), [](const LinkUse& a, const LinkUse& b) {
    return a.utilisation > b.utilisation;
  });
}

using Interval = std::pair<double, double>;

double covered(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  double total = 0;
  double until = 0;
  for (const auto& [start, end] : intervals) {
    total += std::max(0.0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return total;
}

void add_actors(const TaskGraph& graph, StepResult& out) {
  std::vector<std::array<std::vector<Interval>, kStreamCount>> runs(graph.actors.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.kind == TaskKind::kDelay) continue;
    for (const std::int32_t actor : graph.members_of(task)) {
      runs[static_cast<std::size_t>(actor)][static_cast<std::size_t>(task.stream)].emplace_back(
          out.times.start[t], out.times.end[t]);
    }
  }
  for (auto& streams : runs) {
    ActorUse& use = out.actors.emplace_back();
    for (std::size_t s = 0; s < kStreamCount; ++s) use.stream_busy[s] = covered(streams[s]);
    use.busy = use.stream_busy[static_cast<std::size_t>(Stream::kCompute)];
    use.idle = out.step_time.value - use.busy;
  }
}

}  // namespace

void add_components(const TaskGraph& graph, const Task& task, double time,
                    std::array<double, kComponentCount>& out) {
  if (task.split >= 0) {
    const TimeSplit& split = graph.splits[static_cast<std::size_t>(task.split)];
    const double whole = std::accumulate(split.begin(), split.end(), 0.0);
    if (whole > 0) {
      for (std::size_t i = 0; i < kComponentCount; ++i) out[i] += split[i] / whole * time;
      return;
    }
  }
  out[static_cast<std::size_t>(task.component)] += time;
}

StepResult step_result(const LoweredStep& step, TaskTimes times) {
  EXPECTS(times.end.size() == step.tasks.tasks.size());
  StepResult out;
  out.times = std::move(times);
  out.step_time = {out.times.makespan()};
  out.contention = {out.step_time.value - longest_path(step.tasks).makespan()};
  add_critical(step.tasks, out);
  add_links(step, out);
  add_actors(step.tasks, out);
  return out;
}

}  // namespace towtank
