// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/phases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/contracts.h"

namespace towtank::detail {
namespace {

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

double sum(const TimeSplit& s) { return std::accumulate(s.begin(), s.end(), 0.0); }

struct AxisKind {
  Stream stream;
  TimeComponent component;
};
AxisKind kind_of(Axis axis) {
  switch (axis) {
    case Axis::kTensor:
    case Axis::kExpertTensor:
      return {Stream::kTensor, TimeComponent::kTensor};
    case Axis::kContext:
      return {Stream::kContext, TimeComponent::kContext};
    case Axis::kExpert:
      return {Stream::kExpert, TimeComponent::kExpert};
    case Axis::kPipeline:
      return {Stream::kPipeline, TimeComponent::kPipeline};
    case Axis::kData:
      return {Stream::kData, TimeComponent::kData};
  }
  contract_violated("EXPECTS", "a known axis", __FILE__, __LINE__);
}

/// Makes the communication of a part lie beside its computation.
void put_beside(ActionPart& part, Communication communication, double interference) {
  const double slower = interference * std::min(communication.time(), part.time());
  part.fixed[index_of(TimeComponent::kData)] += slower;
  part.trailing = slower;
  part.beside = communication;
}

int buckets_of(const FrameworkRules& rules, double bytes) {
  const auto bucket = static_cast<double>(rules.bucket_bytes.value.value);
  return bucket > 0 ? std::max(1, static_cast<int>(std::ceil(bytes / bucket))) : 1;
}

Communication bucketed(const PlanProblem& problem, const FrameworkRules& rules, Collective op,
                       double bytes, const GroupShape& group) {
  return collective_in_calls(problem, op, bytes, group, buckets_of(rules, bytes));
}

}  // namespace

void ActionPart::add(const ActionPart& other, double times) {
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    work[i] += times * other.work[i];
    fixed[i] += times * other.fixed[i];
  }
  for (const Exchange& e : other.serial) {
    const auto same = std::find_if(serial.begin(), serial.end(), [&](const Exchange& mine) {
      return mine.stream == e.stream && mine.component == e.component;
    });
    if (same == serial.end()) {
      serial.push_back({e.stream, e.component, scaled(e.communication, times)});
    } else {
      same->communication.add(e.communication, times);
    }
  }
}

double ActionPart::time() const {
  double own = sum(work) + sum(fixed);
  for (const Exchange& e : serial) own += e.communication.time();
  return std::max(own, beside ? beside->time() + trailing : 0.0);
}

ActionParts::ActionParts(const PlanProblem& problem, const Mesh& mesh, const Layout& layout,
                         const StepModel& model)
    : problem_(&problem), mesh_(&mesh), layout_(&layout), model_(&model) {
  const ShardDegrees& d = mesh.degrees();
  groups_[index_of(Axis::kTensor)] = group_shape(problem.view, d.tensor, 1);
  groups_[index_of(Axis::kContext)] = group_shape(problem.view, d.context, d.tensor);
  groups_[index_of(Axis::kExpertTensor)] = group_shape(problem.view, d.expert_tensor, 1);
  groups_[index_of(Axis::kExpert)] = group_shape(problem.view, d.expert, d.expert_tensor);
}

/// All collectives of one layer on an axis, whether hidden or not.
Communication ActionParts::inner(std::size_t kind, Axis axis, bool forward) const {
  Communication all;
  const GroupShape& group = groups_[index_of(axis)];
  for (const LocalCollective& call : mesh_->local(kind).collectives) {
    if (call.axis != axis) continue;
    all.add(collective_of(*problem_, forward ? call.forward : call.backward, call.payload, group),
            forward ? call.forward_count : call.backward_count);
  }
  return all;
}

ActionPart ActionParts::kind_part(std::size_t kind, Pass pass) const {
  const LayerCost& cost = mesh_->cost(kind);
  ActionPart part;
  double& compute = part.work[index_of(TimeComponent::kCompute)];
  if (pass == Pass::kWeightGrad) {
    compute = cost.weight_grad.value;
    return part;
  }
  const bool forward = pass == Pass::kForward;
  for (const Seconds t : forward ? cost.compute_forward : cost.compute_backward) compute += t.value;
  if (!forward) compute -= cost.weight_grad.value;
  part.fixed[index_of(TimeComponent::kHost)] +=
      (forward ? cost.host_gap_forward : cost.host_gap_backward).value;
  for (std::size_t a = 0; a < kAxisCount; ++a) {
    const double exposed = (forward ? cost.exposed_forward : cost.exposed_backward)[a].value;
    if (exposed <= 0) continue;
    const AxisKind axis = kind_of(static_cast<Axis>(a));
    const Communication all = inner(kind, static_cast<Axis>(a), forward);
    if (leaves_node(groups_[a]) && all.time() > 0) {
      part.serial.push_back({axis.stream, axis.component, scaled(all, exposed / all.time())});
    } else {
      part.fixed[index_of(axis.component)] += exposed;
    }
  }
  return part;
}

/// Repeated forwards. The communication of whole layers between nodes is told apart.
ActionPart ActionParts::recompute_part(int stage) const {
  const StageRange& range = layout_->stages[static_cast<std::size_t>(stage)];
  StageRange full = range;
  full.last = range.first + range.full;
  full.has_first = full.has_last = false;
  ActionPart part;
  mesh_->for_each_kind(full, [&](std::size_t k, int n) {
    ActionPart exchanges;
    exchanges.serial = kind_part(k, Pass::kForward).serial;
    part.add(exchanges, n);
  });
  part.work[index_of(TimeComponent::kRecompute)] =
      std::max(0.0, model_->stage_sums(stage).recompute.value - part.time());
  return part;
}

double ActionParts::host_gap() const {
  return mesh_->runtime().per_microbatch.value / (2 * layout_->stages_per_rank);
}

Communication ActionParts::layer_collective(Collective op, std::size_t kind, double bytes) const {
  const LocalLayer& layer = mesh_->local(kind);
  const int unit = std::max(1, mesh_->rules().gather_layers.value);
  const DataAxis& data = model_->data();
  Communication all;
  all.add(collective_of(*problem_, op, bytes_from(layer.dense_parameters * bytes * unit),
                        data.dense_group()));
  all.add(collective_of(*problem_, op, bytes_from(layer.expert_parameters * bytes * unit),
                        data.expert_group()));
  return scaled(all, 1.0 / unit);
}

/// Sharding stage 3: the parts of each layer kind, with its gathers and reductions beside it: those
/// of a microbatch that reduces (or gathers) and those of the others, each as often as it is so.
std::vector<ActionPart> ActionParts::gathered(int stage, bool forward) const {
  const DataAxis::LayerCadence often = model_->data().layer_cadence();
  const double interference = mesh_->runtime().interference;
  std::vector<ActionPart> parts;
  mesh_->for_each_kind(layout_->stages[static_cast<std::size_t>(stage)], [&](std::size_t k, int n) {
    ActionPart work;
    Communication gather, reduce;
    if (forward) {
      work.add(kind_part(k, Pass::kForward), n);
    } else {
      work.add(kind_part(k, Pass::kInputGrad), n);
      work.add(kind_part(k, Pass::kWeightGrad), n);
      reduce = scaled(
          layer_collective(Collective::kReduceScatter, k, mesh_->rules().reduce_bytes.value), n);
    }
    if (forward || often.regather) {
      gather =
          scaled(layer_collective(Collective::kAllGather, k, model_->data().compute_bytes()), n);
    }
    const double share = forward ? often.gathers : often.reductions;
    const auto add_part = [&](double times, const Communication& data) {
      if (times <= 0) return;
      ActionPart part;
      part.add(work, times);
      put_beside(part, scaled(data, times), interference);
      parts.push_back(std::move(part));
    };
    Communication both = gather;
    both.add(reduce);
    add_part(share, both);
    add_part(1.0 - share, forward ? Communication{} : gather);
  });
  return parts;
}

std::vector<ActionPart> ActionParts::backward(int stage) const {
  const StageRange& range = layout_->stages[static_cast<std::size_t>(stage)];
  const StageSums sums = mesh_->sums(range);
  const DataAxis::Extra extra = model_->data().per_microbatch(range, sums);
  ActionPart rest;
  rest.fixed[index_of(TimeComponent::kHost)] += host_gap();
  std::vector<ActionPart> parts;
  if (model_->data().by_layer()) {
    parts = gathered(stage, false);
    rest.add(recompute_part(stage));
    parts.push_back(std::move(rest));
    return parts;
  }
  ActionPart whole = recompute_part(stage);
  mesh_->for_each_kind(range, [&](std::size_t k, int n) {
    whole.add(kind_part(k, Pass::kInputGrad), n);
    whole.add(kind_part(k, Pass::kWeightGrad), n);
  });
  if (extra.backward.value > 0) {
    const Communication reduce = reduction_of(*problem_, *mesh_, *layout_, model_->data(), sums);
    const double repeated = 1.0 - 1.0 / layout_->microbatches;
    ActionPart part;
    if (mesh_->rules().overlap_grad_reduce.value) {
      part.add(whole, repeated);
      put_beside(part, scaled(reduce, repeated), mesh_->runtime().interference);
      rest.add(whole, 1.0 - repeated);
    } else {
      part.add(whole);
      part.serial.push_back({Stream::kData, TimeComponent::kData, scaled(reduce, repeated)});
    }
    parts.push_back(std::move(part));
  } else {
    rest.add(whole);
  }
  parts.push_back(std::move(rest));
  return parts;
}

std::vector<ActionPart> ActionParts::of(int stage, Phase phase) const {
  const StageRange& range = layout_->stages[static_cast<std::size_t>(stage)];
  const DataAxis::Extra extra = model_->data().per_microbatch(range, mesh_->sums(range));
  std::vector<ActionPart> parts;
  ActionPart rest;
  const auto add_kinds = [&](Pass pass) {
    mesh_->for_each_kind(range, [&](std::size_t k, int n) { rest.add(kind_part(k, pass), n); });
  };
  switch (phase) {
    case Phase::kForward:
      rest.fixed[index_of(TimeComponent::kHost)] += host_gap();
      if (model_->data().by_layer()) {
        parts = gathered(stage, true);
      } else {
        add_kinds(Pass::kForward);
      }
      parts.push_back(std::move(rest));
      return parts;
    case Phase::kBackward:
      return backward(stage);
    case Phase::kInputGrad:
      rest.fixed[index_of(TimeComponent::kHost)] += host_gap();
      rest.fixed[index_of(TimeComponent::kData)] += extra.backward.value;
      rest.add(recompute_part(stage));
      add_kinds(Pass::kInputGrad);
      return {rest};
    case Phase::kWeightGrad:
      add_kinds(Pass::kWeightGrad);
      return {rest};
  }
  contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
}

Communication ActionParts::step_ends(int stage) const {
  Communication longest;
  const DataAxis& data = model_->data();
  if (!data.by_layer()) return longest;
  mesh_->for_each_kind(layout_->stages[static_cast<std::size_t>(stage)], [&](std::size_t k, int) {
    Communication c = layer_collective(Collective::kAllGather, k, data.compute_bytes());
    c.add(layer_collective(Collective::kReduceScatter, k, mesh_->rules().reduce_bytes.value));
    if (c.time() > 0) c = scaled(c, data.layer_ends(k).value / c.time());
    if (c.time() > longest.time()) longest = c;
  });
  return longest;
}

Communication reduction_of(const PlanProblem& problem, const Mesh& mesh, const Layout& layout,
                           const DataAxis& data, const StageSums& s) {
  Communication all;
  if (layout.sharding_stage >= 3) return all;
  const Collective op =
      layout.sharding_stage == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
  const double bytes = mesh.rules().reduce_bytes.value;
  all.add(bucketed(problem, mesh.rules(), op, s.dense_parameters * bytes, data.dense_group()));
  all.add(bucketed(problem, mesh.rules(), op, s.expert_parameters * bytes, data.expert_group()));
  return all;
}

Communication gather_of(const PlanProblem& problem, const Mesh& mesh, const Layout& layout,
                        const DataAxis& data, const StageSums& rank) {
  Communication all;
  if (layout.sharding_stage < 1 || layout.sharding_stage >= 3) return all;
  const FrameworkRules& rules = mesh.rules();
  all.add(bucketed(problem, rules, Collective::kAllGather,
                   rank.dense_parameters * data.compute_bytes(), data.dense_group()));
  all.add(bucketed(problem, rules, Collective::kAllGather,
                   rank.expert_parameters * data.compute_bytes(), data.expert_group()));
  return all;
}

}  // namespace towtank::detail
