// SPDX-License-Identifier: Apache-2.0
#include "placement/detail/candidate.h"

#include <algorithm>
#include <cmath>

#include "core/contracts.h"
#include "placement/split.h"

namespace towtank::detail {
namespace {

PipelineShape shape_of(const Layout& layout) {
  return {layout.pipeline, layout.microbatches, layout.stages_per_rank};
}

std::vector<int> split(const Mesh& mesh, int stages) {
  const int layers = mesh.free_layers();
  if (stages == 1) return {0, layers};
  if (mesh.uniform()) {
    return balanced_split(layers, mesh.layer_time(0), mesh.first_time(), mesh.last_time(), stages);
  }
  std::vector<Seconds> times;
  times.reserve(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i) times.push_back(mesh.layer_time(i));
  return balanced_split(times, mesh.first_time(), mesh.last_time(), stages);
}

int most_layers(const Layout& layout) {
  int most = 0;
  for (const StageRange& s : layout.stages) most = std::max(most, s.last - s.first);
  return most;
}

Seconds recompute_time(const Mesh& mesh, const Layout& layout) {
  Seconds worst;
  for (const StageRange& s : layout.stages) worst = std::max(worst, mesh.sums(s).recompute);
  return worst;
}

/// Smallest n in [1, most] for which n whole layers a stage fit. Pre: most layers fit.
/// Memory falls by the same bytes with each further layer, so the first guess is nearly right.
int least_full(const PlanProblem& problem, const Mesh& mesh, bool selective_rest, Bytes limit,
               Layout& layout) {
  const int most = most_layers(layout);
  const auto need = [&](int n) {
    set_recompute(layout, n, selective_rest);
    return static_cast<double>(fullest_rank(problem, mesh, layout).total.value);
  };
  const auto cap = static_cast<double>(limit.value);
  const double at_one = need(1);
  if (at_one <= cap || most == 1) return 1;
  const double at_most = need(most);
  const double slope = (at_one - at_most) / (most - 1);
  int n = slope > 0 ? 1 + static_cast<int>(std::ceil((at_one - cap) / slope)) : most;
  n = std::clamp(n, 1, most);
  while (n > 1 && need(n - 1) <= cap) --n;
  while (n < most && need(n) > cap) ++n;
  return n;
}

}  // namespace

Layout LayoutBuilder::build(const Shape& shape) {
  Layout layout;
  layout.pipeline = shape.pipeline;
  layout.data = shape.data;
  layout.stages_per_rank = shape.stages_per_rank;
  layout.schedule = shape.schedule;
  layout.sharding_stage = shape.sharding_stage;
  layout.microbatches = shape.microbatches;
  const int stages = shape.pipeline * shape.stages_per_rank;
  if (static_cast<int>(bounds_.size()) != stages + 1) bounds_ = split(*mesh_, stages);
  layout.stages.reserve(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    layout.stages.push_back({bounds_[static_cast<std::size_t>(s)],
                             bounds_[static_cast<std::size_t>(s) + 1], 0, 0, s == 0,
                             s == stages - 1});
  }
  return layout;
}

MemoryBreakdown rank_memory(const PlanProblem& problem, const Mesh& mesh, const Layout& layout,
                            int rank) {
  std::vector<StageLayers> layers;
  layers.reserve(16);
  mesh.rank_layers(layout.stages, rank, layout.pipeline, layers);
  const ShardDegrees& d = mesh.degrees();
  StageMemoryInput input;
  input.layers = layers;
  input.microbatches_in_flight =
      static_cast<double>(peak_live_forwards(layout.schedule, shape_of(layout), rank)) /
      layout.stages_per_rank;
  input.data_shards = layout.data * d.context;
  input.expert_data_shards = layout.data * d.context * d.tensor / (d.expert * d.expert_tensor);
  input.sharding_stage = layout.sharding_stage;
  input.tensor = d.tensor;
  input.sequence_parallel = d.sequence_parallel;
  input.microbatches = layout.microbatches;
  input.pipelined = layout.pipeline > 1;
  input.context = mesh.runtime().context_bytes;
  input.reserved_factor = mesh.runtime().reserved_factor;
  if (layout.pipeline > 1 && rank == layout.pipeline - 1) {
    input.extra_parameters = mesh.tied_parameters();
  }
  const Workload& w = *problem.workload;
  const StateBytes states =
      layout.states ? *layout.states
                    : state_bytes(mesh.rules().framework, w.precision, w.optimizer).value;
  return stage_memory(input, mesh.rules(), states);
}

namespace {

/// Calls f(rank) for the ranks that can be the fullest, until it returns false. The ends of the
/// pipeline come first. Where all layers are of one kind, an inner rank with no more layers than an
/// earlier inner one cannot be: it holds fewer microbatches of them.
template <class F>
void for_fullest_candidates(const Mesh& mesh, const Layout& layout, F&& f) {
  const int p = layout.pipeline;
  if (!f(0)) return;
  if (p > 1 && !f(p - 1)) return;
  int most = -1;
  for (int r = 1; r < p - 1; ++r) {
    int layers = 0;
    for (std::size_t g = static_cast<std::size_t>(r); g < layout.stages.size();
         g += static_cast<std::size_t>(p)) {
      layers += layout.stages[g].last - layout.stages[g].first;
    }
    if (mesh.uniform() && layers <= most) continue;
    most = std::max(most, layers);
    if (!f(r)) return;
  }
}

}  // namespace

Fullest fullest_rank(const PlanProblem& problem, const Mesh& mesh, const Layout& layout) {
  Fullest out;
  for_fullest_candidates(mesh, layout, [&](int r) {
    const Bytes total = rank_memory(problem, mesh, layout, r).total();
    if (total > out.total) out = {r, total};
    return true;
  });
  return out;
}

bool fits_memory(const PlanProblem& problem, const Mesh& mesh, const Layout& layout, Bytes limit) {
  bool fits = true;
  for_fullest_candidates(mesh, layout, [&](int r) {
    fits = rank_memory(problem, mesh, layout, r).total() <= limit;
    return fits;
  });
  return fits;
}

void set_recompute(Layout& layout, int full, bool selective_rest) {
  for (StageRange& s : layout.stages) {
    const int layers = s.last - s.first;
    s.full = std::min(full, layers);
    s.selective = selective_rest ? layers - s.full : 0;
  }
}

bool solve_recompute(const PlanProblem& problem, const Mesh& mesh,
                     const std::optional<RecomputeMode>& pinned, Bytes limit, Layout& layout) {
  const auto fits = [&] { return fits_memory(problem, mesh, layout, limit); };
  const int most = most_layers(layout);
  if (pinned) {
    set_recompute(layout, *pinned == RecomputeMode::kFull ? most : 0,
                  *pinned == RecomputeMode::kSelective);
    return fits();
  }
  set_recompute(layout, 0, false);
  if (fits()) return true;
  set_recompute(layout, 0, true);
  const bool selective_fits = fits();
  set_recompute(layout, most, false);
  if (!fits()) {
    set_recompute(layout, selective_fits ? 0 : most, selective_fits);
    return selective_fits;
  }
  const int plain = least_full(problem, mesh, false, limit, layout);
  set_recompute(layout, plain, false);
  const Seconds plain_time = recompute_time(mesh, layout);
  const int mixed = selective_fits ? 0 : least_full(problem, mesh, true, limit, layout);
  set_recompute(layout, mixed, true);
  if (plain_time <= recompute_time(mesh, layout)) set_recompute(layout, plain, false);
  return true;
}

Seconds quick_bound(const Mesh& mesh, const Layout& layout, std::vector<StageTime>& scratch) {
  scratch.clear();
  for (const StageRange& range : layout.stages) {
    const StageSums s = mesh.sums(range);
    scratch.push_back({s.forward, s.input_grad, s.weight_grad});
  }
  return makespan_bound(layout.schedule, shape_of(layout), scratch);
}

Plan plan_from(const Mesh& mesh, const Layout& layout) {
  const ShardDegrees& d = mesh.degrees();
  Plan plan;
  plan.tensor = d.tensor;
  plan.context = d.context;
  plan.expert = d.expert;
  plan.expert_tensor = d.expert_tensor;
  plan.microbatch = d.microbatch;
  plan.sequence_parallel = d.sequence_parallel;
  plan.pipeline = layout.pipeline;
  plan.data = layout.data;
  plan.stages_per_rank = layout.stages_per_rank;
  plan.schedule = layout.schedule;
  plan.sharding_stage = layout.sharding_stage;
  plan.framework = mesh.rules().framework;
  bool any_full = false, any_selective = false;
  for (const StageRange& s : layout.stages) {
    plan.stages.push_back({s.first, s.last, s.full, s.selective, ""});
    any_full = any_full || s.full > 0;
    any_selective = any_selective || s.selective > 0;
  }
  plan.recompute = any_full        ? RecomputeMode::kFull
                   : any_selective ? RecomputeMode::kSelective
                                   : RecomputeMode::kNone;
  return plan;
}

Layout layout_from(const Plan& plan, const Workload& workload) {
  EXPECTS(plan.stages.size() == static_cast<std::size_t>(plan.pipeline * plan.stages_per_rank));
  Layout layout;
  layout.pipeline = plan.pipeline;
  layout.data = plan.data;
  layout.stages_per_rank = plan.stages_per_rank;
  layout.schedule = plan.schedule;
  layout.sharding_stage = plan.sharding_stage;
  layout.microbatches = workload.global_batch / (plan.data * plan.microbatch);
  layout.states = plan.state_override;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    layout.stages.push_back({stage.first, stage.last, stage.recompute_full,
                             stage.recompute_selective, s == 0, s + 1 == plan.stages.size()});
  }
  return layout;
}

ShardDegrees degrees_of(const Plan& p) {
  return {p.tensor, p.context, p.expert, p.expert_tensor, p.microbatch, p.sequence_parallel};
}

}  // namespace towtank::detail
