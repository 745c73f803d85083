// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When each action of a schedule runs, if every action has a fixed duration and a hop between
/// stages on different ranks takes a fixed time: the exact longest path, one pass over the lists.
///
///     start(a) = max(end of the action before it on its rank, end of each dependency + hop)
///
/// Dependencies: F(m, g) after F(m, g-1); I or B(m, g) after F(m, g) and after I or B(m, g+1);
/// W(m, g) after I(m, g). A hop applies only when the two stages lie on different ranks. Cost
/// O(actions), about 5 ns each. Closed forms for equal stages are its oracles.
#include <span>
#include <vector>

#include "core/units.h"
#include "placement/schedule.h"

namespace towtank {

/// Durations of one stage (chunk) for one microbatch. B takes input_grad + weight_grad.
struct StageTime {
  Seconds forward, input_grad, weight_grad;
};

/// Hop times: into stage g from g-1 (forward) and into g from g+1 (backward), transfer included.
struct HopTime {
  Seconds forward, backward;
};

struct ScheduleTimes {
  Seconds makespan;
  std::vector<Seconds> rank_end;            ///< end of each rank's last action
  std::vector<Seconds> rank_busy;           ///< sum of its durations
  std::vector<Seconds> last_backward_start; ///< by stage: start of its last B (or I/W) action
  std::vector<Seconds> last_backward_end;   ///< by stage: when its gradients are complete
};

/// Works out the order on the fly; never materialises the schedule for the known kinds.
/// Pre: stages.size() = ranks * stages_per_rank; hops.size() = stages.size().
[[nodiscard]] ScheduleTimes schedule_times(ScheduleKind, const PipelineShape&,
                                           std::span<const StageTime> stages,
                                           std::span<const HopTime> hops);
/// The same for any order written by hand. Pre: find_fault(schedule) is empty.
[[nodiscard]] ScheduleTimes schedule_times(const PipelineSchedule&,
                                           std::span<const StageTime> stages,
                                           std::span<const HopTime> hops);

/// start and end of every action, rank by rank, for timelines and tests.
struct TimedAction {
  Action action;
  Seconds start, end;
};
[[nodiscard]] IdVector<RankId, std::vector<TimedAction>> timed_actions(
    const PipelineSchedule&, std::span<const StageTime> stages, std::span<const HopTime> hops);

/// Never above schedule_times(...).makespan, whatever the order of unequal stages:
/// max over stages s of (sum of t_j before s + m * t_s), t = forward + backward.
[[nodiscard]] Seconds makespan_bound(ScheduleKind, const PipelineShape&,
                                     std::span<const StageTime> stages);

/// Makespan of equal stages without hops: the closed forms above. F, I, W are of one whole rank.
[[nodiscard]] Seconds equal_stage_makespan(ScheduleKind, const PipelineShape&, const StageTime& rank);

}  // namespace towtank
