// SPDX-License-Identifier: Apache-2.0
#include "model/memory/memory.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {
namespace {

/// Sums over the layers of a rank, before any sharding over data ranks.
struct StageSums {
  double dense = 0, expert = 0;  ///< parameters
  double saved = 0;              ///< bytes of one microbatch in flight
  std::int64_t logits = 0;
  std::int64_t recompute_set = 0;
  std::int64_t transient = 0;
  double largest_unit = 0;  ///< parameters of the largest gathered unit
};

double kept_input(const StageMemoryInput& in, const FrameworkRules& rules,
                  const LocalLayer& layer) {
  const auto input = static_cast<double>(layer.saved.layer_input.value);
  const bool distributed = rules.distribute_saved.value && !in.sequence_parallel;
  return distributed ? input / in.tensor : input;
}

double unit_parameters(const StageLayers& group, const FrameworkRules& rules) {
  const double layer = group.layer->dense_parameters + group.layer->expert_parameters;
  return layer * std::min(group.count, rules.gather_layers.value);
}

StageSums sum_stage(const StageMemoryInput& in, const FrameworkRules& rules) {
  StageSums sums;
  sums.dense = in.extra_parameters;
  for (const StageLayers& group : in.layers) {
    if (group.count == 0) continue;
    const LocalLayer& layer = *group.layer;
    const Bytes saved = saved_bytes(layer, group.recompute, rules);
    sums.dense += group.count * layer.dense_parameters;
    sums.expert += group.count * layer.expert_parameters;
    sums.saved +=
        group.count * (group.recompute == RecomputeMode::kFull ? kept_input(in, rules, layer)
                                                               : static_cast<double>(saved.value));
    sums.logits = std::max(sums.logits, layer.saved.logits.value);
    sums.recompute_set =
        std::max(sums.recompute_set, (layer.saved.without_recompute() - saved).value);
    sums.transient = std::max(sums.transient, layer.transient.value);
    sums.largest_unit = std::max(sums.largest_unit, unit_parameters(group, rules));
  }
  return sums;
}

/// Parameters of the `units` largest units: layers of a kind count as often as they occur.
double largest_units(const StageMemoryInput& in, const FrameworkRules& rules, int units) {
  double sum = 0;
  double below = -1;  // parameters of the last unit taken; kinds at least as large are used up
  while (units > 0) {
    double largest = 0;
    int copies = 0;
    for (const StageLayers& group : in.layers) {
      if (group.count == 0) continue;
      const double unit = unit_parameters(group, rules);
      if ((below >= 0 && unit >= below) || unit < largest) continue;
      const int of_group = std::max(1, group.count / std::max(1, rules.gather_layers.value));
      copies = unit > largest ? of_group : copies + of_group;
      largest = unit;
    }
    if (copies == 0) break;
    const int taken = std::min(units, copies);
    sum += taken * largest;
    units -= taken;
    below = largest;
  }
  return sum;
}

/// Parameters that are whole on this rank, in the compute type, beside its shard.
double gathered_parameters(const StageMemoryInput& in, const FrameworkRules& rules,
                           const StateBytes& states, const StageSums& sums) {
  const double all = sums.dense + sums.expert;
  if (in.sharding_stage < states.parameter_from) return 0;
  // A group of one rank computes with what it stores, unless the stored type is another one.
  const bool alone = in.data_shards == 1 && in.expert_data_shards == 1;
  if (alone && states.parameter_from == 3) return 0;
  const bool dropped = in.sharding_stage == 3 && (in.pipelined ? rules.reshard_in_pipeline.value
                                                               : rules.reshard_after_forward.value);
  if (!dropped) return all;
  const double units = largest_units(in, rules, 1 + rules.prefetch_units.value);
  return std::max(units, std::min(all, rules.live_parameters.value));
}

bool deferred_reduction(const StageMemoryInput& in, const FrameworkRules& rules) {
  const ReduceCadence cadence =
      in.pipelined ? rules.reduce_cadence_pipeline.value : rules.reduce_cadence_high.value;
  return in.sharding_stage >= 2 && in.microbatches > 1 && cadence == ReduceCadence::kPerStep;
}

/// A part of the states on this rank; whole below its sharding stage.
double sharded(const StageMemoryInput& in, const StageSums& sums, double bytes, int from) {
  if (in.sharding_stage < from) return bytes * (sums.dense + sums.expert);
  return bytes * (sums.dense / in.data_shards + sums.expert / in.expert_data_shards);
}

double bucket_bytes(const StageMemoryInput& in, const FrameworkRules& rules,
                    const StateBytes& states, const StageSums& sums) {
  const double gradients = states.gradient * (sums.dense + sums.expert);
  const bool reduces = in.data_shards > 1 || in.expert_data_shards > 1;
  if (!reduces) return 0;
  if (rules.bucket_all_gradients.value && in.sharding_stage == 0) return gradients;
  const auto bucket = static_cast<double>(rules.bucket_bytes.value.value);
  return rules.bucket_copies.value * std::min(bucket, gradients);
}

/// What every phase holds.
MemoryBreakdown static_part(const StageMemoryInput& in, const FrameworkRules& rules,
                            const StateBytes& states, const StageSums& sums) {
  const double all = sums.dense + sums.expert;
  MemoryBreakdown m;
  m.parameters = bytes_from(sharded(in, sums, states.parameter, states.parameter_from));
  double gradients = sharded(in, sums, states.gradient, 2) + states.extra * all;
  if (deferred_reduction(in, rules)) gradients += states.gradient * all;
  m.gradients = bytes_from(gradients);
  m.optimizer = bytes_from(sharded(in, sums, states.optimizer, 1));
  m.buffers = rules.buffer_bytes.value + bytes_from(bucket_bytes(in, rules, states, sums));
  m.context = in.context.value_or(rules.context_bytes.value);
  return m;
}

double unit_gradient(const StageMemoryInput& in, const FrameworkRules& rules,
                     const StateBytes& states, const StageSums& sums) {
  const bool alone = in.data_shards == 1 && in.expert_data_shards == 1;
  if (in.sharding_stage < 2 || alone || deferred_reduction(in, rules)) return 0;
  return states.gradient * sums.largest_unit;
}

double step_temporaries(const StageMemoryInput& in, const FrameworkRules& rules,
                        const StageSums& sums) {
  double updated = sharded(in, sums, 1, 1);
  const double group = rules.optimizer_group.value;
  if (in.sharding_stage == 3 && group > 0) updated = std::min(updated, group);
  return rules.optimizer_temporary.value * updated;
}

Bytes reserve_of(const StageMemoryInput& in, Bytes allocated, const FrameworkRules& rules) {
  const double factor = in.reserved_factor.value_or(rules.reserved_factor.value);
  return bytes_from((factor - 1) * static_cast<double>(allocated.value));
}

}  // namespace

Bytes MemoryBreakdown::allocated() const {
  return parameters + gradients + optimizer + activations + logits + working + buffers;
}

Bytes MemoryBreakdown::reserved() const { return allocated() + reserve; }

Bytes MemoryBreakdown::total() const { return reserved() + context; }

Bytes saved_bytes(const LocalLayer& layer, RecomputeMode mode, const FrameworkRules& rules) {
  switch (mode) {
    case RecomputeMode::kNone:
      return layer.saved.without_recompute();
    case RecomputeMode::kFull:
      return layer.saved.layer_input;
    case RecomputeMode::kSelective: {
      Bytes kept = layer.saved.layer_input;
      for (std::size_t i = 0; i < kRecomputeGroupCount; ++i) {
        const bool dropped = (rules.selective_groups.value >> i & 1U) != 0;
        const Bytes group = layer.saved.by_group[i];
        if (!dropped) {
          kept += group;
        } else if (i == static_cast<std::size_t>(RecomputeGroup::kMlp)) {
          kept += bytes_from(rules.selective_mlp_kept.value * static_cast<double>(group.value));
        }
      }
      return kept;
    }
  }
  contract_violated("EXPECTS", "mode is one of the enumerators", __FILE__, __LINE__);
}

std::array<MemoryBreakdown, kMemoryPhaseCount> stage_memory_phases(const StageMemoryInput& in,
                                                                   const FrameworkRules& rules,
                                                                   const StateBytes& states) {
  EXPECTS(in.data_shards >= 1 && in.expert_data_shards >= 1 && in.tensor >= 1);
  EXPECTS(in.sharding_stage >= 0 && in.sharding_stage <= 3);
  EXPECTS(in.microbatches_in_flight >= 0);
  const StageSums sums = sum_stage(in, rules);
  const MemoryBreakdown held = static_part(in, rules, states, sums);
  const double gathered = states.gathered * gathered_parameters(in, rules, states, sums);
  const Bytes activations = bytes_from(in.microbatches_in_flight * sums.saved);

  MemoryBreakdown backward = held;
  backward.activations = activations;
  backward.working = bytes_from(gathered + unit_gradient(in, rules, states, sums)) +
                     Bytes{sums.recompute_set} + Bytes{sums.transient};
  MemoryBreakdown loss = held;
  loss.phase = MemoryPhase::kLoss;
  loss.activations = activations;
  loss.working = bytes_from(gathered);
  loss.logits = Bytes{sums.logits};
  MemoryBreakdown optimizer = held;
  optimizer.phase = MemoryPhase::kOptimizer;
  optimizer.working = bytes_from(step_temporaries(in, rules, sums));

  std::array<MemoryBreakdown, kMemoryPhaseCount> phases{backward, loss, optimizer};
  for (MemoryBreakdown& m : phases) m.reserve = reserve_of(in, m.allocated(), rules);
  return phases;
}

MemoryBreakdown stage_memory(const StageMemoryInput& in, const FrameworkRules& rules,
                             const StateBytes& states) {
  const auto phases = stage_memory_phases(in, rules, states);
  return *std::max_element(phases.begin(), phases.end(),
                           [](const MemoryBreakdown& a, const MemoryBreakdown& b) {
                             return a.allocated() < b.allocated();
                           });
}

Fit fit_of(Bytes total, Bytes capacity) {
  // 0.95 and 1.05 as whole ratios, so that the ends of the band are exact.
  if (20 * total < 19 * capacity) return Fit::kFits;
  if (20 * total > 21 * capacity) return Fit::kOom;
  return Fit::kBorderline;
}

}  // namespace towtank
