// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a plan will do: step time and memory, each as a breakdown that adds up.
///
///     T = makespan(schedule; F_s, I_s, W_s, hops; m) + exposed data reduction + gradient norm
///         + optimizer + exposed parameter gather + host gaps + exposed input
///
///   F_s, I_s, W_s  forward, input- and weight-gradient time of stage s for one microbatch, with
///                  exposed tensor, context and expert communication, gathers of sharding stage 3
///                  and recomputation inside
///   hop            activation or gradient to the next stage
///   m              microbatches per step and replica, B / (D b)
///
/// The makespan is the exact recurrence of the schedule (recurrence.h). The data reduction of a
/// stage runs in buckets on its own stream from its last backward on; what ends after the pipeline
/// is exposed. The breakdown is that of the busiest pipeline rank: its bubble is its idle time.
///
/// Not modelled: contention between kinds of groups (sim/), stragglers.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/cost/cost_model.h"
#include "model/graph/model_graph.h"
#include "model/memory/memory.h"
#include "model/workload.h"
#include "placement/plan.h"
#include "platforms/allocate.h"

namespace towtank {

/// One planning question. Refers to what the caller keeps alive.
struct PlanProblem {
  const ModelGraph* graph = nullptr;
  const Workload* workload = nullptr;
  const Platform* platform = nullptr;
  const CostModel* costs = nullptr;
  NetworkView view;
  Bytes capacity;                    ///< device memory: the least over the allocated kinds
  FlopPerSecond peak;                ///< dense peak of the workload's precision, for MFU
  bool peak_assumed = false;         ///< the device has no such units: a wider dtype's peak
  bool tensor_beyond_node = false;   ///< allow t larger than a node
  std::vector<double> cut_elements;  ///< graph->cut_elements(), worked out once

  [[nodiscard]] int devices() const { return view.devices; }
  [[nodiscard]] const DeviceKind& device() const { return platform->device_kinds[view.device]; }
};

[[nodiscard]] std::variant<PlanProblem, TooManyDevices> make_problem(const ModelGraph&,
                                                                     const Workload&,
                                                                     const Platform&, int devices);
/// costs is nullptr until set: build the cost model for problem.device() and problem.view.

/// One step of the busiest pipeline rank; the parts sum to step_time.
struct StepBreakdown {
  std::array<Seconds, kOpKindCount> compute{};  ///< forward and backward by op kind
  Seconds recompute;                            ///< repeated forward, communication included
  std::array<Seconds, kAxisCount> exposed{};    ///< communication that nothing hides, by axis
  Seconds bubble;                               ///< idle of the pipeline, hops excluded
  Seconds optimizer;
  Seconds host_gaps;
  Seconds input;  ///< loading that the step does not hide
  [[nodiscard]] Seconds compute_total() const;
  [[nodiscard]] Seconds total() const;
};

struct Interval {
  Seconds low, high;
};

struct Prediction {
  Seconds step_time;
  StepBreakdown step;
  Interval interval50, interval90;
  std::array<double, kBasisCount> basis{};  ///< share of the predicted work on each basis
  std::vector<MemoryBreakdown> memory;      ///< by pipeline rank
  int peak_rank = 0;                        ///< pipeline rank with the largest total
  Fit fit = Fit::kFits;
  int microbatches = 1;
  double mfu = 0, hfu = 0;  ///< published convention (4 s q), hardware FLOP
  double samples_per_second = 0, tokens_per_second_per_device = 0;
  std::optional<Usd> cost_per_step;
  std::vector<std::string> assumptions;  ///< what no source gives and was taken
  [[nodiscard]] const MemoryBreakdown& peak_memory() const {
    return memory[static_cast<std::size_t>(peak_rank)];
  }
};

/// The seam between closed form and simulation.
class PlanEvaluator {
 public:
  PlanEvaluator() = default;
  PlanEvaluator(const PlanEvaluator&) = delete;
  PlanEvaluator& operator=(const PlanEvaluator&) = delete;
  virtual ~PlanEvaluator() = default;
  /// Pre: check_plan finds nothing and plan.stages is expanded.
  [[nodiscard]] virtual Prediction evaluate(const Plan&) const = 0;
};

class ClosedFormEvaluator final : public PlanEvaluator {
 public:
  /// Pre: problem.costs is set; the problem outlives the evaluator.
  explicit ClosedFormEvaluator(const PlanProblem& problem) : problem_(&problem) {}
  [[nodiscard]] Prediction evaluate(const Plan&) const override;

 private:
  const PlanProblem* problem_;
};

}  // namespace towtank
