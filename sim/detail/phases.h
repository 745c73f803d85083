// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one action (stage, phase) does, in parts that run one after the other:
///
///     part = max(work + fixed + serial, beside + trailing)
///
///   work      computation; a slow device stretches it                                   [s]
///   fixed     host gaps, exposed communication inside the node                          [s]
///   serial    exposed communication between nodes, one task an axis and part
///   beside    data-parallel gathers and reductions on the data stream meanwhile
///   trailing  what their interference with the computation adds                        [s]
///
/// The parts of an action sum to the closed form's duration of it (placement/detail/step_model.h)
/// without synchronous sends. Under sharding stage 3 each layer kind is a part, because each hides
/// its own gathers. Not modelled: exchanges between nodes layer by layer (one task carries those of
/// a part); gathers beside a split backward (ZB-H1), which stay inside its duration.
#include <optional>
#include <vector>

#include "placement/detail/step_model.h"
#include "sim/detail/communication.h"
#include "sim/task_graph.h"

namespace towtank::detail {

struct Exchange {
  Stream stream = Stream::kTensor;
  TimeComponent component = TimeComponent::kTensor;
  Communication communication;
};

struct ActionPart {
  TimeSplit work{}, fixed{};
  std::vector<Exchange> serial;
  std::optional<Communication> beside;
  double trailing = 0;

  void add(const ActionPart& other, double times = 1);
  [[nodiscard]] double time() const;
};

class ActionParts {
 public:
  /// Everything outlives it.
  ActionParts(const PlanProblem&, const Mesh&, const Layout&, const StepModel&);

  [[nodiscard]] std::vector<ActionPart> of(int stage, Phase phase) const;
  /// DataAxis::step_ends: first gather and last reduction, as far as nothing hides them.
  [[nodiscard]] Communication step_ends(int stage) const;

 private:
  enum class Pass { kForward, kInputGrad, kWeightGrad };
  [[nodiscard]] ActionPart kind_part(std::size_t kind, Pass pass) const;
  [[nodiscard]] ActionPart recompute_part(int stage) const;
  [[nodiscard]] std::vector<ActionPart> gathered(int stage, bool forward) const;
  [[nodiscard]] std::vector<ActionPart> backward(int stage) const;
  [[nodiscard]] Communication inner(std::size_t kind, Axis axis, bool forward) const;
  [[nodiscard]] Communication layer_collective(Collective op, std::size_t kind, double bytes) const;
  [[nodiscard]] double host_gap() const;

  const PlanProblem* problem_;
  const Mesh* mesh_;
  const Layout* layout_;
  const StepModel* model_;
  std::array<GroupShape, kAxisCount> groups_;
};

/// Reduction of a stage's gradients at the end of the step (sharding stages 0 to 2), all buckets.
[[nodiscard]] Communication reduction_of(const PlanProblem&, const Mesh&, const Layout&,
                                         const DataAxis&, const StageSums&);
/// Parameters gathered after the optimizer (sharding stages 1, 2), without what overlap hides.
[[nodiscard]] Communication gather_of(const PlanProblem&, const Mesh&, const Layout&,
                                      const DataAxis&, const StageSums& rank);

}  // namespace towtank::detail
