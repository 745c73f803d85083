// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When each action of a schedule runs, if every action has a fixed duration and a hop between
/// stages on different ranks takes a fixed time: the exact longest path, one pass over the lists.
///
///     start(a) = max(end of the action before it on its rank, end of each dependency + hop)
///
/// Dependencies: F(m, g) after F(m, g-1); I or B(m, g) after F(m, g) and after I or B(m, g+1);
/// W(m, g) after I(m, g). A hop applies only when the two stages lie on different ranks.
///
/// The known kinds are swept rank by rank in an order in which every dependency is a value of the
/// sweep before, so that O(ranks) memory and O(actions) time, a few ns each, are enough; the result
/// equals the walk over the written order bit for bit. Closed forms for equal stages are its
/// oracles. Not modelled: links shared by hops, sends that block the sender (sim/).
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
  std::vector<Seconds> rank_end;             ///< end of each rank's last action
  std::vector<Seconds> rank_busy;            ///< sum of its durations
  std::vector<Seconds> last_backward_start;  ///< by stage: start of its last B (or W) action
  std::vector<Seconds> last_backward_end;    ///< by stage: when its gradients are complete
};

/// Keeps the memory of one caller's repeated calls.
struct ScheduleWorkspace {
  ScheduleTimes times;
  std::vector<double> scratch;
};

/// Works out the order on the fly; never materialises the schedule for the known kinds.
/// Pre: stages.size() = ranks * stages_per_rank; hops.size() = stages.size(); times >= 0; the shape
/// is one that make_schedule accepts for the kind.
[[nodiscard]] ScheduleTimes schedule_times(ScheduleKind, const PipelineShape&,
                                           std::span<const StageTime> stages,
                                           std::span<const HopTime> hops);
/// The same without allocation once the workspace has grown; the result lives in it.
const ScheduleTimes& schedule_times(ScheduleKind, const PipelineShape&,
                                    std::span<const StageTime> stages,
                                    std::span<const HopTime> hops, ScheduleWorkspace&);
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

/// Never above schedule_times(...).makespan of these stages with any hops (but for rounding,
/// 1e-12):
///
///     T >= max over ranks r of  head(r) + m t_r + idle(r) + tail(r)
///
///   t_r      time of one microbatch on rank r, all of its stages                         [s]
///   head(r)  forwards of the stages before rank r's first one                            [s]
///   tail(r)  what follows rank r's last input gradient on the ranks before it            [s]
///   idle(r)  what rank r cannot fill while the first and the last microbatch pass through the
///            stages after it (GPipe: the last one; interleaved: left out)                [s]
///
/// With equal stages it is the exact makespan of each kind (ZB-H1: for W <= I). O(stages).
[[nodiscard]] Seconds makespan_bound(ScheduleKind, const PipelineShape&,
                                     std::span<const StageTime> stages);

/// Makespan of equal stages without hops. F, I, W are of one whole rank, B = I + W.
///
///     none, GPipe, 1F1B   (m + p-1) (F + B)
///     interleaved         (m + (p-1)/v) (F + B)
///     ZB-H1               (m + p-1) (F + I) + max(1, m - p + 1) W, exact for W <= I, else a bound
///                         (from m = p on it is m (F + B) + (p-1) (F + I - W))
[[nodiscard]] Seconds equal_stage_makespan(ScheduleKind, const PipelineShape&,
                                           const StageTime& rank);

}  // namespace towtank
