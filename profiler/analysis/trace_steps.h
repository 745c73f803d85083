// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where the steps of a trace begin and end, and what their time is spent on.
///
/// A step's window runs from its first device event to that of the next step, or to its own last
/// one where none follows. Device events belong to the step in which they were launched; those
/// before the first one whose launch was recorded are older than the capture, and left out. Without
/// device events the window is that of the host.
///
///   steps from           how
///   annotations          ProfilerStep#N, or annotations of the name that the user gives
///   repetition           kernels whose names repeat with one period, three times or more; a step
///                        begins behind the longest mean pause. What precedes the first and follows
///                        the last whole period is left out
///   whole trace          none of these: one window from the first to the last device event
///
/// Of a window, in ns, each summing to its length:
///
///   compute          some kernel that is no collective runs
///   exposed_comm     a collective runs, and no such kernel
///   exposed_copy     a copy or fill runs, and nothing of the above
///   idle             the rest
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/trace_joins.h"
#include "profiler/trace.h"

namespace towtank {

enum class StepSource : std::uint8_t { kAnnotations, kRepetition, kWholeTrace };

struct StepTimes {
  std::int64_t compute_ns = 0, exposed_comm_ns = 0, exposed_copy_ns = 0, idle_ns = 0;
  std::int64_t comm_ns = 0;  ///< collectives in all, hidden or not
};

struct TraceStep {
  std::string name;
  std::int64_t host_begin_ns = 0, host_end_ns = 0;  ///< of the annotation; equal: none
  std::int64_t begin_ns = 0, end_ns = 0;            ///< the window
  std::vector<std::int32_t> events;                 ///< device events, by start
  StepTimes times;

  [[nodiscard]] std::int64_t length_ns() const { return end_ns - begin_ns; }
};

struct TraceSteps {
  StepSource source = StepSource::kWholeTrace;
  std::vector<TraceStep> steps;
  long events_outside = 0;  ///< device events that belong to no step
};

/// `marker`: annotations whose name begins so are steps; empty: "ProfilerStep#".
/// `is_collective`: by event.
[[nodiscard]] TraceSteps find_steps(const Trace&, const TraceJoins&,
                                    const std::vector<bool>& is_collective,
                                    const std::string& marker);

/// The period of a sequence, and where its first whole one begins: some element that recurs after
/// every `period` others, with nine tenths of all elements repeating. 0: none with three periods.
struct Period {
  std::size_t length = 0, first = 0, count = 0;
};
[[nodiscard]] Period period_of(const std::vector<std::int32_t>& sequence);

}  // namespace towtank
