// SPDX-License-Identifier: Apache-2.0
// What a search pays for one op and one collective. Budgets: 25 ns an op, 50 ns a collective.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <variant>

#include "model/cost/analytic.h"
#include "model/cost/flops.h"
#include "platforms/allocate.h"
#include "platforms/catalogue.h"

namespace {

using namespace towtank;

struct Machine {
  Platform platform = load_platform("dgx-h100");
  NetworkView view = network_view(platform, std::get<Allocation>(allocate(platform, 1024)));
  AnalyticCostModel model{platform.device_kinds[view.device], view};
};

/// The products, core and memory ops of one Llama-70B layer on 8 tensor ranks.
std::array<OpSignature, 8> layer_ops() {
  OpSignature core = matmul(DType::kBf16, 8, 8192, 8192, 128);
  core.kind = OpKind::kAttention;
  core.causal = true;
  return {matmul(DType::kBf16, 1, 8192, 1280, 8192),
          core,
          matmul(DType::kBf16, 1, 8192, 8192, 1024),
          matmul(DType::kFp8, 1, 8192, 7168, 8192),
          matmul(DType::kBf16, 1, 8192, 8192, 3584),
          memory_op(OpKind::kNorm, DType::kBf16, {33'554'432}),
          memory_op(OpKind::kElementwise, DType::kBf16, {176'160'768}, {}, 2),
          memory_op(OpKind::kOptimizer, DType::kFp32, {1'000'000'000})};
}

void OpCostOfALayer(benchmark::State& state) {
  const Machine machine;
  const CostModel& model = machine.model;
  const auto ops = layer_ops();
  for (auto _ : state) {
    for (const OpSignature& op : ops) benchmark::DoNotOptimize(model.op(op));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops.size()));
}
BENCHMARK(OpCostOfALayer);

void CollectiveCostByKind(benchmark::State& state) {
  const Machine machine;
  const CostModel& model = machine.model;
  const auto op = static_cast<Collective>(state.range(0));
  const CollectiveCall call{op, {100'000'000}, group_shape(machine.view, 256, 4)};
  state.SetLabel(std::string(to_text(op)));
  for (auto _ : state) benchmark::DoNotOptimize(model.collective(call));
}
BENCHMARK(CollectiveCostByKind)->DenseRange(0, kCollectiveCount - 1);

void GroupShapeOfADimension(benchmark::State& state) {
  const Machine machine;
  for (auto _ : state) benchmark::DoNotOptimize(group_shape(machine.view, 128, 8));
}
BENCHMARK(GroupShapeOfADimension);

void ModelOfADevice(benchmark::State& state) {
  const Machine machine;
  const DeviceKind& device = machine.platform.device_kinds[machine.view.device];
  for (auto _ : state)
    benchmark::DoNotOptimize(AnalyticCostModel(device, machine.view).description());
}
BENCHMARK(ModelOfADevice);

}  // namespace
