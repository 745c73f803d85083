// SPDX-License-Identifier: Apache-2.0
#include "model/memory/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/contracts.h"

namespace towtank {
namespace memory_unit_test {

constexpr std::int64_t kMillion = 1'000'000;

/// 10 M dense and 30 M expert parameters; 2 MB of input, 8 MB elsewhere.
LocalLayer small_layer() {
  LocalLayer layer;
  layer.dense_parameters = 10e6;
  layer.expert_parameters = 30e6;
  layer.saved.layer_input = {2 * kMillion};
  const auto group = [&](RecomputeGroup g) -> Bytes& {
    return layer.saved.by_group[static_cast<std::size_t>(g)];
  };
  group(RecomputeGroup::kNone) = {1 * kMillion};
  group(RecomputeGroup::kMlp) = {4 * kMillion};
  group(RecomputeGroup::kAttentionCore) = {3 * kMillion};
  return layer;
}

LocalLayer head_layer() {
  LocalLayer layer;
  layer.dense_parameters = 100e6;
  layer.saved.layer_input = {2 * kMillion};
  layer.saved.logits = {500 * kMillion};
  return layer;
}

/// Rules without overheads, so that a test adds up what it names.
FrameworkRules bare_rules() {
  FrameworkRules r = rules_of(Framework::kMegatron);
  r.bucket_copies.value = 0;
  r.bucket_all_gradients.value = false;
  r.optimizer_temporary.value = 0;
  r.live_parameters.value = 0;
  r.context_bytes.value = {};
  r.buffer_bytes.value = {};
  r.reserved_factor.value = 1;
  return r;
}

constexpr StateBytes kMegatronBf16{};  // 2 + 4 + 12

const MemoryBreakdown& at(const std::array<MemoryBreakdown, kMemoryPhaseCount>& phases,
                          MemoryPhase phase) {
  return phases[static_cast<std::size_t>(phase)];
}

MemoryBreakdown backward(const StageMemoryInput& in, const FrameworkRules& r,
                         const StateBytes& s = kMegatronBf16) {
  return at(stage_memory_phases(in, r, s), MemoryPhase::kBackward);
}

// D' = 4 dense, D_e = 2 expert shards, three layers: 30 M dense, 90 M expert parameters.
TEST(UnitMemory, StatesDivideByTheirOwnGroupFromTheirStageOn) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 3}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = 4;
  in.expert_data_shards = 2;
  const std::int64_t whole = 30 + 90;
  const std::int64_t sharded_times_4 = 30 + 2 * 90;  // (30 / 4 + 90 / 2) * 4
  for (int stage = 0; stage <= 3; ++stage) {
    in.sharding_stage = stage;
    const MemoryBreakdown m = backward(in, bare_rules());
    const auto part = [&](std::int64_t bytes, int from) {
      return Bytes{kMillion * bytes * (stage >= from ? sharded_times_4 : 4 * whole) / 4};
    };
    EXPECT_EQ(m.parameters, part(2, 3)) << stage;
    EXPECT_EQ(m.gradients, part(4, 2)) << stage;
    EXPECT_EQ(m.optimizer, part(12, 1)) << stage;
  }
}

TEST(UnitMemory, ExtraBytesAreNeverDivided) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 1}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 8;
  in.sharding_stage = 1;
  in.extra_parameters = 5e6;
  StateBytes s;
  s.extra = 4;
  const MemoryBreakdown m = backward(in, bare_rules(), s);
  EXPECT_EQ(m.gradients, (Bytes{45 * kMillion * (4 + 4)}));
  EXPECT_EQ(m.parameters, (Bytes{45 * kMillion * 2}));
}

TEST(UnitMemory, SavedBytesByMode) {
  const LocalLayer layer = small_layer();
  FrameworkRules r = bare_rules();
  EXPECT_EQ(saved_bytes(layer, RecomputeMode::kNone, r), (Bytes{(2 + 1 + 4 + 3) * kMillion}));
  EXPECT_EQ(saved_bytes(layer, RecomputeMode::kSelective, r), (Bytes{(2 + 1 + 4) * kMillion}));
  EXPECT_EQ(saved_bytes(layer, RecomputeMode::kFull, r), (Bytes{2 * kMillion}));
  r.selective_groups.value = 1U << static_cast<unsigned>(RecomputeGroup::kMlp);
  r.selective_mlp_kept.value = 0.5;
  EXPECT_EQ(saved_bytes(layer, RecomputeMode::kSelective, r), (Bytes{(2 + 1 + 2 + 3) * kMillion}));
}

// Two layers keep all, one keeps its input: 2 * 10 + 2 MB a microbatch, 2.5 in flight. Rerunning
// the one needs the other 8 MB once.
TEST(UnitMemory, ActivationsInFlightAndTheRecomputeSet) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 2> layers{
      {{&layer, 2, RecomputeMode::kNone}, {&layer, 1, RecomputeMode::kFull}}};
  StageMemoryInput in;
  in.layers = layers;
  in.microbatches_in_flight = 2.5;
  const MemoryBreakdown m = backward(in, bare_rules());
  EXPECT_EQ(m.activations, (Bytes{22 * kMillion * 5 / 2}));
  EXPECT_EQ(m.working, (Bytes{8 * kMillion}));
}

TEST(UnitMemory, DistributedInputsDivideByTensorOnlyWithoutSequenceParallel) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 1, RecomputeMode::kFull}}};
  StageMemoryInput in;
  in.layers = layers;
  in.tensor = 4;
  FrameworkRules r = bare_rules();
  EXPECT_EQ(backward(in, r).activations, (Bytes{2 * kMillion}));
  r.distribute_saved.value = true;
  EXPECT_EQ(backward(in, r).activations, (Bytes{2 * kMillion / 4}));
  in.sequence_parallel = true;
  EXPECT_EQ(backward(in, r).activations, (Bytes{2 * kMillion}));
}

TEST(UnitMemory, TransientsLiveInBackward) {
  LocalLayer layer = small_layer();
  layer.transient = {7 * kMillion};
  const std::array<StageLayers, 1> layers{{{&layer, 3}}};
  StageMemoryInput in;
  in.layers = layers;
  EXPECT_EQ(backward(in, bare_rules()).working, (Bytes{7 * kMillion}));
}

// Units of 40 M, 40 M, ... and one of 100 M: the two largest are 140 M parameters of 2 bytes, and
// the largest has an unsharded gradient of 4 bytes.
TEST(UnitMemory, StageThreeGathersTheLargestUnits) {
  const LocalLayer layer = small_layer();
  const LocalLayer head = head_layer();
  const std::array<StageLayers, 2> layers{{{&layer, 6}, {&head, 1}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 8;
  in.sharding_stage = 3;
  FrameworkRules r = bare_rules();
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 140 + 4 * 100)}));
  r.prefetch_units.value = 3;  // 100 + 3 * 40
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 220 + 4 * 100)}));
  r.prefetch_units.value = 1;
  r.gather_layers.value = 4;  // 160, then the head's 100
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 260 + 4 * 160)}));
  r.live_parameters.value = 300e6;  // keeps 300 of the stage's 340 M gathered
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 300 + 4 * 160)}));
  r.live_parameters.value = 1e9;
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 340 + 4 * 160)}));
}

// One rank computes with what it stores; FSDP stores fp32, so it gathers a bf16 copy even alone.
TEST(UnitMemory, AGroupOfOneGathersOnlyWhereTheStoredTypeDiffers) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 10}}};
  StageMemoryInput in;
  in.layers = layers;
  in.sharding_stage = 3;
  EXPECT_EQ(backward(in, bare_rules()).working, (Bytes{0}));
  const StateBytes s = state_bytes(Framework::kFsdp, DType::kBf16, OptimizerKind::kAdam).value;
  EXPECT_EQ(backward(in, bare_rules(), s).working, (Bytes{kMillion * 2 * 80}));
}

TEST(UnitMemory, StageThreeKeepsWeightsWhereTheFrameworkDoesNotReshard) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 10}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 4;
  in.sharding_stage = 3;
  in.pipelined = true;
  FrameworkRules r = bare_rules();
  r.reshard_in_pipeline.value = false;
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 400 + 4 * 40)}));
  in.pipelined = false;
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * (2 * 80 + 4 * 40)}));
}

// FSDP: the stored fp32 shard is divided at stage 2 as well; the gathered copy of everything stays.
TEST(UnitMemory, FsdpStageTwoHoldsTheGatheredCopyBesideTheShard) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 10}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 4;
  in.sharding_stage = 2;
  const StateBytes s = state_bytes(Framework::kFsdp, DType::kBf16, OptimizerKind::kAdam).value;
  const MemoryBreakdown m = backward(in, bare_rules(), s);
  EXPECT_EQ(m.parameters + m.gradients + m.optimizer, (Bytes{kMillion * 400 * 16 / 4}));
  EXPECT_EQ(m.working, (Bytes{kMillion * (2 * 400 + 4 * 40)}));
}

// A reduction once a step keeps every gradient whole beside the shards, instead of one unit's.
TEST(UnitMemory, DeferredReductionAccumulatesUnshardedGradients) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 10}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 4;
  in.sharding_stage = 2;
  in.microbatches = 2;
  FrameworkRules r = bare_rules();
  EXPECT_EQ(backward(in, r).gradients, (Bytes{kMillion * 400 * 4 / 4}));
  EXPECT_EQ(backward(in, r).working, (Bytes{kMillion * 40 * 4}));
  r.reduce_cadence_high.value = ReduceCadence::kPerStep;
  EXPECT_EQ(backward(in, r).gradients, (Bytes{kMillion * 400 * (4 + 1)}));
  EXPECT_EQ(backward(in, r).working, (Bytes{0}));
  in.microbatches = 1;
  EXPECT_EQ(backward(in, r).gradients, (Bytes{kMillion * 400 * 4 / 4}));
}

TEST(UnitMemory, BucketsBesideTheGradients) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 10}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = in.expert_data_shards = 4;
  FrameworkRules r = bare_rules();
  r.buffer_bytes.value = {kMillion};
  r.bucket_copies.value = 2;
  r.bucket_bytes.value = {100 * kMillion};
  EXPECT_EQ(backward(in, r).buffers, (Bytes{kMillion * (1 + 200)}));
  r.bucket_bytes.value = {10'000 * kMillion};  // no more than the gradients themselves
  EXPECT_EQ(backward(in, r).buffers, (Bytes{kMillion * (1 + 2 * 4 * 400)}));
  r.bucket_all_gradients.value = true;
  EXPECT_EQ(backward(in, r).buffers, (Bytes{kMillion * (1 + 4 * 400)}));
  in.data_shards = in.expert_data_shards = 1;  // nothing to reduce
  EXPECT_EQ(backward(in, r).buffers, (Bytes{kMillion}));
}

TEST(UnitMemory, LossPhaseHoldsLogitsBesideTheActivations) {
  const LocalLayer layer = small_layer();
  const LocalLayer head = head_layer();
  const std::array<StageLayers, 2> layers{{{&layer, 2}, {&head, 1}}};
  StageMemoryInput in;
  in.layers = layers;
  const auto phases = stage_memory_phases(in, bare_rules(), kMegatronBf16);
  EXPECT_EQ(at(phases, MemoryPhase::kLoss).logits, (Bytes{500 * kMillion}));
  EXPECT_EQ(at(phases, MemoryPhase::kLoss).activations, (Bytes{22 * kMillion}));
  EXPECT_EQ(at(phases, MemoryPhase::kBackward).logits, (Bytes{0}));
  EXPECT_EQ(stage_memory(in, bare_rules(), kMegatronBf16).phase, MemoryPhase::kLoss);
  // Gathered weights stay, gradients do not exist yet: 2 bytes of the head's 100 M and one of 40 M.
  in.sharding_stage = 3;
  in.data_shards = in.expert_data_shards = 8;
  EXPECT_EQ(at(stage_memory_phases(in, bare_rules(), kMegatronBf16), MemoryPhase::kLoss).working,
            (Bytes{2 * 140 * kMillion}));
}

TEST(UnitMemory, ReservedAndContextStandOnTopOfAllocated) {
  const LocalLayer layer = small_layer();
  const std::array<StageLayers, 1> layers{{{&layer, 1}}};
  StageMemoryInput in;
  in.layers = layers;
  FrameworkRules r = bare_rules();
  r.reserved_factor.value = 1.25;
  r.context_bytes.value = {300 * kMillion};
  const MemoryBreakdown m = stage_memory(in, r, kMegatronBf16);
  const std::int64_t allocated = 40 * 18 + 10;
  EXPECT_EQ(m.allocated(), (Bytes{allocated * kMillion}));
  EXPECT_EQ(m.reserved(), (Bytes{allocated * kMillion * 5 / 4}));
  EXPECT_EQ(m.total(), (Bytes{allocated * kMillion * 5 / 4 + 300 * kMillion}));
}

TEST(UnitMemory, EmptyStageHoldsOnlyOverheads) {
  const MemoryBreakdown m =
      stage_memory({}, rules_of(Framework::kTorchtitan),
                   state_bytes(Framework::kTorchtitan, DType::kBf16, OptimizerKind::kAdam).value);
  EXPECT_EQ(m.allocated(), m.buffers);
  EXPECT_EQ(m.phase, MemoryPhase::kBackward);
}

/// P parameters in one layer of their own, sharded over n.
std::array<MemoryBreakdown, kMemoryPhaseCount> zero_states(double parameters, int n, int stage,
                                                           Framework f) {
  LocalLayer layer;
  layer.dense_parameters = parameters;
  const std::array<StageLayers, 1> layers{{{&layer, 1}}};
  StageMemoryInput in;
  in.layers = layers;
  in.data_shards = n;
  in.sharding_stage = stage;
  FrameworkRules r = rules_of(f);
  r.buffer_bytes.value = {};
  r.bucket_copies.value = 0;
  return stage_memory_phases(in, r, state_bytes(f, DType::kBf16, OptimizerKind::kAdam).value);
}

// DeepSpeed's estimator for ZeRO-2, 2 P + 18 P / n: the states and the fp32 gradients of the step.
TEST(UnitMemory, DeepSpeedZeroTwoEstimateIsTheOptimizerPhase) {
  for (const int n : {1, 2, 4, 16}) {
    const double p = 2851e6;
    const auto phases = zero_states(p, n, 2, Framework::kDeepSpeed);
    EXPECT_NEAR(static_cast<double>(at(phases, MemoryPhase::kOptimizer).allocated().value),
                2 * p + 18 * p / n, 4)
        << n;
  }
}

// DeepSpeed's estimator for ZeRO-3 (docs/code-docs/source/memory.rst): 18 P / n + 4 L, with the
// optimizer offloaded 2 P / n + 4 L, with the parameters too 4 L. L: parameters of the largest
// layer.
TEST(UnitMemory, DeepSpeedZeroThreeEstimate) {
  struct Vector {
    double parameters, largest;
    int n;
    double none, optimizer, both;  // GiB, printed with two decimals
  };
  for (const Vector& v :
       {Vector{6805e6, 131e6, 4, 29.01, 3.66, 0.49}, Vector{2851e6, 32e6, 8, 6.09, 0.78, 0.12}}) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const MemoryBreakdown m =
        at(zero_states(v.parameters, v.n, 3, Framework::kDeepSpeed), MemoryPhase::kOptimizer);
    const double parameters = static_cast<double>(m.parameters.value);
    // The step takes 1e9 parameters at a time; the estimator has fp32 gradients instead of bf16.
    const double fp32_gradients = 2 * static_cast<double>(m.gradients.value);
    const double states = parameters + fp32_gradients + static_cast<double>(m.optimizer.value);
    EXPECT_NEAR((states + 4 * v.largest) / gib, v.none, 0.005);
    EXPECT_NEAR((parameters + 4 * v.largest) / gib, v.optimizer, 0.005);
    EXPECT_NEAR(4 * v.largest / gib, v.both, 0.005);
  }
}

// The step of ZeRO-3 runs in groups of 1e9 parameters, that of foreach AdamW on all.
TEST(UnitMemory, OptimizerTemporaries) {
  const auto deepspeed = zero_states(40e9, 4, 3, Framework::kDeepSpeed);
  EXPECT_EQ(at(deepspeed, MemoryPhase::kOptimizer).working, (Bytes{4'000 * kMillion}));
  const auto fsdp = zero_states(40e9, 4, 3, Framework::kFsdp);
  EXPECT_EQ(at(fsdp, MemoryPhase::kOptimizer).working, (Bytes{4 * 10'000 * kMillion}));
  EXPECT_EQ(at(fsdp, MemoryPhase::kOptimizer).activations, (Bytes{0}));
}

TEST(TightMemory, BorderlineEndsExactlyAtFivePercent) {
  const Bytes capacity{80'000};
  EXPECT_EQ(fit_of({75'999}, capacity), Fit::kFits);
  EXPECT_EQ(fit_of({76'000}, capacity), Fit::kBorderline);
  EXPECT_EQ(fit_of({80'000}, capacity), Fit::kBorderline);
  EXPECT_EQ(fit_of({84'000}, capacity), Fit::kBorderline);
  EXPECT_EQ(fit_of({84'001}, capacity), Fit::kOom);
}

TEST(FaultMemory, BrokenPromisesAreReported) {
  const StateBytes s;
  StageMemoryInput in;
  in.sharding_stage = 4;
  EXPECT_THROW((void)stage_memory(in, bare_rules(), s), ContractViolation);
  in.sharding_stage = 0;
  in.data_shards = 0;
  EXPECT_THROW((void)stage_memory(in, bare_rules(), s), ContractViolation);
  in.data_shards = 1;
  in.microbatches_in_flight = -1;
  EXPECT_THROW((void)stage_memory(in, bare_rules(), s), ContractViolation);
}

}  // namespace memory_unit_test
}  // namespace towtank
