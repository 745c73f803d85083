// SPDX-License-Identifier: Apache-2.0
#include "placement/detail/mesh.h"

#include <algorithm>
#include <optional>

#include "core/contracts.h"

namespace towtank::detail {
namespace {

AxisGroups inner_groups(const NetworkView& view, const ShardDegrees& d) {
  AxisGroups groups;
  const auto set = [&](Axis axis, int size, int stride) {
    groups.shape[static_cast<std::size_t>(axis)] = group_shape(view, size, stride);
  };
  set(Axis::kTensor, d.tensor, 1);
  set(Axis::kContext, d.context, d.tensor);
  set(Axis::kExpertTensor, d.expert_tensor, 1);
  set(Axis::kExpert, d.expert, d.expert_tensor);
  return groups;
}

double range(const std::vector<double>& prefix, int first, int last) {
  return prefix[static_cast<std::size_t>(last)] - prefix[static_cast<std::size_t>(first)];
}

}  // namespace

Mesh::Mesh(const PlanProblem& problem, const ShardDegrees& degrees, Framework framework)
    : degrees_(degrees), rules_(&rules_of(framework, problem.workload->precision)) {
  EXPECTS(problem.costs != nullptr);
  const ModelGraph& graph = *problem.graph;
  runtime_ = problem.costs->runtime(framework);
  const AxisGroups groups = inner_groups(problem.view, degrees);
  local_.reserve(graph.kinds.size());
  cost_.reserve(graph.kinds.size());
  for (const LayerKind& kind : graph.kinds) {
    local_.push_back(
        shard(kind, degrees, *rules_, problem.workload->precision, problem.workload->expert_load));
    cost_.push_back(layer_cost(local_.back(), *problem.costs, groups, *rules_, runtime_));
  }
  for (auto* prefix : {&forward_, &input_grad_, &weight_grad_, &rerun_full_, &rerun_selective_,
                       &dense_, &expert_}) {
    prefix->reserve(graph.layers.size() + 1);
    prefix->push_back(0);
  }
  counts_.assign(graph.kinds.size(), {0});
  pinned_first_.assign(graph.kinds.size(), 0);
  pinned_last_.assign(graph.kinds.size(), 0);
  std::optional<LayerKindId> seen;
  for (const Layer& layer : graph.layers) {
    const auto kind = static_cast<std::size_t>(layer.kind.value);
    if (layer.pin == Pin::kFree) {
      add_layer(kind);
      uniform_ = uniform_ && (!seen || *seen == layer.kind);
      seen = layer.kind;
      continue;
    }
    StageSums& sums = layer.pin == Pin::kFirst ? first_ : last_;
    (layer.pin == Pin::kFirst ? pinned_first_ : pinned_last_)[kind] += 1;
    sums.forward += cost_[kind].forward;
    sums.input_grad += cost_[kind].input_grad;
    sums.weight_grad += cost_[kind].weight_grad;
    sums.dense_parameters += local_[kind].dense_parameters;
    sums.expert_parameters += local_[kind].expert_parameters;
  }
  const bool scattered = degrees.sequence_parallel || rules_->scatter_gather_p2p.value;
  const double share =
      static_cast<double>(degrees.microbatch) / degrees.context / (scattered ? degrees.tensor : 1);
  const double wire = wire_bytes(problem.workload->precision);
  boundary_.reserve(problem.cut_elements.size());
  for (const double elements : problem.cut_elements) {
    boundary_.push_back(bytes_from(elements * share * wire));
  }
  tied_parameters_ = graph.tied_embedding ? graph.tied_parameters / degrees.tensor : 0.0;
}

void Mesh::add_layer(std::size_t kind) {
  const LayerCost& cost = cost_[kind];
  const auto add = [](std::vector<double>& prefix, double v) {
    prefix.push_back(prefix.back() + v);
  };
  add(forward_, cost.forward.value);
  add(input_grad_, cost.input_grad.value);
  add(weight_grad_, cost.weight_grad.value);
  add(rerun_full_, cost.recompute(RecomputeMode::kFull, *rules_).value);
  add(rerun_selective_, cost.recompute(RecomputeMode::kSelective, *rules_).value);
  add(dense_, local_[kind].dense_parameters);
  add(expert_, local_[kind].expert_parameters);
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    counts_[k].push_back(counts_[k].back() + (k == kind ? 1 : 0));
  }
}

StageSums Mesh::sums(const StageRange& r) const {
  StageSums s;
  s.forward = {range(forward_, r.first, r.last)};
  s.recompute = {range(rerun_full_, r.first, r.first + r.full) +
                 range(rerun_selective_, r.first + r.full, r.first + r.full + r.selective)};
  s.input_grad = Seconds{range(input_grad_, r.first, r.last)} + s.recompute;
  s.weight_grad = {range(weight_grad_, r.first, r.last)};
  s.dense_parameters = range(dense_, r.first, r.last);
  s.expert_parameters = range(expert_, r.first, r.last);
  const auto add = [&s](const StageSums& pinned) {
    s.forward += pinned.forward;
    s.input_grad += pinned.input_grad;
    s.weight_grad += pinned.weight_grad;
    s.dense_parameters += pinned.dense_parameters;
    s.expert_parameters += pinned.expert_parameters;
  };
  if (r.has_first) add(first_);
  if (r.has_last) add(last_);
  return s;
}

Seconds Mesh::whole_time() const {
  const StageSums s = sums({0, free_layers(), 0, 0, true, true});
  return s.forward + s.input_grad + s.weight_grad;
}

Seconds Mesh::layer_time(int layer) const {
  return {range(forward_, layer, layer + 1) + range(input_grad_, layer, layer + 1) +
          range(weight_grad_, layer, layer + 1)};
}

void Mesh::rank_layers(std::span<const StageRange> stages, int rank, int pipeline,
                       std::vector<StageLayers>& out) const {
  out.clear();
  constexpr RecomputeMode kModes[] = {RecomputeMode::kFull, RecomputeMode::kSelective,
                                      RecomputeMode::kNone};
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    int by_mode[3] = {0, 0, 0};
    for (std::size_t g = static_cast<std::size_t>(rank); g < stages.size();
         g += static_cast<std::size_t>(pipeline)) {
      const StageRange& r = stages[g];
      const int bounds[] = {r.first, r.first + r.full, r.first + r.full + r.selective, r.last};
      for (std::size_t m = 0; m < 3; ++m) {
        by_mode[m] += counts_[k][static_cast<std::size_t>(bounds[m + 1])] -
                      counts_[k][static_cast<std::size_t>(bounds[m])];
      }
      by_mode[2] += (r.has_first ? pinned_first_[k] : 0) + (r.has_last ? pinned_last_[k] : 0);
    }
    for (std::size_t m = 0; m < 3; ++m) {
      if (by_mode[m] > 0) out.push_back({&local_[k], by_mode[m], kModes[m]});
    }
  }
}

WholeTimes::WholeTimes(const PlanProblem& problem, Framework framework)
    : problem_(&problem),
      rules_(&rules_of(framework, problem.workload->precision)),
      runtime_(problem.costs->runtime(framework)),
      layers_(problem.graph->kinds.size(), 0) {
  for (const Layer& layer : problem.graph->layers) {
    ++layers_[static_cast<std::size_t>(layer.kind.value)];
  }
}

Seconds WholeTimes::operator()(const ShardDegrees& d) {
  const std::array<int, 4> key{d.tensor, d.context, d.microbatch, d.sequence_parallel ? 1 : 0};
  auto at = without_experts_.find(key);
  if (at == without_experts_.end()) {
    at = without_experts_.emplace(key, of_kinds(d, false)).first;
  }
  return at->second + of_kinds(d, true);
}

Seconds WholeTimes::of_kinds(const ShardDegrees& degrees, bool experts) const {
  const AxisGroups groups = inner_groups(problem_->view, degrees);
  Seconds sum;
  std::size_t k = 0;
  for (const LayerKind& kind : problem_->graph->kinds) {
    const int layers = layers_[k++];
    if ((kind.limits.experts > 0) != experts) continue;
    const LocalLayer layer = shard(kind, degrees, *rules_, problem_->workload->precision,
                                   problem_->workload->expert_load);
    const LayerCost cost = layer_cost(layer, *problem_->costs, groups, *rules_, runtime_);
    sum += layers * (cost.forward + cost.backward());
  }
  return sum;
}

}  // namespace towtank::detail
