// SPDX-License-Identifier: Apache-2.0
#include "placement/explain.h"

#include <algorithm>
#include <cmath>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "model/cost/collective_cost.h"

namespace towtank {
namespace {

using Kind = StepTerm::Kind;

/// Below this share of the step a part counts as hidden.
constexpr double kHidden = 0.01;
/// More bandwidth than this is no advice.
constexpr double kMostBandwidth = 16.0;

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

struct Names {
  const char* name;
  const char* short_name;
};

Names names_of(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
      return {"matrix products", "products"};
    case OpKind::kAttention:
      return {"attention", "attention"};
    case OpKind::kNorm:
      return {"norms", "norms"};
    case OpKind::kElementwise:
      return {"elementwise operations", "elementwise"};
    case OpKind::kEmbedding:
      return {"embedding", "embedding"};
    case OpKind::kCrossEntropy:
      return {"loss", "loss"};
    case OpKind::kRouting:
      return {"token routing", "routing"};
    case OpKind::kConvolution:
      return {"convolutions", "convolution"};
    case OpKind::kOptimizer:
      return {"optimizer operations", "optimizer"};
  }
  contract_violated("EXPECTS", "a known op kind", __FILE__, __LINE__);
}

Names names_of(Axis axis) {
  switch (axis) {
    case Axis::kTensor:
      return {"exposed tensor communication", "tensor"};
    case Axis::kContext:
      return {"exposed context communication", "context"};
    case Axis::kExpert:
      return {"exposed expert communication", "expert"};
    case Axis::kExpertTensor:
      return {"exposed expert-tensor comm.", "expert tensor"};
    case Axis::kPipeline:
      return {"exposed pipeline communication", "pipeline"};
    case Axis::kData:
      return {"exposed data communication", "data"};
  }
  contract_violated("EXPECTS", "a known axis", __FILE__, __LINE__);
}

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

/// The process group whose collectives an axis exposes.
GroupStride group_on(const Plan& plan, Axis axis) {
  if (axis == Axis::kData) return gradient_group(plan, false);
  if (axis == Axis::kPipeline) {
    return {2, group_of(plan, Axis::kPipeline).stride};  // neighbours send to each other
  }
  return group_of(plan, axis);
}

bool crosses_nodes(const PlanProblem& problem, const Plan& plan, Axis axis) {
  const GroupStride group = group_on(plan, axis);
  if (group.size <= 1) return false;
  const GroupShape shape = group_shape(problem.view, group.size, group.stride);
  return shape.per_level.front() < group.size;
}

/// Whether links between nodes bind a large message of the group.
bool bound_between_nodes(const PlanProblem& problem, const Plan& plan, Axis axis) {
  const GroupStride group = group_on(plan, axis);
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

/// "inter-node gradient reduction"
std::string phrase_of(const PlanProblem& problem, const Plan& plan, const StepTerm& term) {
  if (term.kind == Kind::kBubble) return "the pipeline bubble";
  if (term.kind == Kind::kOptimizer) return "the optimizer step";
  if (term.kind != Kind::kExposed) return term.name;
  const Axis axis = static_cast<Axis>(term.index);
  const std::string where = crosses_nodes(problem, plan, axis) ? "inter-node " : "intra-node ";
  switch (axis) {
    case Axis::kTensor:
      return where + "tensor-parallel collectives";
    case Axis::kContext:
      return where + "context-parallel exchange";
    case Axis::kExpert:
      return where + "expert all-to-all";
    case Axis::kExpertTensor:
      return where + "expert-tensor collectives";
    case Axis::kPipeline:
      return where + "pipeline sends";
    case Axis::kData:
      return where + (plan.sharding_stage >= 3 ? "parameter gathers and gradient reduction"
                                               : "gradient reduction");
  }
  return where + term.name;
}

/// Rate of the matrix products on the busiest rank over its peak, from the model's FLOP.
std::string product_rate_text(const PlanProblem& problem, const Prediction& now) {
  const double time = now.step.compute[index_of(OpKind::kMatmul)].value;
  if (time <= 0 || problem.peak.value <= 0) return "";
  const double work = 3.0 * problem.workload->global_batch *
                      forward_work(*problem.graph).matmul.value / problem.devices();
  return ", at " + short_percent(work / time / problem.peak.value) + " % of the dense " +
         std::string(to_text(problem.workload->precision)) + " peak";
}

std::string sentence_of(const PlanProblem& problem, const Plan& plan, const Prediction& now,
                        const Explanation& e) {
  std::string out =
      phrase_of(problem, plan, e.binding) + ", " + short_percent(e.share) + " % of the step";
  const bool products =
      e.binding.kind == Kind::kCompute && e.binding.index == index_of(OpKind::kMatmul);
  if (products) out += product_rate_text(problem, now);
  const std::string remedies = to_text(e.remedies);
  if (e.largest_loss) {
    out += "; the largest loss is " + phrase_of(problem, plan, *e.largest_loss) + ", " +
           short_percent(e.loss_share) + " %";
    if (!remedies.empty()) out += ": " + remedies;
  } else if (!remedies.empty()) {
    out += "; " + remedies;
  }
  return out + ".";
}

const StepTerm& largest(const std::vector<StepTerm>& terms, bool losses_only) {
  const StepTerm* best = nullptr;
  for (const StepTerm& term : terms) {
    if (losses_only && !term.is_loss()) continue;
    if (best == nullptr || term.time > best->time) best = &term;
  }
  return *best;
}

}  // namespace

std::vector<StepTerm> step_terms(const StepBreakdown& step) {
  std::vector<StepTerm> out;
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const Names n = names_of(static_cast<OpKind>(i));
    out.push_back({Kind::kCompute, i, n.name, n.short_name, step.compute[i]});
  }
  out.push_back({Kind::kRecompute, 0, "recomputation", "recompute", step.recompute});
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    const Names n = names_of(static_cast<Axis>(i));
    out.push_back({Kind::kExposed, i, n.name, n.short_name, step.exposed[i]});
  }
  out.push_back({Kind::kBubble, 0, "pipeline bubble", "bubble", step.bubble});
  out.push_back({Kind::kOptimizer, 0, "optimizer step", "optimizer", step.optimizer});
  out.push_back({Kind::kHostGaps, 0, "host gaps", "gaps", step.host_gaps});
  out.push_back({Kind::kInput, 0, "input loading", "input", step.input});
  return out;
}

std::vector<MemoryTerm> memory_terms(const MemoryBreakdown& m) {
  return {{"parameters", m.parameters},  {"gradients", m.gradients},
          {"optimizer", m.optimizer},    {"activations", m.activations},
          {"logits", m.logits},          {"working set", m.working},
          {"buffers", m.buffers},        {"allocator reserve", m.reserve},
          {"runtime context", m.context}};
}

Difference difference(const Prediction& loser, const Prediction& best) {
  Difference out;
  out.slower = loser.step_time / best.step_time - 1.0;
  const auto mine = step_terms(loser.step);
  const auto others = step_terms(best.step);
  double most = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double grew = mine[i].time.value - others[i].time.value;
    if (grew <= most) continue;
    most = grew;
    out.term = mine[i].short_name;
    out.share = mine[i].time / best.step_time;
    out.best_share = others[i].time / best.step_time;
  }
  return out;
}

std::string to_text(const Difference& d) {
  constexpr double kShown = 0.0005;  // what short_percent prints as zero
  if (d.slower < kShown && d.slower > -kShown) return "as fast";
  std::string out = (d.slower < 0 ? "" : "+") + short_percent(d.slower) + " %";
  if (d.term.empty()) return out;
  return out + ": " + d.term + " " + short_percent(d.share) + " vs " + short_percent(d.best_share) +
         " %";
}

std::string to_text(const std::vector<Remedy>& remedies) {
  std::string hiding, others;
  for (const Remedy& remedy : remedies) {
    std::string& out = remedy.hides ? hiding : others;
    if (!out.empty()) out += remedy.hides ? " or " : ", ";
    out += remedy.change;
    if (!remedy.hides) out += " " + remedy.effect;
  }
  if (!hiding.empty()) hiding += " hides it";
  return hiding + (hiding.empty() || others.empty() ? "" : ", ") + others;
}

Explanation explain(const PlanProblem& problem, const Plan& plan, const Prediction& now) {
  EXPECTS(problem.costs != nullptr);
  const std::vector<StepTerm> terms = step_terms(now.step);
  Explanation out;
  out.binding = largest(terms, false);
  out.share = out.binding.time / now.step_time;
  StepTerm treated = out.binding;
  if (!treated.is_loss()) {
    treated = largest(terms, true);
    out.loss_share = treated.time / now.step_time;
    if (out.loss_share >= kHidden) out.largest_loss = treated;
  }
  if (out.largest_loss || out.binding.is_loss()) {
    out.remedies = remedies_of(problem, plan, now, treated);
  }
  out.sentence = sentence_of(problem, plan, now, out);
  return out;
}

std::string short_percent(double fraction) {
  const double value = 100.0 * fraction;
  const double size = std::abs(value);
  if (size < 0.05) return "0";
  const auto tenths = std::lround(value * 10);
  if (size >= 9.95 || tenths % 10 == 0) return std::to_string(std::lround(value));
  const std::string digits = std::to_string(std::abs(tenths));
  return std::string(tenths < 0 ? "-" : "") + (digits.size() > 1 ? digits.substr(0, 1) : "0") +
         "." + digits.back();
}

}  // namespace towtank
