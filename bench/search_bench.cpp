// SPDX-License-Identifier: Apache-2.0
/// One evaluation and whole searches at 64, 1,024 and 16,384 devices, and what a search is made of.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "core/json.h"
#include "model/cost/analytic.h"
#include "model/graph/hf_import.h"
#include "placement/detail/candidate.h"
#include "placement/search.h"
#include "platforms/catalogue.h"

namespace {

using namespace towtank;

struct Question {
  ModelGraph graph;
  Workload workload;
  Platform platform;
  PlanProblem problem;
  std::unique_ptr<CostModel> costs;
};

std::string config_of(const std::string& model) {
  return std::string(TOWTANK_SOURCE_DIR) + "/examples/models/" + model + "/config.json";
}

std::unique_ptr<Question> ask(const std::string& model, int devices, int sequence, int batch) {
  auto q = std::make_unique<Question>();
  q->graph = import_model(JsonFile::load(config_of(model)), sequence);
  q->platform = load_platform("dgx-h100");
  q->workload.sequence_length = sequence;
  q->workload.global_batch = batch;
  q->problem = std::get<PlanProblem>(make_problem(q->graph, q->workload, q->platform, devices));
  q->costs = std::make_unique<AnalyticCostModel>(q->problem.device(), q->problem.view);
  q->problem.costs = q->costs.get();
  return q;
}

void search(benchmark::State& state, const char* model, int devices, int sequence, int batch) {
  const auto q = ask(model, devices, sequence, batch);
  SearchCounts counts;
  for (auto _ : state) counts = BestFirstSearch().search(q->problem, {}).counts;
  state.counters["plans"] = static_cast<double>(counts.plans);
  state.counters["costed"] = static_cast<double>(counts.costed);
  state.counters["s/plan"] = benchmark::Counter(
      static_cast<double>(counts.plans),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(search, llama_70b_64, "llama-3.1-70b", 64, 8192, 128)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, llama_405b_1024, "llama-3.1-405b", 1024, 8192, 512)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, llama_405b_16384, "llama-3.1-405b", 16384, 8192, 2048)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, mixtral_64, "mixtral-8x7b", 64, 4096, 256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, deepseek_v3_2048, "deepseek-v3", 2048, 4096, 8192)
    ->Unit(benchmark::kMillisecond);

/// Everything that `towtank predict` works out for one plan.
void evaluate(benchmark::State& state) {
  const auto q = ask("llama-3.1-70b", 64, 8192, 128);
  const Plan plan = BestFirstSearch().search(q->problem, {}).plans.at(0).plan;
  const ClosedFormEvaluator evaluator(q->problem);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(plan));
}
BENCHMARK(evaluate)->Unit(benchmark::kMicrosecond);

/// Step time of one plan whose layers are costed already: what the search does per plan.
void cost_terms(benchmark::State& state) {
  const auto q = ask("llama-3.1-70b", 64, 8192, 128);
  const Plan plan = BestFirstSearch().search(q->problem, {}).plans.at(0).plan;
  const detail::Mesh mesh(q->problem, detail::degrees_of(plan), plan.framework);
  const detail::Layout layout = detail::layout_from(plan, q->workload);
  for (auto _ : state) {
    benchmark::DoNotOptimize(detail::StepModel(q->problem, mesh, layout).times());
  }
}
BENCHMARK(cost_terms)->Unit(benchmark::kMicrosecond);

void bound(benchmark::State& state) {
  const auto q = ask("llama-3.1-70b", 64, 8192, 128);
  const Plan plan = BestFirstSearch().search(q->problem, {}).plans.at(0).plan;
  const detail::Mesh mesh(q->problem, detail::degrees_of(plan), plan.framework);
  const detail::Layout layout = detail::layout_from(plan, q->workload);
  std::vector<StageTime> scratch;
  for (auto _ : state) benchmark::DoNotOptimize(detail::quick_bound(mesh, layout, scratch));
}
BENCHMARK(bound)->Unit(benchmark::kNanosecond);

void import_config(benchmark::State& state) {
  const std::string path = config_of("llama-3.1-70b");
  for (auto _ : state) benchmark::DoNotOptimize(import_model(JsonFile::load(path), 8192));
}
BENCHMARK(import_config)->Unit(benchmark::kMicrosecond);

void platform_from_catalogue(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load_platform("dgx-h100"));
}
BENCHMARK(platform_from_catalogue)->Unit(benchmark::kMicrosecond);

}  // namespace
