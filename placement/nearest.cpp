// SPDX-License-Identifier: Apache-2.0
#include "placement/nearest.h"

#include <vector>

#include "core/contracts.h"
#include "core/text.h"

namespace towtank {
namespace {

/// A plan and what was changed to get it.
struct Candidate {
  std::vector<std::string> changes;
  Plan plan;
};

std::string n(int value) { return std::to_string(value); }

std::vector<Candidate> recompute_changes(const Candidate& from) {
  std::vector<Candidate> out;
  for (const RecomputeMode mode : {RecomputeMode::kSelective, RecomputeMode::kFull}) {
    const auto now = uniform_recompute(from.plan.stages);
    if (now == mode || now == RecomputeMode::kFull) continue;
    Candidate c = from;
    c.plan.recompute = mode;
    for (PlanStage& stage : c.plan.stages) {
      const int layers = stage.last - stage.first;
      stage.recompute_full = mode == RecomputeMode::kFull ? layers : 0;
      stage.recompute_selective = mode == RecomputeMode::kSelective ? layers : 0;
    }
    c.changes.push_back("recompute " +
                        std::string(kRecomputeModeNames[static_cast<std::size_t>(mode)]));
    out.push_back(std::move(c));
  }
  return out;
}

std::vector<Candidate> microbatch_changes(const Candidate& from) {
  std::vector<Candidate> out;
  for (int b = from.plan.microbatch - 1; b >= 1; --b) {
    if (from.plan.microbatch % b != 0) continue;
    Candidate c = from;
    c.plan.microbatch = b;
    c.changes.push_back("microbatch " + n(b));
    out.push_back(std::move(c));
  }
  return out;
}

std::vector<Candidate> sharding_changes(const Candidate& from) {
  std::vector<Candidate> out;
  if (from.plan.data_shards() <= 1) return out;
  const int highest = rules_of(from.plan.framework).highest_sharding_stage.value;
  for (int z = from.plan.sharding_stage + 1; z <= highest; ++z) {
    Candidate c = from;
    c.plan.sharding_stage = z;
    c.changes.push_back("sharding stage " + n(z));
    out.push_back(std::move(c));
  }
  return out;
}

/// Stages for another pipeline depth, with the recomputation of the old ones.
void split_again(Plan& plan, int layers) {
  const auto mode = uniform_recompute(plan.stages);
  plan.recompute = mode.value_or(RecomputeMode::kFull);
  plan.stages.clear();
  if (plan.pipeline * plan.stages_per_rank <= layers) expand_stages(plan, layers);
}

std::vector<Candidate> tensor_changes(const Candidate& from) {
  std::vector<Candidate> out;
  for (int factor = 2; from.plan.data % factor == 0; factor *= 2) {
    Candidate c = from;
    c.plan.tensor *= factor;
    c.plan.data /= factor;
    c.plan.sequence_parallel = from.plan.sequence_parallel || from.plan.tensor == 1;
    c.changes.push_back("tensor " + n(c.plan.tensor) + " with data " + n(c.plan.data));
    out.push_back(std::move(c));
  }
  return out;
}

std::vector<Candidate> pipeline_changes(const Candidate& from, int layers) {
  std::vector<Candidate> out;
  for (int factor = 2; from.plan.data % factor == 0; factor *= 2) {
    Candidate c = from;
    c.plan.pipeline *= factor;
    c.plan.data /= factor;
    if (c.plan.schedule == ScheduleKind::kNone) c.plan.schedule = ScheduleKind::kOneFOneB;
    split_again(c.plan, layers);
    if (c.plan.stages.empty()) break;
    c.changes.push_back("pipeline " + n(c.plan.pipeline) + " with data " + n(c.plan.data));
    out.push_back(std::move(c));
  }
  return out;
}

/// Everything that recomputation and microbatch can give.
Candidate strongest(const Candidate& from) {
  Candidate out = from;
  const auto recomputed = recompute_changes(out);
  if (!recomputed.empty()) out = recomputed.back();
  const auto smaller = microbatch_changes(out);
  return smaller.empty() ? out : smaller.back();
}

class Trial {
 public:
  Trial(const PlanProblem& problem, const ValidityOptions& options)
      : problem_(&problem), options_(&options) {}

  /// The first of the candidates that is valid and fits.
  [[nodiscard]] std::optional<NearestChange> first_fit(const std::vector<Candidate>& list) const {
    for (const Candidate& c : list) {
      if (!check_plan(c.plan, *problem_->graph, *problem_->workload, problem_->view, *options_)
               .empty()) {
        continue;
      }
      Prediction prediction = ClosedFormEvaluator(*problem_).evaluate(c.plan);
      if (prediction.peak_memory().total() > problem_->capacity) continue;
      return NearestChange{join_and(c.changes), c.plan, std::move(prediction)};
    }
    return std::nullopt;
  }

 private:
  const PlanProblem* problem_;
  const ValidityOptions* options_;
};

}  // namespace

std::optional<NearestChange> nearest_change(const PlanProblem& problem, const Plan& plan,
                                            const ValidityOptions& options) {
  EXPECTS(problem.costs != nullptr && !plan.stages.empty());
  const Trial trial(problem, options);
  const int layers = problem.graph->free_layers();
  const Candidate start{{}, plan};
  const Candidate strong = strongest(start);
  const auto try_degrees = [&](const Candidate& from) -> std::optional<NearestChange> {
    if (auto found = trial.first_fit(sharding_changes(from))) return found;
    if (auto found = trial.first_fit(tensor_changes(from))) return found;
    return trial.first_fit(pipeline_changes(from, layers));
  };
  if (auto found = trial.first_fit(recompute_changes(start))) return found;
  if (auto found = trial.first_fit(microbatch_changes(start))) return found;
  if (auto found = try_degrees(start)) return found;
  if (auto found = trial.first_fit({strong})) return found;
  return try_degrees(strong);
}

}  // namespace towtank
