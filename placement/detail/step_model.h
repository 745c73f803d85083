// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Step time and memory of one plan on a Mesh, with every part named: what ClosedFormEvaluator
/// reports and what the search compares. See placement/evaluator.h for the equation.
#include <optional>
#include <vector>

#include "placement/detail/mesh.h"
#include "placement/recurrence.h"

namespace towtank::detail {

/// The choices of a plan that lie outside a Mesh, with its stages as ranges.
struct Layout {
  int pipeline = 1, data = 1, stages_per_rank = 1;
  ScheduleKind schedule = ScheduleKind::kNone;
  int sharding_stage = 0;
  int microbatches = 1;
  std::optional<StateBytes> states;  ///< nullopt: the framework's own
  std::vector<StageRange> stages;    ///< pipeline * stages_per_rank
};

/// What reduces and gathers parameters of one pipeline rank.
struct DataCost {
  Seconds gather_exposed;  ///< stages 1, 2: parameters gathered after the optimizer
  Seconds optimizer;
};

/// Groups and per-kind costs of the data axes: they depend on t, c, p, D, e, tau.
class DataAxis {
 public:
  DataAxis(const PlanProblem&, const Mesh&, const Layout&);

  [[nodiscard]] int shards() const { return dense_.size; }
  [[nodiscard]] int expert_shards() const { return expert_.size; }
  /// What gathers and per-microbatch reductions add to a stage's forward and backward.
  struct Extra {
    Seconds forward, backward;
  };
  [[nodiscard]] Extra per_microbatch(const StageRange&, const StageSums&) const;
  /// Sharding stage 3 with somebody to share with: each layer gathers and reduces for itself.
  [[nodiscard]] bool by_layer() const { return !kinds_.empty(); }
  /// Share of a step's microbatches in which a layer does so (1, or 1/m for once a step).
  struct LayerCadence {
    double gathers = 1;     ///< before its forward
    bool regather = false;  ///< before its backward, always
    double reductions = 1;  ///< after its backward
  };
  [[nodiscard]] LayerCadence layer_cadence() const;
  /// Duration of the step's last reduction of a stage, and the number of buckets it comes in.
  struct Reduction {
    Seconds time;
    int buckets = 1;
  };
  [[nodiscard]] Reduction reduction(const StageSums&) const;
  [[nodiscard]] DataCost after_reduction(const StageSums& rank, Seconds first_forward) const;
  /// What the ends of a step add under sharding stage 3: nothing hides the gather before its first
  /// forward and the reduction after its last backward, while the layers there have less beside
  /// them than per_microbatch counts for every layer. With g, r a layer's gather and reduction, F
  /// and B its forward and backward, and one layer prefetched:
  ///     gathered again in backward  (1 - interference) * (2 min(g + r, B) - min(g, B) - min(r, B))
  ///     kept from the forward       (1 - interference) * (min(g, F) + min(r, B))
  /// So g + r where computation binds, nothing where both g and r take longer than B.
  [[nodiscard]] Seconds layer_ends(std::size_t kind) const;
  /// The longest over the layers of a stage.
  [[nodiscard]] Seconds step_ends(const StageRange&) const;
  /// Reduction of a table held by the first and the last stage.
  [[nodiscard]] Seconds tied_reduction() const;
  [[nodiscard]] Seconds norm_reduction() const;
  [[nodiscard]] const StateBytes& state() const { return state_; }
  /// Groups that reduce dense gradients, expert ones, and a table that both ends hold.
  [[nodiscard]] const GroupShape& dense_group() const { return dense_; }
  [[nodiscard]] const GroupShape& expert_group() const { return expert_; }
  [[nodiscard]] const GroupShape& pair_group() const { return pair_; }
  [[nodiscard]] double compute_bytes() const { return compute_bytes_; }

 private:
  struct KindCost {
    Seconds gather, reduce;
  };
  [[nodiscard]] Seconds collective(Collective op, double bytes, const GroupShape& group) const;
  [[nodiscard]] Seconds bucketed(Collective op, double bytes, const GroupShape& group,
                                 int& buckets) const;

  const PlanProblem* problem_;
  const Mesh* mesh_;
  const Layout* layout_;
  GroupShape dense_, expert_, everyone_, pair_;
  StateBytes state_;
  double compute_bytes_ = 2;     ///< of a parameter on the wire
  std::vector<KindCost> kinds_;  ///< sharding stage 3, one layer
};

/// Everything the step's time is made of.
struct StepTimes {
  Seconds total;
  Seconds makespan;
  Seconds data_exposed;  ///< after the pipeline, with the step's ends and the optimizer's gather
  Seconds optimizer;
  int busiest_rank = 0;
  Seconds busiest;  ///< its busy time
};

class StepModel {
 public:
  StepModel(const PlanProblem&, const Mesh&, const Layout&);

  [[nodiscard]] StepTimes times() const;
  /// Without hops: what hops add to the makespan is pipeline communication.
  [[nodiscard]] Seconds makespan_without_hops() const;
  [[nodiscard]] const DataAxis& data() const { return data_; }
  [[nodiscard]] const std::vector<StageTime>& stage_times() const { return stages_; }
  [[nodiscard]] const std::vector<HopTime>& hops() const { return hops_; }
  [[nodiscard]] const StageSums& stage_sums(int stage) const {
    return sums_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] Seconds exposed_data_per_microbatch(int stage) const {
    return extra_[static_cast<std::size_t>(stage)];
  }
  /// Synchronous sends of a stage, both directions, one microbatch.
  [[nodiscard]] Seconds sends(int stage) const { return sends_[static_cast<std::size_t>(stage)]; }

 private:
  [[nodiscard]] StageSums rank_sums(int rank) const;
  [[nodiscard]] Seconds tail(const ScheduleTimes&) const;

  const PlanProblem* problem_;
  const Mesh* mesh_;
  const Layout* layout_;
  DataAxis data_;
  std::vector<StageSums> sums_;
  std::vector<StageTime> stages_;
  std::vector<Seconds> extra_, sends_;
  std::vector<HopTime> hops_;
};

}  // namespace towtank::detail
