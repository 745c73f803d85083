// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A plan made into the tasks of one step and the links that they share, from the numbers of the
/// closed form's own step model. Without contention the makespan equals
/// ClosedFormEvaluator::evaluate(plan).step_time to rounding.
///
///   first gather (sharding stage 3) -> the schedule's actions on each pipeline rank
///     -> buckets of gradient reduction, ready while the last backward of their stage runs
///     -> all ranks: tied table, gradient norm -> optimizer -> parameter gather -> host gap
///   sends between stages: on the pipeline stream, or in the sender's order where the framework
///   sends synchronously; input loading beside the whole step
///
/// Folding. Replicas that behave alike are one actor, and links that then carry the same load at
/// the same times are one link, so that a step costs the same for 2 replicas and for 2,000. Tensor,
/// context and expert peers of a replica wait for each other in every layer and are always one
/// actor. A replica with a slow rank is never folded with others; where an expert group spans
/// replicas, all of them are as slow.
///
/// Not modelled: communication inside a node within an action (a part of its duration), exchanges
/// layer by layer, jitter.
#include <vector>

#include "placement/evaluator.h"
#include "sim/task_graph.h"

namespace towtank {

struct Straggler {
  int rank = 0;         ///< global rank
  double slowdown = 1;  ///< its computation takes so many times as long; > 0
};

struct LowerOptions {
  bool fold_replicas = true;
  std::vector<Straggler> stragglers;
  int job = 0;  ///< of every task
};

struct LoweredStep {
  TaskGraph tasks;
  Network network;
};

/// Pre: problem.costs is set; check_plan finds nothing; plan.stages is expanded; ranks of
/// stragglers are in [0, devices).
[[nodiscard]] LoweredStep lower(const PlanProblem&, const Plan&, const LowerOptions& = {});

}  // namespace towtank
