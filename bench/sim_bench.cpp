// SPDX-License-Identifier: Apache-2.0
/// One step lowered and simulated at 64 to 16,384 devices, how its cost grows, and the plans of a
/// search simulated one after the other. Wall time: the work is done in other processes.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/cost/analytic.h"
#include "model/graph/hf_import.h"
#include "placement/search.h"
#include "platforms/catalogue.h"
#include "sim/lower.h"
#include "sim/simulate.h"

namespace {

using namespace towtank;

struct SimQuestion {
  ModelGraph graph;
  Workload workload;
  Platform platform;
  PlanProblem problem;
  std::unique_ptr<CostModel> costs;
};

std::unique_ptr<SimQuestion> sim_question(int devices, int batch) {
  auto q = std::make_unique<SimQuestion>();
  q->graph = import_model(JsonFile::load(std::string(TOWTANK_SOURCE_DIR) +
                                         "/examples/models/llama-3.1-70b/config.json"),
                          8192);
  q->platform = load_platform("dgx-h100");
  q->workload.sequence_length = 8192;
  q->workload.global_batch = batch;
  q->problem = std::get<PlanProblem>(make_problem(q->graph, q->workload, q->platform, devices));
  q->costs = std::make_unique<AnalyticCostModel>(q->problem.device(), q->problem.view);
  q->problem.costs = q->costs.get();
  return q;
}

/// 64 devices a replica, 16 microbatches each, however many replicas.
Plan plan_for(const SimQuestion& q, int devices) {
  Plan plan;
  plan.tensor = 8;
  plan.pipeline = 8;
  plan.data = devices / 64;
  plan.schedule = ScheduleKind::kOneFOneB;
  plan.sequence_parallel = true;
  plan.sharding_stage = 1;
  expand_stages(plan, q.graph.free_layers());
  return plan;
}

double lower_and_simulate(const SimQuestion& q, const Plan& plan, const LowerOptions& options) {
  const LoweredStep step = lower(q.problem, plan, options);
  const SimulationResult result = simulate(step.tasks, step.network);
  const auto* times = std::get_if<TaskTimes>(&result);
  return times != nullptr ? times->makespan() : 0;
}

double peak_mib() {
  rusage own{}, children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  constexpr double kKib = 1024;
  return static_cast<double>(std::max(own.ru_maxrss, children.ru_maxrss)) / kKib;
}

void simulate_step(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto q = sim_question(devices, devices / 64 * 16);
  const Plan plan = plan_for(*q, devices);
  LowerOptions options;
  // A slow rank: two classes of replicas instead of one.
  if (state.range(1) != 0 && plan.data > 1) options.stragglers = {{0, 1.3}};
  if (find_worker().empty()) state.SkipWithError("no towtank-sim");
  for (auto _ : state) {
    if (lower_and_simulate(*q, plan, options) <= 0) state.SkipWithError("no result");
  }
  state.counters["MiB"] = peak_mib();
}
BENCHMARK(simulate_step)
    ->ArgNames({"devices", "slow"})
    ->ArgsProduct({{64, 256, 1024, 4096, 16384}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// Exponent of cost over devices: the slope of a line through log time at 64 to 16,384.
void simulate_growth(benchmark::State& state) {
  if (find_worker().empty()) state.SkipWithError("no towtank-sim");
  for (auto _ : state) {
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    int n = 0;
    for (int devices = 64; devices <= 16384; devices *= 2) {
      const auto q = sim_question(devices, devices / 64 * 16);
      const Plan plan = plan_for(*q, devices);
      double best = HUGE_VAL;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto start = std::chrono::steady_clock::now();
        benchmark::DoNotOptimize(lower_and_simulate(*q, plan, {}));
        best = std::min(
            best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      const double x = std::log(devices), y = std::log(best);
      sx += x;
      sy += y;
      sxx += x * x;
      sxy += x * y;
      ++n;
    }
    state.counters["exponent"] = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  }
}
BENCHMARK(simulate_growth)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

/// `towtank plan --confirm 100` of 512 devices, the search apart.
void confirm_100_of_512(benchmark::State& state) {
  if (find_worker().empty()) state.SkipWithError("no towtank-sim");
  const auto q = sim_question(512, 512);
  SearchOptions search;
  search.top = 100;
  const SearchResult found = BestFirstSearch().search(q->problem, search);
  SimulateOptions options;
  options.parallel = 2;
  for (auto _ : state) {
    std::vector<LoweredStep> steps;
    for (const RankedPlan& ranked : found.plans) steps.push_back(lower(q->problem, ranked.plan));
    std::vector<SimulationJob> jobs;
    for (const LoweredStep& step : steps) jobs.push_back({&step.tasks, &step.network});
    benchmark::DoNotOptimize(simulate_all(jobs, options));
  }
  state.counters["plans"] = static_cast<double>(found.plans.size());
}
BENCHMARK(confirm_100_of_512)->Unit(benchmark::kMillisecond)->UseRealTime();

void lower_step(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto q = sim_question(devices, devices / 64 * 16);
  const Plan plan = plan_for(*q, devices);
  for (auto _ : state) benchmark::DoNotOptimize(lower(q->problem, plan));
}
BENCHMARK(lower_step)->Arg(64)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace
