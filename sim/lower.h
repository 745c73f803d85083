// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A plan made into the tasks of one step and the links that they share, from the numbers of the
/// closed form's own step model. Without contention the makespan equals
/// ClosedFormEvaluator::evaluate(plan).step_time to rounding.
///
///   ends of the step (sharding stage 3) -> the schedule's actions on each pipeline rank
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
/// Traffic of others is asked by the names of links (link_names_fault). A link that is loaded
/// otherwise than its likes is never folded with them, nor are the replicas behind it.
///
/// Not modelled: communication inside a node within an action (a part of its duration), exchanges
/// layer by layer, jitter.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/evaluator.h"
#include "sim/task_graph.h"

namespace towtank {

struct Straggler {
  int rank = 0;         ///< global rank
  double slowdown = 1;  ///< its computation takes so many times as long; > 0
};

/// What others send over some links while the step runs. On each of them it is one flow, which
/// gives way as any flow does where more meets on the link than it carries.
struct Background {
  std::string links;       ///< "leaf": out of and into every leaf; "node 3", "node 3 rail 0"
  std::optional<bool> up;  ///< one direction only: out of (true) or into
  double share = 0;        ///< of each link's capacity, (0, 1]; or 0 and
  BytesPerSecond rate;     ///< on each link, > 0; no more than the link carries
  Bytes burst;             ///< 0: steady. Else bursts of so many bytes at the link's whole rate, at
                           ///< random times of each link, with `share` or `rate` as their mean
};
/// What is wrong with the name of a Background's links; empty if some link is named so.
[[nodiscard]] std::string link_names_fault(const PlanProblem&, const std::string& links);

struct LowerOptions {
  bool fold_replicas = true;
  std::vector<Straggler> stragglers;
  std::vector<Background> background;
  std::uint64_t seed = 1;  ///< of random bursts
  int job = 0;             ///< of every task
};

struct LoweredStep {
  TaskGraph tasks;
  Network network;
};

/// Pre: problem.costs is set; check_plan finds nothing; plan.stages is expanded; ranks of
/// stragglers are in [0, devices); link_names_fault finds nothing.
[[nodiscard]] LoweredStep lower(const PlanProblem&, const Plan&, const LowerOptions& = {});

}  // namespace towtank
