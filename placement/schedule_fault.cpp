// SPDX-License-Identifier: Apache-2.0
// What is wrong with a schedule that was written by hand, shown on its rank x step grid.
#include <algorithm>

#include "core/contracts.h"
#include "placement/schedule.h"

namespace towtank {
namespace {

/// Where the first fault is, and what it is. A missing action stands one step after the last.
struct ScheduleFault {
  int rank = 0;
  std::size_t step = 0;
  std::string problem;
};

/// Which phases of each (stage, microbatch) have been met.
class Ledger {
 public:
  explicit Ledger(const PipelineShape& shape)
      : stages_(shape.ranks * shape.stages_per_rank), microbatches_(shape.microbatches) {
    const std::size_t cells =
        static_cast<std::size_t>(stages_) * static_cast<std::size_t>(microbatches_);
    met_.resize(cells, 0);
  }
  [[nodiscard]] bool contains(const Action& a) const {
    return a.stage.value >= 0 && a.stage.value < stages_ && a.microbatch.value >= 0 &&
           a.microbatch.value < microbatches_;
  }
  [[nodiscard]] bool has(int stage, Phase phase, int microbatch) const {
    return (met_[cell(stage, microbatch)] & bit(phase)) != 0;
  }
  /// The output or the gradient of a stage is there: B and I both give the latter.
  [[nodiscard]] bool has_gradient(int stage, int microbatch) const {
    return has(stage, Phase::kBackward, microbatch) || has(stage, Phase::kInputGrad, microbatch);
  }
  void add(const Action& a) {
    unsigned& met = met_[cell(a.stage.value, a.microbatch.value)];
    met |= bit(a.phase);
  }

 private:
  [[nodiscard]] static unsigned bit(Phase phase) {
    switch (phase) {
      case Phase::kForward:
        return 1U;
      case Phase::kBackward:
        return 2U;
      case Phase::kInputGrad:
        return 4U;
      case Phase::kWeightGrad:
        return 8U;
    }
    contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
  }
  [[nodiscard]] std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches_) +
           static_cast<std::size_t>(microbatch);
  }
  int stages_;
  int microbatches_;
  std::vector<unsigned> met_;
};

std::string name(int stage, Phase phase, int microbatch) {
  return to_text(Action{StageId{stage}, phase, MicrobatchId{microbatch}});
}

/// Why an action cannot stand where it stands, whatever the rest is; empty if it can.
std::string misplaced(const PipelineShape& shape, const Ledger& ledger, int rank, const Action& a) {
  const int stage = a.stage.value;
  const int microbatch = a.microbatch.value;
  if (!ledger.contains(a)) {
    return to_text(a) + " does not exist: stages are 0 to " +
           std::to_string(shape.ranks * shape.stages_per_rank - 1) + ", microbatches 0 to " +
           std::to_string(shape.microbatches - 1);
  }
  if (stage % shape.ranks != rank) {
    return to_text(a) + " is on the wrong rank: stage " + std::to_string(stage) + " is rank " +
           std::to_string(stage % shape.ranks) + "'s";
  }
  if (ledger.has(stage, a.phase, microbatch)) return to_text(a) + " appears twice";
  const bool whole = a.phase == Phase::kBackward;
  const bool half = a.phase == Phase::kInputGrad || a.phase == Phase::kWeightGrad;
  const bool other_half = ledger.has(stage, Phase::kInputGrad, microbatch) ||
                          ledger.has(stage, Phase::kWeightGrad, microbatch);
  if ((whole && other_half) || (half && ledger.has(stage, Phase::kBackward, microbatch))) {
    return to_text(a) + " repeats work: a backward is either B or I and W";
  }
  return "";
}

/// The action that a (stage, microbatch) lacks; empty if it has all.
std::string lacking(const Ledger& ledger, int stage, int microbatch) {
  if (!ledger.has(stage, Phase::kForward, microbatch))
    return name(stage, Phase::kForward, microbatch);
  if (ledger.has(stage, Phase::kBackward, microbatch)) return "";
  const bool input = ledger.has(stage, Phase::kInputGrad, microbatch);
  const bool weight = ledger.has(stage, Phase::kWeightGrad, microbatch);
  if (input && weight) return "";
  if (input) return name(stage, Phase::kWeightGrad, microbatch);
  if (weight) return name(stage, Phase::kInputGrad, microbatch);
  return name(stage, Phase::kBackward, microbatch);
}

std::optional<ScheduleFault> find_misplaced(const PipelineSchedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  Ledger ledger(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::vector<Action>& order = schedule.order[RankId{rank}];
    for (std::size_t step = 0; step < order.size(); ++step) {
      std::string problem = misplaced(shape, ledger, rank, order[step]);
      if (!problem.empty()) return ScheduleFault{rank, step, std::move(problem)};
      ledger.add(order[step]);
    }
    for (int stage = rank; stage < shape.ranks * shape.stages_per_rank; stage += shape.ranks) {
      for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        const std::string missing = lacking(ledger, stage, microbatch);
        if (!missing.empty()) return ScheduleFault{rank, order.size(), missing + " is missing"};
      }
    }
  }
  return std::nullopt;
}

/// The action that must run before this one and has not; empty if it can run.
std::string waits_for(const PipelineShape& shape, const Ledger& done, const Action& a) {
  const int stage = a.stage.value;
  const int microbatch = a.microbatch.value;
  switch (a.phase) {
    case Phase::kForward:
      if (stage == 0 || done.has(stage - 1, Phase::kForward, microbatch)) return "";
      return name(stage - 1, Phase::kForward, microbatch);
    case Phase::kBackward:
    case Phase::kInputGrad:
      if (!done.has(stage, Phase::kForward, microbatch)) {
        return name(stage, Phase::kForward, microbatch);
      }
      if (stage + 1 == shape.ranks * shape.stages_per_rank ||
          done.has_gradient(stage + 1, microbatch)) {
        return "";
      }
      return name(stage + 1, a.phase, microbatch);
    case Phase::kWeightGrad:
      if (done.has(stage, Phase::kInputGrad, microbatch)) return "";
      return name(stage, Phase::kInputGrad, microbatch);
  }
  contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
}

std::optional<ScheduleFault> find_deadlock(const PipelineSchedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  Ledger done(shape);
  std::vector<std::size_t> next(schedule.order.size(), 0);
  for (bool advanced = true; advanced;) {
    advanced = false;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<Action>& order = schedule.order[RankId{rank}];
      std::size_t& step = next[static_cast<std::size_t>(rank)];
      for (; step < order.size() && waits_for(shape, done, order[step]).empty(); ++step) {
        done.add(order[step]);
        advanced = true;
      }
    }
  }
  std::optional<ScheduleFault> first;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::vector<Action>& order = schedule.order[RankId{rank}];
    const std::size_t step = next[static_cast<std::size_t>(rank)];
    if (step == order.size() || (first && first->step <= step)) continue;
    first = ScheduleFault{rank, step,
                          "the order cannot finish: " + to_text(order[step]) + " waits for " +
                              waits_for(shape, done, order[step]) + ", which is never reached"};
  }
  return first;
}

/// Ranks and steps around the fault; what lies further away is left out.
constexpr int kGridRanks = 8;
constexpr std::size_t kGridSteps = 12;

std::string grid(const PipelineSchedule& schedule, const ScheduleFault& fault) {
  const int ranks = schedule.shape.ranks;
  const int low = std::clamp(fault.rank - kGridRanks / 2, 0, std::max(0, ranks - kGridRanks));
  const int high = std::min(ranks, low + kGridRanks);
  const std::size_t from = fault.step < kGridSteps / 2 ? 0 : fault.step - kGridSteps / 2;
  const std::size_t to = from + kGridSteps;
  std::size_t width = std::to_string(to).size();
  for (int rank = low; rank < high; ++rank) {
    for (const Action& a : schedule.order[RankId{rank}]) width = std::max(width, to_text(a).size());
  }
  const auto padded = [](const std::string& text, std::size_t columns) {
    return text.size() >= columns ? text : std::string(columns - text.size(), ' ') + text;
  };
  const std::size_t margin = ("rank " + std::to_string(high - 1)).size();
  std::string text = padded("step", margin);
  std::size_t longest = fault.step + 1;
  for (int rank = low; rank < high; ++rank) {
    longest = std::max(longest, schedule.order[RankId{rank}].size());
  }
  for (std::size_t step = from; step < std::min(to, longest); ++step) {
    text += "  " + padded(std::to_string(step), width);
  }
  for (int rank = low; rank < high; ++rank) {
    const std::vector<Action>& order = schedule.order[RankId{rank}];
    text += '\n';
    text += padded("rank " + std::to_string(rank), margin);
    for (std::size_t step = from; step < std::min(to, order.size()); ++step) {
      text += "  " + padded(to_text(order[step]), width);
    }
    if (rank == fault.rank) {
      const std::string mark(width, '^');
      text += '\n';
      text += std::string(margin + (fault.step - from) * (width + 2) + 2, ' ') + mark;
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> find_fault(const PipelineSchedule& schedule) {
  EXPECTS(schedule.shape.ranks >= 1 && schedule.shape.microbatches >= 1 &&
          schedule.shape.stages_per_rank >= 1);
  EXPECTS(schedule.order.size() == static_cast<std::size_t>(schedule.shape.ranks));
  std::optional<ScheduleFault> fault = find_misplaced(schedule);
  if (!fault) fault = find_deadlock(schedule);
  if (!fault) return std::nullopt;
  return "rank " + std::to_string(fault->rank) + ", step " + std::to_string(fault->step) + ": " +
         fault->problem + "\n" + grid(schedule, *fault);
}

}  // namespace towtank
