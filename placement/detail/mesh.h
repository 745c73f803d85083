// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What depends on the degrees inside a stage only (t, c, e, tau, b, sequence parallelism): local
/// layers, their cost, and sums over ranges of layers in constant time. One Mesh serves every
/// pipeline depth, data degree, schedule and sharding stage over it.
#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "model/cost/layer_cost.h"
#include "placement/evaluator.h"

namespace towtank::detail {

/// Layers [first, last) of the free layers, plus the pinned ones at the ends of the pipeline.
struct StageRange {
  int first = 0, last = 0;
  int full = 0, selective = 0;  ///< of its layers: the first `full`, then `selective`
  bool has_first = false, has_last = false;
};

/// Sums over a stage for one microbatch.
struct StageSums {
  Seconds forward, input_grad, weight_grad;  ///< recomputation is in input_grad
  Seconds recompute;
  double dense_parameters = 0, expert_parameters = 0;
};

class Mesh {
 public:
  /// Pre: the degrees are valid for every layer kind of the problem's graph.
  Mesh(const PlanProblem& problem, const ShardDegrees& degrees, Framework framework);

  [[nodiscard]] const ShardDegrees& degrees() const { return degrees_; }
  [[nodiscard]] const FrameworkRules& rules() const { return *rules_; }
  [[nodiscard]] const RuntimeCosts& runtime() const { return runtime_; }
  [[nodiscard]] int free_layers() const { return static_cast<int>(forward_.size()) - 1; }
  [[nodiscard]] StageSums sums(const StageRange&) const;
  /// Forward plus backward of everything, without recomputation: the node bound's S.
  [[nodiscard]] Seconds whole_time() const;
  /// Time of one free layer, forward plus backward; of the pinned layers at either end.
  [[nodiscard]] Seconds layer_time(int layer) const;
  [[nodiscard]] Seconds first_time() const {
    return first_.forward + first_.input_grad + first_.weight_grad;
  }
  [[nodiscard]] Seconds last_time() const {
    return last_.forward + last_.input_grad + last_.weight_grad;
  }
  [[nodiscard]] bool uniform() const { return uniform_; }  ///< all free layers of one kind
  /// The layers of pipeline rank r (stages r, r + p, ...), grouped by kind and recompute mode.
  void rank_layers(std::span<const StageRange> stages, int rank, int pipeline,
                   std::vector<StageLayers>& out) const;
  /// Calls f(kind index, count) for the layers of a stage, pinned ones included.
  template <class F>
  void for_each_kind(const StageRange& range, F&& f) const {
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      const int n = counts_[k][static_cast<std::size_t>(range.last)] -
                    counts_[k][static_cast<std::size_t>(range.first)] +
                    (range.has_first ? pinned_first_[k] : 0) +
                    (range.has_last ? pinned_last_[k] : 0);
      if (n > 0) f(k, n);
    }
  }
  [[nodiscard]] const LocalLayer& local(std::size_t kind) const { return local_[kind]; }
  [[nodiscard]] const LayerCost& cost(std::size_t kind) const { return cost_[kind]; }
  [[nodiscard]] std::size_t kinds() const { return local_.size(); }
  /// Elements of one microbatch that cross the cut before a free layer, on this rank.
  [[nodiscard]] Bytes boundary(int layer) const {
    // Behind the last layer, before a stage of the head alone, the width is that before it.
    return boundary_[std::min(static_cast<std::size_t>(layer), boundary_.size() - 1)];
  }
  [[nodiscard]] double tied_parameters() const { return tied_parameters_; }

 private:
  void add_layer(std::size_t kind);

  ShardDegrees degrees_;
  const FrameworkRules* rules_;
  RuntimeCosts runtime_;
  std::vector<LocalLayer> local_;  ///< by kind
  std::vector<LayerCost> cost_;    ///< by kind
  std::vector<double> forward_, input_grad_, weight_grad_, rerun_full_, rerun_selective_;
  std::vector<double> dense_, expert_;
  std::vector<std::vector<int>> counts_;  ///< by kind: prefix count over free layers
  std::vector<int> pinned_first_, pinned_last_;
  std::vector<Bytes> boundary_;
  StageSums first_, last_;
  double tied_parameters_ = 0;
  bool uniform_ = true;
};

/// Mesh(...).whole_time() without the rest, for many degrees: layers without experts cost the same
/// under every expert degree and are costed once.
class WholeTimes {
 public:
  WholeTimes(const PlanProblem& problem, Framework framework);
  [[nodiscard]] Seconds operator()(const ShardDegrees&);

 private:
  [[nodiscard]] Seconds of_kinds(const ShardDegrees&, bool experts) const;

  const PlanProblem* problem_;
  const FrameworkRules* rules_;
  RuntimeCosts runtime_;
  std::vector<int> layers_;                                ///< by kind
  std::map<std::array<int, 4>, Seconds> without_experts_;  ///< by t, c, b, sequence parallelism
};

}  // namespace towtank::detail
