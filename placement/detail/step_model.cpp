// SPDX-License-Identifier: Apache-2.0
#include "placement/detail/step_model.h"

#include <algorithm>
#include <numeric>

#include "core/contracts.h"

namespace towtank::detail {
namespace {

PipelineShape shape_of(const Layout& layout) {
  return {layout.pipeline, layout.microbatches, layout.stages_per_rank};
}

Seconds worst(const std::vector<Seconds>& times) {
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

StepModel::StepModel(const PlanProblem& problem, const Mesh& mesh, const Layout& layout)
    : problem_(&problem), mesh_(&mesh), layout_(&layout), data_(problem, mesh, layout) {
  const std::size_t n = layout.stages.size();
  EXPECTS(n == static_cast<std::size_t>(layout.pipeline * layout.stages_per_rank));
  sums_.reserve(n);
  stages_.reserve(n);
  extra_.reserve(n);
  hops_.resize(n);
  sends_.resize(n);
  for (const StageRange& range : layout.stages) {
    sums_.push_back(mesh.sums(range));
    const StageSums& s = sums_.back();
    const DataAxis::Extra extra = data_.per_microbatch(range, s);
    extra_.push_back(extra.forward + extra.backward);
    const Seconds gap = mesh.runtime().per_microbatch / (2 * layout.stages_per_rank);
    stages_.push_back(
        {s.forward + extra.forward + gap, s.input_grad + extra.backward + gap, s.weight_grad});
  }
  if (layout.pipeline <= 1) return;
  sums_.back().dense_parameters += mesh.tied_parameters();
  const GroupShape pair =
      group_shape(problem.view, 2, mesh.degrees().tensor * mesh.degrees().context * layout.data);
  const FrameworkRules& rules = mesh.rules();
  const bool async =
      (layout.stages_per_rank > 1 ? rules.async_p2p_interleaved : rules.async_p2p).value;
  Bytes last{-1};
  Seconds hop;
  for (std::size_t g = 1; g < n; ++g) {
    const Bytes boundary = mesh.boundary(layout.stages[g].first);
    if (boundary != last) {
      hop = problem.costs->collective({Collective::kSendRecv, boundary, pair}).time();
      last = boundary;
    }
    if (async) {
      hops_[g].forward = hop;
      hops_[g - 1].backward = hop;
    } else {
      // A synchronous send holds the sender's compute stream until it is through.
      stages_[g - 1].forward += hop;
      stages_[g].input_grad += hop;
      sends_[g - 1] += hop;
      sends_[g] += hop;
    }
  }
}

StageSums StepModel::rank_sums(int rank) const {
  StageSums sum;
  for (std::size_t g = static_cast<std::size_t>(rank); g < sums_.size();
       g += static_cast<std::size_t>(layout_->pipeline)) {
    sum.dense_parameters += sums_[g].dense_parameters;
    sum.expert_parameters += sums_[g].expert_parameters;
    sum.forward += sums_[g].forward;
    sum.input_grad += sums_[g].input_grad;
    sum.weight_grad += sums_[g].weight_grad;
    sum.recompute += sums_[g].recompute;
  }
  return sum;
}

/// End of the last reduction over all ranks: each rank's data stream runs the buckets of its
/// stages in the order in which their last backward ends.
Seconds StepModel::tail(const ScheduleTimes& times) const {
  Seconds end = worst(times.rank_end);
  if (layout_->sharding_stage >= 3) return end;
  const bool overlap = mesh_->rules().overlap_grad_reduce.value;
  std::vector<std::size_t> order;
  for (int r = 0; r < layout_->pipeline; ++r) {
    order.clear();
    for (int j = 0; j < layout_->stages_per_rank; ++j) {
      order.push_back(static_cast<std::size_t>(j * layout_->pipeline + r));
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return times.last_backward_end[a] < times.last_backward_end[b];
    });
    Seconds stream = overlap ? Seconds{} : times.rank_end[static_cast<std::size_t>(r)];
    for (const std::size_t g : order) {
      const DataAxis::Reduction reduction = data_.reduction(sums_[g]);
      if (reduction.time.value <= 0) continue;
      if (!overlap) {
        stream += reduction.time;
        continue;
      }
      // Bucket k of n is ready at start + k/n of the last backward; the longest path through them
      // leaves at the first or at the last bucket, because both terms are linear in k.
      const Seconds start = times.last_backward_start[g];
      const Seconds duration = times.last_backward_end[g] - start;
      const double n = reduction.buckets;
      stream = std::max({stream + reduction.time, start + duration / n + reduction.time,
                         start + duration + reduction.time / n});
    }
    end = std::max(end, stream);
  }
  return end;
}

StepTimes StepModel::times() const {
  const ScheduleTimes run = schedule_times(layout_->schedule, shape_of(*layout_), stages_, hops_);
  StepTimes out;
  out.makespan = run.makespan;
  Seconds end = tail(run);
  end += data_.tied_reduction() + data_.norm_reduction();
  Seconds finish, gather;
  for (int r = 0; r < layout_->pipeline; ++r) {
    const StageSums sums = rank_sums(r);
    const DataCost after =
        data_.after_reduction(sums, stages_[static_cast<std::size_t>(r)].forward);
    if (after.optimizer + after.gather_exposed > finish) {
      finish = after.optimizer + after.gather_exposed;
      gather = after.gather_exposed;
    }
  }
  Seconds ends;
  for (const StageRange& range : layout_->stages) ends = std::max(ends, data_.step_ends(range));
  out.optimizer = finish - gather;
  out.total = end + finish + ends + mesh_->runtime().per_step;
  out.data_exposed = out.total - out.makespan - out.optimizer - mesh_->runtime().per_step;
  const auto busiest = std::max_element(run.rank_busy.begin(), run.rank_busy.end());
  out.busiest_rank = static_cast<int>(busiest - run.rank_busy.begin());
  out.busiest = *busiest;
  return out;
}

Seconds StepModel::makespan_without_hops() const {
  const std::vector<HopTime> none(hops_.size());
  return schedule_times(layout_->schedule, shape_of(*layout_), stages_, none).makespan;
}

}  // namespace towtank::detail
