// SPDX-License-Identifier: Apache-2.0
// The recurrence over an order that is written out: one rank's list is followed until it waits.
#include <algorithm>

#include "core/contracts.h"
#include "placement/recurrence.h"

namespace towtank {
namespace {

/// No time is negative. Half the memory of an optional, which is what the walk spends its time on.
constexpr Seconds kNotRun{-1.0};

class Walk {
 public:
  Walk(const PipelineSchedule& schedule, std::span<const StageTime> stages,
       std::span<const HopTime> hops)
      : schedule_(schedule), stages_(stages), hops_(hops) {
    const PipelineShape& shape = schedule.shape;
    EXPECTS(stages.size() == static_cast<std::size_t>(shape.ranks) *
                                 static_cast<std::size_t>(shape.stages_per_rank));
    EXPECTS(hops.size() == stages.size());
    EXPECTS(schedule.order.size() == static_cast<std::size_t>(shape.ranks));
    const std::size_t cells = stages.size() * static_cast<std::size_t>(shape.microbatches);
    forward_end_.resize(cells, kNotRun);
    gradient_end_.resize(cells, kNotRun);
  }

  /// Calls done(rank, action, start, end) for every action, in an order that respects dependencies.
  template <class Done>
  void run(Done done) {
    const std::size_t ranks = schedule_.order.size();
    std::vector<std::size_t> next(ranks, 0);
    std::vector<Seconds> free(ranks);
    std::size_t left = 0;
    for (const std::vector<Action>& order : schedule_.order) left += order.size();
    while (left > 0) {
      const std::size_t before = left;
      for (std::size_t r = 0; r < ranks; ++r) {
        const std::vector<Action>& order = schedule_.order[RankId{static_cast<int>(r)}];
        for (; next[r] < order.size(); ++next[r], --left) {
          const Action& action = order[next[r]];
          const Seconds ready = ready_time(action);
          if (ready == kNotRun) break;
          const Seconds start = std::max(free[r], ready);
          free[r] = start + duration(action);
          finish(action, free[r]);
          done(RankId{static_cast<int>(r)}, action, start, free[r]);
        }
      }
      EXPECTS(left < before);  // else the order cannot finish: find_fault says where
    }
  }

 private:
  [[nodiscard]] std::size_t cell(int stage, MicrobatchId microbatch) const {
    return static_cast<std::size_t>(stage) *
               static_cast<std::size_t>(schedule_.shape.microbatches) +
           static_cast<std::size_t>(microbatch.value);
  }

  [[nodiscard]] Seconds duration(const Action& action) const {
    const StageTime& stage = stages_[static_cast<std::size_t>(action.stage.value)];
    switch (action.phase) {
      case Phase::kForward:
        return stage.forward;
      case Phase::kBackward:
        return stage.input_grad + stage.weight_grad;
      case Phase::kInputGrad:
        return stage.input_grad;
      case Phase::kWeightGrad:
        return stage.weight_grad;
    }
    contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
  }

  /// When all dependencies have arrived; kNotRun while one has not run.
  [[nodiscard]] Seconds ready_time(const Action& action) const {
    const int stage = action.stage.value;
    const bool hop = schedule_.shape.ranks > 1;
    const HopTime& hops = hops_[static_cast<std::size_t>(stage)];
    switch (action.phase) {
      case Phase::kForward: {
        if (stage == 0) return Seconds{};
        const Seconds input = forward_end_[cell(stage - 1, action.microbatch)];
        return input == kNotRun ? kNotRun : input + (hop ? hops.forward : Seconds{});
      }
      case Phase::kBackward:
      case Phase::kInputGrad: {
        const Seconds own = forward_end_[cell(stage, action.microbatch)];
        if (own == kNotRun || static_cast<std::size_t>(stage) + 1 == stages_.size()) return own;
        const Seconds gradient = gradient_end_[cell(stage + 1, action.microbatch)];
        if (gradient == kNotRun) return kNotRun;
        return std::max(own, gradient + (hop ? hops.backward : Seconds{}));
      }
      case Phase::kWeightGrad:
        return gradient_end_[cell(stage, action.microbatch)];
    }
    contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
  }

  void finish(const Action& action, Seconds end) {
    const std::size_t at = cell(action.stage.value, action.microbatch);
    if (action.phase == Phase::kForward) forward_end_[at] = end;
    if (action.phase == Phase::kBackward || action.phase == Phase::kInputGrad) {
      gradient_end_[at] = end;
    }
  }

  const PipelineSchedule& schedule_;
  std::span<const StageTime> stages_;
  std::span<const HopTime> hops_;
  std::vector<Seconds> forward_end_;   // by (stage, microbatch)
  std::vector<Seconds> gradient_end_;  // of B or I: what the stage before waits for
};

}  // namespace

ScheduleTimes schedule_times(const PipelineSchedule& schedule, std::span<const StageTime> stages,
                             std::span<const HopTime> hops) {
  const auto ranks = static_cast<std::size_t>(schedule.shape.ranks);
  ScheduleTimes times;
  times.rank_end.resize(ranks);
  times.rank_busy.resize(ranks);
  times.last_backward_start.resize(stages.size());
  times.last_backward_end.resize(stages.size());
  Walk(schedule, stages, hops)
      .run([&](RankId rank, const Action& action, Seconds start, Seconds end) {
        const auto stage = static_cast<std::size_t>(action.stage.value);
        times.rank_end[static_cast<std::size_t>(rank.value)] = end;
        times.makespan = std::max(times.makespan, end);
        if (action.phase == Phase::kBackward || action.phase == Phase::kWeightGrad) {
          times.last_backward_start[stage] = start;
          times.last_backward_end[stage] = end;
        }
      });
  for (std::size_t g = 0; g < stages.size(); ++g) {
    times.rank_busy[g % ranks] +=
        schedule.shape.microbatches *
        (stages[g].forward + stages[g].input_grad + stages[g].weight_grad);
  }
  return times;
}

IdVector<RankId, std::vector<TimedAction>> timed_actions(const PipelineSchedule& schedule,
                                                         std::span<const StageTime> stages,
                                                         std::span<const HopTime> hops) {
  IdVector<RankId, std::vector<TimedAction>> timed(schedule.order.size());
  Walk(schedule, stages, hops)
      .run([&](RankId rank, const Action& action, Seconds start, Seconds end) {
        timed[rank].push_back({action, start, end});
      });
  return timed;
}

}  // namespace towtank
