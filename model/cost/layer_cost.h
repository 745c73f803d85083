// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one layer costs one rank for one microbatch: the sum of its ops, and the part of its
/// collectives that computation does not hide.
///
///   forward     = sum op(forward) + host gap + exposed
///   input_grad  = sum op(input_grad) + host gap + exposed backward
///   weight_grad = sum op(weight_grad)
///   op          = its lone time (CostModel) * compute_factor, or attention_factor
///   host gap    = max(0, kernels of the pass * host_per_kernel - sum op): the device waits for
///                 launches
///   exposed     = t_c (1 - tensor_overlap)             tensor axis
///               = max(0, t_c - (c-1)/c attention)      where a ring overlaps attention
///               = max(0, hidden t_c - weight_grad)     repeated gathers of weight gradients
///               = t_c                                  otherwise
///
/// All in seconds; t_c is a collective's lone time (CostModel). Not modelled here: the
/// data-parallel axis, which the evaluator adds, and contention (sim/).
#include <array>

#include "model/cost/cost_model.h"
#include "model/graph/shard.h"
#include "model/memory/memory.h"

namespace towtank {

/// The process group of each axis as it lies on the machine.
struct AxisGroups {
  std::array<GroupShape, kAxisCount> shape;
  [[nodiscard]] const GroupShape& of(Axis axis) const {
    return shape[static_cast<std::size_t>(axis)];
  }
};

struct LayerCost {
  Seconds forward, input_grad, weight_grad;  ///< compute plus exposed communication
  std::array<Seconds, kOpKindCount> compute_forward{}, compute_backward{};
  std::array<Seconds, kAxisCount> exposed_forward{}, exposed_backward{};
  std::array<Seconds, kRecomputeGroupCount> rerun{};    ///< forward compute of a recompute group
  std::array<Flop, kRecomputeGroupCount> rerun_work{};  ///< the FLOP of it
  std::array<Seconds, kBasisCount> basis{};             ///< time that rests on each basis
  Seconds host_gap_forward, host_gap_backward;          ///< inside forward and input_grad
  Flop work_forward, work_backward;                     ///< what runs on this rank

  [[nodiscard]] Seconds backward() const { return input_grad + weight_grad; }
  /// Forward repeated by a recompute mode, its communication included for a full one.
  [[nodiscard]] Seconds recompute(RecomputeMode mode, const FrameworkRules& rules) const;
  [[nodiscard]] Flop recompute_work(RecomputeMode mode, const FrameworkRules& rules) const;
};

[[nodiscard]] LayerCost layer_cost(const LocalLayer&, const CostModel&, const AxisGroups&,
                                   const FrameworkRules&, const RuntimeCosts&);

}  // namespace towtank
