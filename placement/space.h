// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The plans that a search may choose from, before any cost: degrees that multiply to the devices,
/// divide what they must divide, and that the framework can run.
///
///   axis             admissible values
///   t                check_shard; at most the devices of a node unless allowed beyond
///   c                powers of two with s % (2c) = 0 and at least 1,024 tokens a rank; a pin may
///                    be any that divides
///   e, tau           e divides the experts; tau in {1, t}; (D c t) % (e tau) = 0
///   p                divides N / (t c); p v <= layers
///   D                N / (t c p); B % D = 0
///   b                divides B / D
///   v                > 1 only where p > 1 and m % p = 0; one v per distinct chunk size
///   schedule         what the framework has; interleaved where v > 1
///   sharding stage   what the framework has (0 or 1 in a pipeline unless it allows more); 0 only
///                    where D c = 1, because stage 1 has its traffic and less memory, or where
///                    the framework hides reductions but not stage 1's gathers
///   sequence par.    with t > 1 wherever the framework has it, for the same reason
///
/// A pin keeps one value of an axis. Recomputation is not an axis: the least that fits is solved
/// for.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/graph/shard.h"
#include "placement/evaluator.h"
#include "placement/plan.h"

namespace towtank {

/// Values that the user fixes.
struct Pins {
  std::optional<int> tensor, pipeline, data, context, expert, expert_tensor, stages_per_rank,
      microbatch, sharding_stage;
  std::optional<bool> sequence_parallel;
  std::optional<ScheduleKind> schedule;
  std::optional<RecomputeMode> recompute;
};

/// The degrees inside a stage: one per (t, c, e, tau, sequence parallelism, b).
using Node = ShardDegrees;

[[nodiscard]] std::vector<ScheduleKind> schedules_of(Framework);

/// All nodes of the space in a fixed order. Empty if the pins leave nothing.
[[nodiscard]] std::vector<Node> nodes_of(const PlanProblem&, Framework, const Pins&);

/// A plan's choices outside a node; stages are not split yet.
struct Shape {
  int pipeline = 1, data = 1, stages_per_rank = 1;
  ScheduleKind schedule = ScheduleKind::kNone;
  int sharding_stage = 0;
  int microbatches = 1;
};

/// All shapes over a node in a fixed order, appended to out (cleared first).
void shapes_of(const PlanProblem&, Framework, const Pins&, const Node&, std::vector<Shape>& out);

/// Why no plan of the space satisfies the pins: each rule with valid values.
[[nodiscard]] std::vector<std::string> why_empty(const PlanProblem&, Framework, const Pins&);

}  // namespace towtank
