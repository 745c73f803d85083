// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "placement/detail/candidate.h"
#include "placement/evaluator.h"

namespace towtank {
namespace {

using detail::Layout;
using detail::Mesh;
using detail::StageRange;
using detail::StepModel;

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

/// The busiest rank's time inside the pipeline, by part.
StepBreakdown busy_breakdown(const Mesh& mesh, const Layout& layout, const StepModel& model,
                             int rank) {
  StepBreakdown out;
  const double m = layout.microbatches;
  for (std::size_t g = static_cast<std::size_t>(rank); g < layout.stages.size();
       g += static_cast<std::size_t>(layout.pipeline)) {
    mesh.for_each_kind(layout.stages[g], [&](std::size_t k, int n) {
      const LayerCost& cost = mesh.cost(k);
      for (std::size_t o = 0; o < kOpKindCount; ++o) {
        out.compute[o] += m * n * (cost.compute_forward[o] + cost.compute_backward[o]);
      }
      out.host_gaps += m * n * (cost.host_gap_forward + cost.host_gap_backward);
      for (std::size_t a = 0; a < kAxisCount; ++a) {
        out.exposed[a] += m * n * (cost.exposed_forward[a] + cost.exposed_backward[a]);
      }
    });
    const auto stage = static_cast<int>(g);
    out.host_gaps += m * mesh.runtime().per_microbatch / layout.stages_per_rank;
    out.recompute += m * model.stage_sums(stage).recompute;
    out.exposed[index_of(Axis::kData)] += m * model.exposed_data_per_microbatch(stage);
    out.exposed[index_of(Axis::kPipeline)] += m * model.sends(stage);
  }
  return out;
}

Seconds sum(const auto& times) { return std::accumulate(times.begin(), times.end(), Seconds{}); }

/// Share of the predicted op and collective time on each basis, over all stages.
std::array<double, kBasisCount> basis_shares(const Mesh& mesh, const Layout& layout) {
  std::array<double, kBasisCount> share{};
  double total = 0;
  for (const StageRange& range : layout.stages) {
    mesh.for_each_kind(range, [&](std::size_t k, int n) {
      for (std::size_t b = 0; b < kBasisCount; ++b) {
        share[b] += n * mesh.cost(k).basis[b].value;
        total += n * mesh.cost(k).basis[b].value;
      }
    });
  }
  for (double& s : share) s = total > 0 ? s / total : 0;
  return share;
}

/// FLOP that all devices run in a step, recomputation included.
Flop hardware_work(const Mesh& mesh, const Layout& layout) {
  double work = 0;
  for (const StageRange& range : layout.stages) {
    mesh.for_each_kind(range, [&](std::size_t k, int n) {
      work += n * (mesh.cost(k).work_forward.value + mesh.cost(k).work_backward.value);
    });
    const auto add_rerun = [&](int first, int count, RecomputeMode mode) {
      StageRange part = range;
      part.first = first;
      part.last = first + count;
      part.has_first = part.has_last = false;
      mesh.for_each_kind(part, [&](std::size_t k, int n) {
        work += n * mesh.cost(k).recompute_work(mode, mesh.rules()).value;
      });
    };
    add_rerun(range.first, range.full, RecomputeMode::kFull);
    add_rerun(range.first + range.full, range.selective, RecomputeMode::kSelective);
  }
  const ShardDegrees& d = mesh.degrees();
  return Flop{work * layout.microbatches * layout.data * d.tensor * d.context};
}

void add_rates(const PlanProblem& problem, const Mesh& mesh, const Layout& layout,
               Prediction& out) {
  const Workload& w = *problem.workload;
  const ForwardWork forward = forward_work(*problem.graph);
  const double step = out.step_time.value;
  const double device_seconds = step * problem.devices();
  const double model_work =
      3.0 * w.global_batch * (forward.matmul.value + forward.attention_counted.value);
  out.mfu = model_work / (device_seconds * problem.peak.value);
  out.hfu = hardware_work(mesh, layout).value / (device_seconds * problem.peak.value);
  out.samples_per_second = w.global_batch / step;
  out.tokens_per_second_per_device =
      static_cast<double>(w.global_batch) * problem.graph->sample_tokens / device_seconds;
  constexpr double kSecondsPerHour = 3600;
  if (problem.platform->price) {
    out.cost_per_step = device_seconds / kSecondsPerHour * problem.platform->price->device_hour;
  }
}

void add_input(const PlanProblem& problem, Prediction& out) {
  const Workload& w = *problem.workload;
  if (!w.input_bytes) return;
  if (!problem.platform->storage_bandwidth) {
    out.assumptions.emplace_back("storage bandwidth is not stated: input loading is not counted");
    return;
  }
  const Seconds load =
      Bytes{w.global_batch * w.input_bytes->value} / *problem.platform->storage_bandwidth;
  out.step.input = std::max(Seconds{0}, load - out.step_time);
  out.step_time += out.step.input;
}

void add_assumptions(const PlanProblem& problem, const Plan& plan, const RuntimeCosts& runtime,
                     Prediction& out) {
  auto& list = out.assumptions;
  if (!runtime.origin.empty()) list.push_back(runtime.origin);
  for (const NetworkView::Level& level : problem.view.levels) {
    if (level.assumed) {
      list.push_back("bandwidth of level " + level.name +
                     " is not stated: " + to_text(level.bandwidth) + " a device assumed");
    }
  }
  if (problem.view.mixed) {
    list.push_back("several device kinds: all take the time of the slowest, " +
                   problem.device().name);
  }
  if (problem.peak_assumed) {
    list.push_back(problem.device().name + " has no " +
                   std::string(to_text(problem.workload->precision)) +
                   " matrix units: MFU is against the next wider format");
  }
  for (std::string& cell : assumed_cells(plan.framework)) list.push_back(std::move(cell));
  for (const std::string& a : problem.graph->assumptions) list.push_back(a);
}

}  // namespace

Seconds StepBreakdown::compute_total() const { return sum(compute); }

Seconds StepBreakdown::total() const {
  return sum(compute) + recompute + sum(exposed) + bubble + optimizer + host_gaps + input;
}

std::variant<PlanProblem, TooManyDevices> make_problem(const ModelGraph& graph,
                                                       const Workload& workload,
                                                       const Platform& platform, int devices) {
  const auto allocated = allocate(platform, devices);
  if (const auto* few = std::get_if<TooManyDevices>(&allocated)) return *few;
  const auto& allocation = std::get<Allocation>(allocated);
  PlanProblem p;
  p.graph = &graph;
  p.workload = &workload;
  p.platform = &platform;
  p.cut_elements = graph.cut_elements();
  p.view = network_view(platform, allocation);
  p.capacity = p.device().memory;
  for (const Allocation::Part& part : allocation.parts) {
    p.capacity =
        std::min(p.capacity, platform.device_kinds[platform.node_kinds[part.kind].device].memory);
  }
  const std::array<DType, 4> wider{workload.precision, DType::kFp16, DType::kBf16, DType::kFp32};
  for (const DType d : wider) {
    if (const auto peak = p.device().peak_of(d)) {
      p.peak = *peak;
      p.peak_assumed = d != workload.precision;
      return p;
    }
  }
  p.peak = p.device().vector_peak;
  p.peak_assumed = true;
  return p;
}

Prediction ClosedFormEvaluator::evaluate(const Plan& plan) const {
  EXPECTS(problem_->costs != nullptr);
  const Mesh mesh(*problem_, detail::degrees_of(plan), plan.framework);
  const Layout layout = detail::layout_from(plan, *problem_->workload);
  const StepModel model(*problem_, mesh, layout);
  const detail::StepTimes times = model.times();

  Prediction out;
  out.step_time = times.total;
  out.microbatches = layout.microbatches;
  out.step = busy_breakdown(mesh, layout, model, times.busiest_rank);
  const Seconds without_hops = model.makespan_without_hops();
  out.step.exposed[index_of(Axis::kPipeline)] += times.makespan - without_hops;
  const Seconds idle = without_hops - times.busiest;
  // One rank has no bubble; what the difference leaves is the rounding of two sums.
  out.step.bubble = layout.pipeline > 1 ? std::max(Seconds{}, idle) : Seconds{};
  out.step.exposed[index_of(Axis::kData)] += times.data_exposed;
  out.step.optimizer = times.optimizer;
  add_input(*problem_, out);
  out.step.host_gaps += mesh.runtime().per_step;
  const RuntimeCosts& spread = mesh.runtime();
  out.interval50 = {spread.low50 * out.step_time, spread.high50 * out.step_time};
  out.interval90 = {spread.low90 * out.step_time, spread.high90 * out.step_time};
  out.basis = basis_shares(mesh, layout);
  for (int r = 0; r < layout.pipeline; ++r) {
    out.memory.push_back(detail::rank_memory(*problem_, mesh, layout, r));
    if (out.memory.back().total() > out.peak_memory().total()) out.peak_rank = r;
  }
  out.fit = fit_of(out.peak_memory().total(), problem_->capacity);
  add_rates(*problem_, mesh, layout, out);
  add_assumptions(*problem_, plan, mesh.runtime(), out);
  return out;
}

}  // namespace towtank
