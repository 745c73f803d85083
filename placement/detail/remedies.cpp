// SPDX-License-Identifier: Apache-2.0
#include "placement/detail/remedies.h"

#include <algorithm>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "model/cost/collective_cost.h"

namespace towtank::detail {
namespace {

using Kind = StepTerm::Kind;

/// More bandwidth than this is no advice.
constexpr double kMostBandwidth = 16.0;

/// The same machine with a faster network: transfers that one kind of level binds take 1/factor,
/// between nodes down to what the part inside a node takes.
class FasterNetwork final : public CostModel {
 public:
  FasterNetwork(const CostModel& base, bool internode, double factor)
      : base_(&base), internode_(internode), factor_(factor) {}
  [[nodiscard]] OpCost op(const OpSignature& signature) const override {
    return base_->op(signature);
  }
  [[nodiscard]] CollectiveCost collective(const CollectiveCall& call) const override {
    CollectiveCost cost = base_->collective(call);
    if ((cost.level > 0) != internode_) return cost;
    const Seconds inside = internode_ ? inside_node(call) : Seconds{};
    cost.transfer = std::min(cost.transfer, std::max(cost.transfer / factor_, inside));
    return cost;
  }
  [[nodiscard]] RuntimeCosts runtime(Framework framework) const override {
    return base_->runtime(framework);
  }
  [[nodiscard]] std::string description() const override { return base_->description(); }

 private:
  /// Transfer of the call if only the links inside a node bound it.
  [[nodiscard]] Seconds inside_node(const CollectiveCall& call) const {
    const int here = call.group.per_level.empty() ? 1 : call.group.per_level.front();
    if (here <= 1) return {};
    CollectiveCall local = call;
    local.group = {here, std::vector<int>(call.group.per_level.size(), 1)};
    local.group.per_level.front() = here;
    const double all = call.group.size;
    // An all-to-all sends (here - 1)/all of its payload inside, the others pass all of theirs on.
    const double wire = call.op == Collective::kAllToAll
                            ? here / all
                            : wire_factor(call.op, call.group.size) / wire_factor(call.op, here);
    return wire * base_->collective(local).transfer;
  }

  const CostModel* base_;
  bool internode_;
  double factor_;
};

Seconds time_of(const StepTerm& term, const StepBreakdown& step) {
  switch (term.kind) {
    case Kind::kCompute:
      return step.compute[term.index];
    case Kind::kRecompute:
      return step.recompute;
    case Kind::kExposed:
      return step.exposed[term.index];
    case Kind::kBubble:
      return step.bubble;
    case Kind::kOptimizer:
      return step.optimizer;
    case Kind::kHostGaps:
      return step.host_gaps;
    case Kind::kInput:
      return step.input;
  }
  contract_violated("EXPECTS", "a known part", __FILE__, __LINE__);
}

/// Answers "what if" by asking the evaluator again.
class WhatIf {
 public:
  WhatIf(const PlanProblem& problem, const Plan& plan) : problem_(&problem), plan_(&plan) {}

  [[nodiscard]] Prediction bandwidth(bool internode, double factor) const {
    const FasterNetwork costs(*problem_->costs, internode, factor);
    PlanProblem changed = *problem_;
    changed.costs = &costs;
    return ClosedFormEvaluator(changed).evaluate(*plan_);
  }
  [[nodiscard]] Prediction doubled_batch() const {
    Workload workload = *problem_->workload;
    workload.global_batch *= 2;
    PlanProblem changed = *problem_;
    changed.workload = &workload;
    return ClosedFormEvaluator(changed).evaluate(*plan_);
  }
  [[nodiscard]] Prediction changed_plan(const Plan& plan) const {
    return ClosedFormEvaluator(*problem_).evaluate(plan);
  }

 private:
  const PlanProblem* problem_;
  const Plan* plan_;
};

bool hidden(const StepTerm& term, const Prediction& after) {
  return time_of(term, after.step) < kHidden * after.step_time;
}

/// The least factor, in steps of 0.1, whose bandwidth hides the part.
std::optional<double> hiding_factor(const WhatIf& what_if, const StepTerm& term, bool internode) {
  if (!hidden(term, what_if.bandwidth(internode, kMostBandwidth))) return std::nullopt;
  int low = 10,
      high = static_cast<int>(kMostBandwidth * 10);  // tenths: low does not hide, high does
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (hidden(term, what_if.bandwidth(internode, middle / 10.0)) ? high : low) = middle;
  }
  return high / 10.0;
}

/// Whether links between nodes bind a large message of the group.
bool bound_between_nodes(const PlanProblem& problem, const Plan& plan, Axis axis) {
  const GroupStride group = exposed_group(plan, axis);
  if (group.size <= 1) return false;
  constexpr Bytes kLarge{1LL << 30};
  const Collective op = axis == Axis::kPipeline ? Collective::kSendRecv : Collective::kAllGather;
  const GroupShape shape = group_shape(problem.view, group.size, group.stride);
  return problem.costs->collective({op, kLarge, shape}).level > 0;
}

Remedy doubled_batch(const WhatIf& what_if, const StepTerm& term) {
  const Prediction after = what_if.doubled_batch();
  if (hidden(term, after)) return {"a doubled batch", "hides it", true};
  return {"a doubled batch",
          "leaves " + short_percent(time_of(term, after.step) / after.step_time) + " %"};
}

std::string off_the_step(const Prediction& after, const Prediction& now) {
  return "takes " + short_percent(1.0 - after.step_time / now.step_time) + " % off the step";
}

std::vector<Remedy> network_remedies(const PlanProblem& problem, const Plan& plan,
                                     const Prediction& now, const StepTerm& term) {
  const Axis axis = static_cast<Axis>(term.index);
  const WhatIf what_if(problem, plan);
  const bool internode = bound_between_nodes(problem, plan, axis);
  const std::string bandwidth =
      "the " + std::string(internode ? "inter-node" : "intra-node") + " bandwidth";
  std::vector<Remedy> out;
  if (const auto factor = hiding_factor(what_if, term, internode)) {
    out.push_back({three_digits(*factor) + "x " + bandwidth, "hides it", true});
  } else {
    out.push_back({"twice " + bandwidth, off_the_step(what_if.bandwidth(internode, 2.0), now)});
  }
  // Only the data axis works once a step; the others grow with the batch as everything does.
  if (axis == Axis::kData) out.push_back(doubled_batch(what_if, term));
  return out;
}

std::vector<Remedy> recompute_remedies(const PlanProblem& problem, const Plan& plan) {
  Plan without = plan;
  without.recompute = RecomputeMode::kNone;
  for (PlanStage& stage : without.stages) stage.recompute_full = stage.recompute_selective = 0;
  const Bytes need = WhatIf(problem, plan).changed_plan(without).peak_memory().total();
  if (need <= problem.capacity) {
    return {{"without it the plan", "needs " + to_text(need) + " of " + to_text(problem.capacity)}};
  }
  return {{to_text(need - problem.capacity) + " more memory a device", "would avoid it"}};
}

std::vector<Remedy> optimizer_remedies(const PlanProblem& problem, const Plan& plan,
                                       const Prediction& now) {
  if (plan.sharding_stage > 0 || plan.data_shards() <= 1) return {};
  if (rules_of(plan.framework).highest_sharding_stage.value < 1) return {};
  Plan sharded = plan;
  sharded.sharding_stage = 1;
  return {{"sharding stage 1", off_the_step(WhatIf(problem, plan).changed_plan(sharded), now)}};
}

}  // namespace

GroupStride exposed_group(const Plan& plan, Axis axis) {
  if (axis == Axis::kData) return gradient_group(plan, false);
  if (axis == Axis::kPipeline) {
    return {2, group_of(plan, Axis::kPipeline).stride};  // neighbours send to each other
  }
  return group_of(plan, axis);
}

std::vector<Remedy> remedies_of(const PlanProblem& problem, const Plan& plan, const Prediction& now,
                                const StepTerm& term) {
  switch (term.kind) {
    case Kind::kExposed:
      return network_remedies(problem, plan, now, term);
    case Kind::kBubble:
      return {doubled_batch(WhatIf(problem, plan), term)};
    case Kind::kRecompute:
      return recompute_remedies(problem, plan);
    case Kind::kOptimizer:
      return optimizer_remedies(problem, plan, now);
    case Kind::kCompute:
    case Kind::kHostGaps:
    case Kind::kInput:
      return {};
  }
  return {};
}

}  // namespace towtank::detail
