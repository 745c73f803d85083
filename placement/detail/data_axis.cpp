// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "placement/detail/step_model.h"

namespace towtank::detail {
namespace {

/// What a communication of time t adds to a computation of time c on another stream.
Seconds beside(Seconds t, Seconds c, double interference) {
  return std::max(Seconds{0}, t - c) + interference * std::min(t, c);
}

}  // namespace

DataAxis::DataAxis(const PlanProblem& problem, const Mesh& mesh, const Layout& layout)
    : problem_(&problem), mesh_(&mesh), layout_(&layout) {
  const ShardDegrees& d = mesh.degrees();
  const int inner = d.tensor * d.context;
  const int shards = layout.data * d.context;
  const int expert_shards = layout.data * inner / (d.expert * d.expert_tensor);
  dense_ = group_shape(problem.view, shards, d.tensor);
  expert_ = group_shape(problem.view, expert_shards, d.expert * d.expert_tensor);
  everyone_ = group_shape(problem.view, problem.devices(), 1);
  const int stage_devices = inner * layout.data;
  pair_ = group_shape(problem.view, layout.pipeline > 1 ? 2 : 1, stage_devices);
  const Workload& w = *problem.workload;
  state_ = layout.states ? *layout.states
                         : state_bytes(mesh.rules().framework, w.precision, w.optimizer).value;
  compute_bytes_ = wire_bytes(w.precision);
  if (layout.sharding_stage < 3 || (shards <= 1 && expert_shards <= 1)) return;
  const FrameworkRules& rules = mesh.rules();
  const int unit = std::max(1, rules.gather_layers.value);
  for (std::size_t k = 0; k < mesh.kinds(); ++k) {
    const LocalLayer& layer = mesh.local(k);
    const auto of = [&](Collective op, double bytes) {
      return (collective(op, layer.dense_parameters * bytes * unit, dense_) +
              collective(op, layer.expert_parameters * bytes * unit, expert_)) /
             unit;
    };
    kinds_.push_back({of(Collective::kAllGather, compute_bytes_),
                      of(Collective::kReduceScatter, rules.reduce_bytes.value)});
  }
}

Seconds DataAxis::collective(Collective op, double bytes, const GroupShape& group) const {
  if (group.size <= 1 || bytes <= 0) return {};
  return problem_->costs->collective({op, bytes_from(bytes), group}).time();
}

Seconds DataAxis::bucketed(Collective op, double bytes, const GroupShape& group,
                           int& buckets) const {
  const auto bucket = static_cast<double>(mesh_->rules().bucket_bytes.value.value);
  const int n = bucket > 0 ? std::max(1, static_cast<int>(std::ceil(bytes / bucket))) : 1;
  buckets = std::max(buckets, n);
  return static_cast<double>(n) * collective(op, bytes / n, group);
}

DataAxis::Reduction DataAxis::reduction(const StageSums& s) const {
  Reduction r;
  if (layout_->sharding_stage >= 3) return r;
  const Collective op =
      layout_->sharding_stage == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
  const double bytes = mesh_->rules().reduce_bytes.value;
  r.time = bucketed(op, s.dense_parameters * bytes, dense_, r.buckets) +
           bucketed(op, s.expert_parameters * bytes, expert_, r.buckets);
  return r;
}

DataAxis::LayerCadence DataAxis::layer_cadence() const {
  const FrameworkRules& rules = mesh_->rules();
  const bool pipelined = layout_->pipeline > 1;
  const double once = 1.0 / std::max(1, layout_->microbatches);
  const ReduceCadence cadence =
      (pipelined ? rules.reduce_cadence_pipeline : rules.reduce_cadence_high).value;
  LayerCadence out;
  out.regather = (pipelined ? rules.reshard_in_pipeline : rules.reshard_after_forward).value;
  out.gathers = pipelined && !out.regather ? once : 1.0;
  out.reductions = cadence == ReduceCadence::kPerMicrobatch ? 1.0 : once;
  return out;
}

DataAxis::Extra DataAxis::per_microbatch(const StageRange& range, const StageSums& s) const {
  Extra extra;
  const FrameworkRules& rules = mesh_->rules();
  const double interference = mesh_->runtime().interference;
  if (!kinds_.empty()) {
    const LayerCadence often = layer_cadence();
    mesh_->for_each_kind(range, [&](std::size_t k, int n) {
      const LayerCost& cost = mesh_->cost(k);
      const Seconds gather = kinds_[k].gather;
      const Seconds again = often.regather ? gather : Seconds{};
      const auto beside_backward = [&](Seconds t) {
        return beside(t, cost.backward(), interference);
      };
      extra.forward += n * often.gathers * beside(gather, cost.forward, interference);
      extra.backward += n * (often.reductions * beside_backward(again + kinds_[k].reduce) +
                             (1 - often.reductions) * beside_backward(again));
    });
    return extra;
  }
  const ReduceCadence cadence = layout_->sharding_stage < 2 ? rules.reduce_cadence_low.value
                                : layout_->pipeline > 1     ? rules.reduce_cadence_pipeline.value
                                                            : rules.reduce_cadence_high.value;
  if (cadence == ReduceCadence::kPerMicrobatch && layout_->microbatches > 1) {
    // The last microbatch's reduction is the step's tail; the others lie beside their backward.
    const Seconds backward = s.input_grad + s.weight_grad;
    const Seconds reduce = reduction(s).time;
    const double repeated = 1.0 - 1.0 / layout_->microbatches;
    extra.backward =
        repeated *
        (rules.overlap_grad_reduce.value ? beside(reduce, backward, interference) : reduce);
  }
  return extra;
}

Seconds DataAxis::layer_ends(std::size_t kind) const {
  const auto [gather, reduce] = kinds_[kind];
  const Seconds forward = mesh_->cost(kind).forward;
  const Seconds backward = mesh_->cost(kind).backward();
  const Seconds hidden = layer_cadence().regather
                             ? 2.0 * std::min(gather + reduce, backward) -
                                   std::min(gather, backward) - std::min(reduce, backward)
                             : std::min(gather, forward) + std::min(reduce, backward);
  return (1.0 - mesh_->runtime().interference) * hidden;
}

Seconds DataAxis::step_ends(const StageRange& range) const {
  Seconds longest;
  if (kinds_.empty()) return longest;
  mesh_->for_each_kind(range,
                       [&](std::size_t k, int) { longest = std::max(longest, layer_ends(k)); });
  return longest;
}

DataCost DataAxis::after_reduction(const StageSums& rank, Seconds first_forward) const {
  DataCost out;
  const FrameworkRules& rules = mesh_->rules();
  const bool sharded = layout_->sharding_stage >= 1;
  const double local = rank.dense_parameters / (sharded ? dense_.size : 1) +
                       rank.expert_parameters / (sharded ? expert_.size : 1);
  const Bytes traffic = bytes_from(local * rules.optimizer_traffic.value);
  out.optimizer = problem_->costs->op(memory_op(OpKind::kOptimizer, DType::kFp32, traffic)).time;
  if (!sharded || layout_->sharding_stage >= 3) return out;
  int buckets = 1;
  const Seconds gather =
      bucketed(Collective::kAllGather, rank.dense_parameters * compute_bytes_, dense_, buckets) +
      bucketed(Collective::kAllGather, rank.expert_parameters * compute_bytes_, expert_, buckets);
  out.gather_exposed = rules.overlap_param_gather.value
                           ? std::max(gather / buckets, gather - first_forward)
                           : gather;
  return out;
}

Seconds DataAxis::tied_reduction() const {
  if (layout_->pipeline <= 1) return {};
  return collective(Collective::kAllReduce,
                    mesh_->tied_parameters() * mesh_->rules().reduce_bytes.value, pair_);
}

Seconds DataAxis::norm_reduction() const {
  constexpr double kNormBytes = 4;  // one fp32 sum of squares
  return collective(Collective::kAllReduce, kNormBytes, everyone_);
}

}  // namespace towtank::detail
