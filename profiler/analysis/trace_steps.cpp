// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_steps.h"

#include <algorithm>
#include <map>

#include "profiler/analysis/intervals.h"

namespace towtank {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::size_t kLeastPeriods = 3;
/// Share of elements that must recur one period later.
constexpr double kLeastAlike = 0.9;
/// Elements that are tried as landmarks, rarest first.
constexpr std::size_t kLandmarks = 24;
/// A step follows another if no more than this share of its length lies between them.
constexpr double kLongestPause = 0.05;

const TraceEvent& at(const Trace& trace, std::int32_t event) {
  return trace.events[static_cast<std::size_t>(event)];
}

std::vector<std::int32_t> device_events(const Trace& trace) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (on_device(trace.events[i].category)) out.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

std::int64_t last_end(const Trace& trace, const std::vector<std::int32_t>& events) {
  std::int64_t out = at(trace, events.front()).end_ns();
  for (const std::int32_t e : events) out = std::max(out, at(trace, e).end_ns());
  return out;
}

std::vector<TraceStep> annotated(const Trace& trace, std::string_view marker) {
  std::vector<TraceStep> out;
  for (const TraceEvent& e : trace.events) {
    if (e.category != TraceCategory::kAnnotation || !trace.name_of(e).starts_with(marker)) continue;
    // Inside of another one: the same range, marked twice.
    if (!out.empty() && e.start_ns < out.back().host_end_ns) continue;
    TraceStep& step = out.emplace_back();
    step.name = trace.name_of(e);
    step.host_begin_ns = e.start_ns;
    step.host_end_ns = e.end_ns();
  }
  return out;
}

/// Gives device events to the steps in which they were launched.
void share_out(const Trace& trace, const TraceJoins& joins, TraceSteps& out) {
  const std::vector<std::int32_t> events = device_events(trace);
  // What runs before the first event whose launch is recorded was launched before the capture.
  const auto first = std::find_if(events.begin(), events.end(), [&](std::int32_t e) {
    return joins.launch[static_cast<std::size_t>(e)] >= 0;
  });
  if (first != events.end()) out.events_outside += static_cast<long>(first - events.begin());
  for (auto next = first == events.end() ? events.begin() : first; next != events.end(); ++next) {
    const std::int32_t e = *next;
    const std::int32_t launch = joins.launch[static_cast<std::size_t>(e)];
    const std::int64_t when = at(trace, launch >= 0 ? launch : e).start_ns;
    const auto after =
        std::upper_bound(out.steps.begin(), out.steps.end(), when,
                         [](std::int64_t t, const TraceStep& s) { return t < s.host_begin_ns; });
    const bool inside = after != out.steps.begin() && when < std::prev(after)->host_end_ns;
    if (inside) {
      std::prev(after)->events.push_back(e);
    } else {
      ++out.events_outside;
    }
  }
}

void set_windows(const Trace& trace, std::vector<TraceStep>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TraceStep& step = steps[i];
    if (step.events.empty()) {
      step.begin_ns = step.host_begin_ns;
      step.end_ns = step.host_end_ns;
      continue;
    }
    step.begin_ns = at(trace, step.events.front()).start_ns;
    step.end_ns = last_end(trace, step.events);
    if (i + 1 == steps.size() || steps[i + 1].events.empty()) continue;
    const double pause = static_cast<double>(steps[i + 1].host_begin_ns - step.host_end_ns);
    const auto length = static_cast<double>(step.host_end_ns - step.host_begin_ns);
    const std::int64_t next = at(trace, steps[i + 1].events.front()).start_ns;
    if (pause <= kLongestPause * length && next > step.begin_ns) step.end_ns = next;
  }
}

/// Steps without device work, where others have it: warm-up of the profiler, or a cut-off end.
void drop_empty(std::vector<TraceStep>& steps) {
  const bool any =
      std::any_of(steps.begin(), steps.end(), [](const TraceStep& s) { return !s.events.empty(); });
  if (any) std::erase_if(steps, [](const TraceStep& s) { return s.events.empty(); });
}

std::vector<TraceStep> repeated(const Trace& trace, TraceSteps& out) {
  const std::vector<std::int32_t> events = device_events(trace);
  std::vector<std::int32_t> names;
  for (const std::int32_t e : events) names.push_back(at(trace, e).name);
  const Period period = period_of(names);
  std::vector<TraceStep> steps;
  if (period.count < kLeastPeriods) return steps;
  // The phase whose pauses before it are the longest.
  std::size_t best = 0;
  std::int64_t longest = -1;
  for (std::size_t phase = 0; phase < period.length; ++phase) {
    std::int64_t pause = 0;
    for (std::size_t k = 0; k + 1 < period.count; ++k) {
      const std::size_t i = period.first + phase + k * period.length;
      if (i == 0 || i >= events.size()) continue;
      pause += std::max<std::int64_t>(
          0, at(trace, events[i]).start_ns - at(trace, events[i - 1]).end_ns());
    }
    if (pause > longest) {
      longest = pause;
      best = phase;
    }
  }
  std::size_t begin = period.first + best;
  if (begin >= period.length) begin -= period.length;
  out.events_outside = static_cast<long>(begin);
  for (; begin + period.length <= events.size(); begin += period.length) {
    TraceStep& step = steps.emplace_back();
    step.name = "repetition " + std::to_string(steps.size());
    const auto first = events.begin() + static_cast<std::ptrdiff_t>(begin);
    step.events.assign(first, first + static_cast<std::ptrdiff_t>(period.length));
    step.begin_ns = at(trace, step.events.front()).start_ns;
    step.end_ns = begin + period.length < events.size()
                      ? at(trace, events[begin + period.length]).start_ns
                      : last_end(trace, step.events);
  }
  out.events_outside += static_cast<long>(events.size() - begin);
  return steps;
}

TraceStep whole(const Trace& trace) {
  TraceStep step;
  step.name = "whole trace";
  step.events = device_events(trace);
  if (!step.events.empty()) {
    step.begin_ns = at(trace, step.events.front()).start_ns;
    step.end_ns = last_end(trace, step.events);
  } else if (!trace.events.empty()) {
    step.begin_ns = step.end_ns = trace.events.front().start_ns;
    for (const TraceEvent& e : trace.events) step.end_ns = std::max(step.end_ns, e.end_ns());
  }
  return step;
}

StepTimes times_of(const Trace& trace, const TraceStep& step,
                   const std::vector<bool>& is_collective) {
  std::vector<TimeSpan> compute, comm, copy;
  for (const std::int32_t e : step.events) {
    const TraceEvent& event = at(trace, e);
    const TimeSpan span{std::max(event.start_ns, step.begin_ns),
                        std::min(event.end_ns(), step.end_ns)};
    const bool collective = is_collective[static_cast<std::size_t>(e)];
    (collective ? comm : event.category == TraceCategory::kKernel ? compute : copy).push_back(span);
  }
  const TimeSet computing(std::move(compute)), communicating(std::move(comm)),
      copying(std::move(copy));
  const TimeSet both = computing.joined(communicating);
  const TimeSet all = both.joined(copying);
  StepTimes out;
  out.compute_ns = computing.length();
  out.comm_ns = communicating.length();
  out.exposed_comm_ns = both.length() - computing.length();
  out.exposed_copy_ns = all.length() - both.length();
  out.idle_ns = step.length_ns() - all.length();
  return out;
}

}  // namespace

Period period_of(const std::vector<std::int32_t>& sequence) {
  std::map<std::int32_t, std::vector<std::size_t>> where;
  for (std::size_t i = 0; i < sequence.size(); ++i) where[sequence[i]].push_back(i);
  std::vector<const std::vector<std::size_t>*> landmarks;
  for (const auto& [element, places] : where) {
    if (places.size() >= kLeastPeriods) landmarks.push_back(&places);
  }
  std::stable_sort(landmarks.begin(), landmarks.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  if (landmarks.size() > kLandmarks) landmarks.resize(kLandmarks);
  for (const auto* places : landmarks) {
    const std::size_t length = (*places)[1] - (*places)[0];
    bool regular = length * kLeastPeriods <= sequence.size();
    for (std::size_t k = 1; k < places->size() && regular; ++k) {
      regular = (*places)[k] - (*places)[k - 1] == length;
    }
    if (!regular) continue;
    std::size_t alike = 0;
    for (std::size_t i = 0; i + length < sequence.size(); ++i) {
      if (sequence[i] == sequence[i + length]) ++alike;
    }
    if (static_cast<double>(alike) < kLeastAlike * static_cast<double>(sequence.size() - length)) {
      continue;
    }
    return {length, places->front() % length, sequence.size() / length};
  }
  return {};
}

TraceSteps find_steps(const Trace& trace, const TraceJoins& joins,
                      const std::vector<bool>& is_collective, const std::string& marker) {
  TraceSteps out;
  out.steps = annotated(trace, marker.empty() ? kProfilerStep : std::string_view(marker));
  if (!out.steps.empty()) {
    out.source = StepSource::kAnnotations;
    share_out(trace, joins, out);
    set_windows(trace, out.steps);
    drop_empty(out.steps);
  } else if (out.steps = repeated(trace, out); !out.steps.empty()) {
    out.source = StepSource::kRepetition;
  } else {
    out.steps.push_back(whole(trace));
    out.events_outside = 0;
  }
  for (TraceStep& step : out.steps) step.times = times_of(trace, step, is_collective);
  return out;
}

}  // namespace towtank
