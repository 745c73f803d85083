// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A plan's step written out task by task: what lower() runs, stage of the step by stage of the
/// step. Its parts share one graph that grows:
///
///   lower.cpp                the order of the whole; what each rank does once: ends under sharding
///                            stage 3, tied table, norm, optimizer, gather, host gap, input
///   lowering_actions.cpp     the schedule's actions, their parts and sends, buckets becoming ready
///   lowering_reductions.cpp  gradient reductions on the data streams
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "placement/detail/candidate.h"
#include "sim/detail/actors.h"
#include "sim/detail/phases.h"
#include "sim/detail/units.h"
#include "sim/lower.h"

namespace towtank::detail {

struct FlowRange {
  std::int32_t first = 0, count = 0;
};

/// A communication ready to be made a task.
struct ReadyCommunication {
  Stream stream = Stream::kData;
  TimeComponent component = TimeComponent::kData;
  double latency = 0, transfer = 0;
  FlowRange flows;
};

/// One part of an action, with what depends on the actor worked out for each class of replicas.
struct ReadyPart {
  std::vector<double> compute;                          ///< by class
  std::vector<std::int32_t> split;                      ///< by class
  std::vector<std::vector<ReadyCommunication>> serial;  ///< by class
  std::optional<ReadyCommunication> beside;
  /// In the stage's last backward: as long, but on no link. There the reduction is the tail's, and
  /// what lies beside an average microbatch is none of it.
  std::optional<ReadyCommunication> beside_last;
  double trailing = 0;
};

/// Where and of what a communication is, for reports.
struct Place {
  int stage = -1, microbatch = -1, part = -1;
};

class Lowering {
 public:
  Lowering(const PlanProblem&, const Plan&, const LowerOptions&);
  [[nodiscard]] LoweredStep run();

 private:
  using Ids = std::vector<std::int32_t>;

  // --- small makers -----------------------------------------------------------------------------
  std::int32_t add(Task task, std::span<const std::int32_t> members,
                   std::span<const std::int32_t> before);
  std::int32_t join(std::span<const std::int32_t> members, std::span<const std::int32_t> before) {
    return add({}, members, before);
  }
  std::int32_t communicate(const ReadyCommunication& c, Label label,
                           std::span<const std::int32_t> members,
                           std::span<const std::int32_t> before, const Place& place = {});
  ReadyCommunication ready(const Communication& c, Stream stream, TimeComponent component,
                           const std::vector<Flow>& flows) {
    return {stream,
            component,
            c.latency,
            c.transfer,
            {builder_.add_flows(flows), static_cast<std::int32_t>(flows.size())}};
  }
  ReadyCommunication data_collective(const Communication& c, std::span<const std::int32_t> actors) {
    return ready(c, Stream::kData, TimeComponent::kData, units_.collective(c, actors));
  }
  /// Actors of one pipeline rank.
  Ids rank_actors(int rank) const {
    Ids out;
    for (int c = 0; c < cast_.classes; ++c) out.push_back(cast_.actor(rank, c));
    return out;
  }
  Ids& chain(std::int32_t actor) { return chain_[static_cast<std::size_t>(actor)]; }
  double slowdown(std::int32_t actor) const {
    return cast_.actors[static_cast<std::size_t>(actor)].slowdown;
  }
  std::size_t cell(int replica_class, int stage, int microbatch) const {
    const auto of = [](int value) { return static_cast<std::size_t>(value); };
    return (of(replica_class) * of(stages_) + of(stage)) * of(layout_.microbatches) +
           of(microbatch);
  }

  void step_ends();
  void actions();
  void action(int rank, const Action& a, bool last_of_stage);
  void part(int rank, const Action& a, const ReadyPart& part, bool last_of_stage);
  void send(int rank, const Action& a, bool backward);
  std::vector<Ids> bucket_delays(int rank, const Action& a, std::span<const std::int32_t> entries);
  const std::vector<ReadyPart>& ready_parts(int stage, Phase phase);
  ReadyCommunication hop(int stage, bool backward, std::int32_t from, std::int32_t to);
  void resolve();
  void reductions();
  void reduce_stage(int rank, int stage, Ids& stream);
  void finish();
  std::int32_t optimizer(int rank, std::int32_t before);
  StageSums rank_sums(int rank) const;

  const PlanProblem& problem_;
  Mesh mesh_;
  Layout layout_;
  StepModel model_;
  ActionParts parts_;
  UnitsApart apart_;
  Cast cast_;
  Network network_;
  Units units_;
  LowerOptions options_;
  int stages_;
  bool async_;
  TaskGraphBuilder builder_;
  Ids everyone_;
  std::vector<Ids> chain_;          ///< by actor: what its next action follows
  Ids forward_out_, gradient_out_;  ///< by cell: when the next stage has the data
  struct Pending {
    std::int32_t consumer;
    std::size_t producer;  ///< cell
    bool gradient;
  };
  std::vector<Pending> pending_;
  std::vector<std::vector<std::pair<Phase, std::vector<ReadyPart>>>> ready_;  ///< by stage
  std::vector<std::vector<Ids>> bucket_ready_;  ///< by stage, bucket: what it waits for
  std::map<std::pair<int, std::int32_t>, ReadyCommunication> hops_;  ///< (2 stage + backward, from)
  Ids data_end_;  ///< last reduction of each rank
};

}  // namespace towtank::detail
