// SPDX-License-Identifier: Apache-2.0
// The recurrence of a schedule; items are actions. Budget: 5 ns an action.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/rng.h"
#include "placement/recurrence.h"

namespace towtank {
namespace {

struct Stages {
  std::vector<StageTime> times;
  std::vector<HopTime> hops;
};

/// Stages of slightly different length, so that no branch is always taken.
Stages uneven_stages(const PipelineShape& shape) {
  Rng rng(1);
  Stages stages;
  for (int g = 0; g < shape.ranks * shape.stages_per_rank; ++g) {
    stages.times.push_back({Seconds{rng.uniform(0.9, 1.1)}, Seconds{rng.uniform(0.9, 1.1)},
                            Seconds{rng.uniform(0.9, 1.1)}});
    stages.hops.push_back({Seconds{0.01}, Seconds{0.01}});
  }
  return stages;
}

PipelineShape shape_of(const benchmark::State& state) {
  return {static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
          static_cast<int>(state.range(2))};
}

void count_actions(benchmark::State& state, ScheduleKind kind, const PipelineShape& shape) {
  const std::int64_t phases = kind == ScheduleKind::kZbH1 ? 3 : 2;
  state.SetItemsProcessed(state.iterations() * phases * shape.ranks * shape.microbatches *
                          shape.stages_per_rank);
}

void recurrence(benchmark::State& state, ScheduleKind kind) {
  const PipelineShape shape = shape_of(state);
  const Stages stages = uneven_stages(shape);
  ScheduleWorkspace workspace;
  for (auto _ : state) {
    const ScheduleTimes& times = schedule_times(kind, shape, stages.times, stages.hops, workspace);
    benchmark::DoNotOptimize(times.makespan);
  }
  count_actions(state, kind, shape);
}

void bound(benchmark::State& state, ScheduleKind kind) {
  const PipelineShape shape = shape_of(state);
  const Stages stages = uneven_stages(shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(makespan_bound(kind, shape, stages.times));
  }
}

void written_order(benchmark::State& state, ScheduleKind kind) {
  const PipelineShape shape = shape_of(state);
  const Stages stages = uneven_stages(shape);
  const PipelineSchedule schedule = make_schedule(kind, shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(schedule_times(schedule, stages.times, stages.hops).makespan);
  }
  count_actions(state, kind, shape);
}

BENCHMARK_CAPTURE(recurrence, gpipe, ScheduleKind::kGpipe)->Args({8, 64, 1});
BENCHMARK_CAPTURE(recurrence, 1f1b, ScheduleKind::kOneFOneB)
    ->Args({1, 64, 1})
    ->Args({2, 64, 1})
    ->Args({4, 32, 1})
    ->Args({8, 64, 1})
    ->Args({16, 256, 1});
BENCHMARK_CAPTURE(recurrence, interleaved, ScheduleKind::kInterleaved)
    ->Args({4, 32, 2})
    ->Args({8, 64, 4})
    ->Args({16, 256, 8});
BENCHMARK_CAPTURE(recurrence, zb_h1, ScheduleKind::kZbH1)->Args({8, 64, 1})->Args({16, 256, 1});
BENCHMARK_CAPTURE(written_order, 1f1b, ScheduleKind::kOneFOneB)->Args({8, 64, 1});
BENCHMARK_CAPTURE(written_order, interleaved, ScheduleKind::kInterleaved)->Args({16, 256, 8});
BENCHMARK_CAPTURE(bound, 1f1b, ScheduleKind::kOneFOneB)->Args({8, 64, 1})->Args({16, 256, 1});
BENCHMARK_CAPTURE(bound, interleaved, ScheduleKind::kInterleaved)->Args({16, 256, 8});

}  // namespace
}  // namespace towtank
