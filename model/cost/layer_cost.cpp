// SPDX-License-Identifier: Apache-2.0
#include "model/cost/layer_cost.h"

#include <algorithm>

namespace towtank {
namespace {

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

struct Compute {
  Seconds forward, input_grad, weight_grad;
  Seconds attention_forward, attention_backward;
  int kernels_forward = 0, kernels_backward = 0;
};

Seconds add_op(LayerCost& out, const OpSignature& signature, const CostModel& costs,
               const RuntimeCosts& runtime, int& kernels) {
  if (signature.work.value <= 0 && signature.traffic.value <= 0) return {};
  kernels += signature.kernels;
  const OpCost cost = costs.op(signature);
  const bool attention = signature.kind == OpKind::kAttention && signature.fused;
  const Seconds time = (attention ? runtime.attention_factor : runtime.compute_factor) * cost.time;
  out.basis[index_of(cost.basis)] += time;
  return time;
}

Compute add_ops(LayerCost& out, const LocalLayer& layer, const CostModel& costs,
                const RuntimeCosts& runtime) {
  Compute sum;
  for (const LocalOp& op : layer.ops) {
    const std::size_t kind = index_of(op.op->kind);
    const Seconds forward = add_op(out, op.forward, costs, runtime, sum.kernels_forward);
    const Seconds input_grad = add_op(out, op.input_grad, costs, runtime, sum.kernels_backward);
    const Seconds weight_grad = add_op(out, op.weight_grad, costs, runtime, sum.kernels_backward);
    sum.forward += forward;
    sum.input_grad += input_grad;
    sum.weight_grad += weight_grad;
    if (op.op->kind == OpKind::kAttention) {
      sum.attention_forward += forward;
      sum.attention_backward += input_grad + weight_grad;
    }
    out.compute_forward[kind] += forward;
    out.compute_backward[kind] += input_grad + weight_grad;
    out.rerun[index_of(op.op->group)] += forward;
    out.rerun_work[index_of(op.op->group)] += op.forward.work;
    out.work_forward += op.forward.work;
    out.work_backward += op.input_grad.work + op.weight_grad.work;
  }
  return sum;
}

/// What of a collective's time t computation does not hide.
Seconds exposed(const LocalCollective& call, Seconds t, Seconds attention, int context,
                const FrameworkRules& rules) {
  if (call.collective->overlaps_attention) {
    const double share = static_cast<double>(context - 1) / std::max(context, 1);
    return std::max(Seconds{0}, t - share * attention);
  }
  return call.axis == Axis::kTensor ? (1.0 - rules.tensor_overlap.value) * t : t;
}

void add_collectives(LayerCost& out, const LocalLayer& layer, const Compute& compute,
                     const CostModel& costs, const AxisGroups& groups,
                     const FrameworkRules& rules) {
  const int context = groups.of(Axis::kContext).size;
  Seconds hidden;
  for (const LocalCollective& call : layer.collectives) {
    const GroupShape& group = groups.of(call.axis);
    if (group.size <= 1 || call.payload.value <= 0) continue;
    const auto lone = [&](Collective op) {
      const CollectiveCost cost = costs.collective({op, call.payload, group});
      return std::pair{cost.time(), cost.basis};
    };
    const auto [forward, basis] = lone(call.forward);
    const Seconds backward = call.backward == call.forward ? forward : lone(call.backward).first;
    const std::size_t axis = index_of(call.axis);
    out.exposed_forward[axis] +=
        exposed(call, call.forward_count * forward, compute.attention_forward, context, rules);
    out.exposed_backward[axis] +=
        exposed(call, call.backward_count * backward, compute.attention_backward, context, rules);
    hidden += call.hidden_backward_count * forward;
    out.basis[index_of(basis)] += call.forward_count * forward + call.backward_count * backward;
  }
  out.exposed_backward[index_of(Axis::kTensor)] +=
      std::max(Seconds{0}, hidden - compute.weight_grad);
}

/// The sum of the groups that selective recomputation repeats.
template <class Q>
Q selected(const std::array<Q, kRecomputeGroupCount>& groups, const FrameworkRules& rules) {
  Q sum;
  for (std::size_t g = 0; g < kRecomputeGroupCount; ++g) {
    if ((rules.selective_groups.value >> g & 1U) == 0U) continue;
    const bool mlp = g == index_of(RecomputeGroup::kMlp);
    sum += (mlp ? 1.0 - rules.selective_mlp_kept.value : 1.0) * groups[g];
  }
  return sum;
}

}  // namespace

Seconds LayerCost::recompute(RecomputeMode mode, const FrameworkRules& rules) const {
  switch (mode) {
    case RecomputeMode::kNone:
      return {};
    case RecomputeMode::kFull:
      return forward;
    case RecomputeMode::kSelective:
      return selected(rerun, rules);
  }
  return {};
}

Flop LayerCost::recompute_work(RecomputeMode mode, const FrameworkRules& rules) const {
  switch (mode) {
    case RecomputeMode::kNone:
      return {};
    case RecomputeMode::kFull:
      return work_forward;
    case RecomputeMode::kSelective:
      return selected(rerun_work, rules);
  }
  return {};
}

LayerCost layer_cost(const LocalLayer& layer, const CostModel& costs, const AxisGroups& groups,
                     const FrameworkRules& rules, const RuntimeCosts& runtime) {
  LayerCost out;
  const Compute compute = add_ops(out, layer, costs, runtime);
  add_collectives(out, layer, compute, costs, groups, rules);
  out.host_gap_forward =
      std::max(Seconds{0}, compute.kernels_forward * runtime.host_per_kernel - compute.forward);
  out.host_gap_backward = std::max(Seconds{0}, compute.kernels_backward * runtime.host_per_kernel -
                                                   compute.input_grad - compute.weight_grad);
  out.forward = compute.forward + out.host_gap_forward;
  out.input_grad = compute.input_grad + out.host_gap_backward;
  out.weight_grad = compute.weight_grad;
  for (std::size_t a = 0; a < kAxisCount; ++a) {
    out.forward += out.exposed_forward[a];
    out.input_grad += out.exposed_backward[a];
  }
  return out;
}

}  // namespace towtank
