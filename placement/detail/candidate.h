// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One shape over one mesh made into a plan: layers split, the least recomputation that fits solved
/// for, and costed. What the searches share.
#include <optional>
#include <vector>

#include "placement/detail/step_model.h"
#include "placement/space.h"

namespace towtank::detail {

/// The layout of a shape: balanced split, no recomputation. Reuses the last split of the same mesh
/// and number of stages.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(const Mesh& mesh) : mesh_(&mesh) {}
  [[nodiscard]] Layout build(const Shape& shape);

 private:
  const Mesh* mesh_;
  std::vector<int> bounds_;
};

/// Memory of one pipeline rank.
[[nodiscard]] MemoryBreakdown rank_memory(const PlanProblem&, const Mesh&, const Layout&, int rank);

/// The fullest pipeline rank and its memory.
struct Fullest {
  int rank = 0;
  Bytes total;
};
[[nodiscard]] Fullest fullest_rank(const PlanProblem&, const Mesh&, const Layout&);
/// fullest_rank(...).total <= limit, left at the first rank that needs more.
[[nodiscard]] bool fits_memory(const PlanProblem&, const Mesh&, const Layout&, Bytes limit);

void set_recompute(Layout&, int full_layers_per_stage, bool selective_rest);

/// Sets the least recomputation with which every rank needs at most `limit`: none, selective, some
/// whole layers a stage, all; of two mixes with whole layers the one that repeats less time.
/// False if even recomputing everything does not fit (the layout then recomputes everything).
/// A pinned mode is applied and only checked.
[[nodiscard]] bool solve_recompute(const PlanProblem&, const Mesh&,
                                   const std::optional<RecomputeMode>&, Bytes limit, Layout&);

/// Never above the step time of the layout.
[[nodiscard]] Seconds quick_bound(const Mesh&, const Layout&, std::vector<StageTime>& scratch);

[[nodiscard]] Plan plan_from(const Mesh&, const Layout&);
/// The inverse. Pre: plan.stages is expanded.
[[nodiscard]] Layout layout_from(const Plan&, const Workload&);
[[nodiscard]] ShardDegrees degrees_of(const Plan&);

}  // namespace towtank::detail
