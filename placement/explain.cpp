// SPDX-License-Identifier: Apache-2.0
#include "placement/explain.h"

#include <algorithm>
#include <cmath>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "placement/detail/remedies.h"

namespace towtank {
namespace {

using Kind = StepTerm::Kind;

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

bool crosses_nodes(const PlanProblem& problem, const Plan& plan, Axis axis) {
  const GroupStride group = detail::exposed_group(plan, axis);
  if (group.size <= 1) return false;
  const GroupShape shape = group_shape(problem.view, group.size, group.stride);
  return shape.per_level.front() < group.size;
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
    if (out.loss_share >= detail::kHidden) out.largest_loss = treated;
  }
  if (out.largest_loss || out.binding.is_loss()) {
    out.remedies = detail::remedies_of(problem, plan, now, treated);
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
