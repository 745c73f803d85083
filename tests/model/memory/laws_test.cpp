// SPDX-License-Identifier: Apache-2.0
// What memory must obey, over seeded random decoders and degrees.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "core/rng.h"
#include "tests/model/memory/stages.h"

namespace towtank {
namespace memory_laws_test {

using testing::DecoderShape;
using testing::DecoderStage;

constexpr int kTrials = 200;
constexpr Bytes kHuge{std::int64_t{1} << 60};
constexpr Bytes kRounding{64};  // each part is rounded up to a byte, each layer before that

struct Trial {
  DecoderShape shape;
  ShardDegrees degrees;
  int tokens = 0, stage = 0, shards = 1;
  Framework framework = Framework::kMegatron;
  RecomputeMode recompute = RecomputeMode::kNone;
  double in_flight = 1;
};

Trial random_trial(Rng& rng) {
  Trial t;
  const int width = 128;
  const int kv = 8;
  const int heads = kv * static_cast<int>(rng.integer(1, 8));
  t.shape.hidden = heads * width;
  t.shape.heads = heads;
  t.shape.kv_heads = kv;
  t.shape.layers = static_cast<int>(rng.integer(12, 96));
  t.shape.width = 1024 * static_cast<int>(rng.integer(4, 32));
  t.shape.vocabulary = 1024 * static_cast<int>(rng.integer(8, 32));
  t.degrees.tensor = 1 << rng.integer(0, 3);
  t.degrees.microbatch = static_cast<int>(rng.integer(1, 4));
  t.degrees.sequence_parallel = rng.integer(0, 1) == 1 && t.degrees.tensor > 1;
  t.tokens = 1024 * static_cast<int>(rng.integer(1, 8));
  t.stage = static_cast<int>(rng.integer(0, 3));
  t.shards = 1 << rng.integer(1, 8);
  t.framework = static_cast<Framework>(rng.integer(0, static_cast<int>(kFrameworkCount) - 1));
  t.recompute = static_cast<RecomputeMode>(rng.integer(0, 2));
  t.in_flight = static_cast<double>(rng.integer(1, 16));
  return t;
}

std::unique_ptr<DecoderStage> make(const Trial& t) {
  auto stage = std::make_unique<DecoderStage>(t.shape, t.tokens, t.degrees, t.framework,
                                              DType::kBf16, t.recompute);
  stage->input.data_shards = stage->input.expert_data_shards = t.shards;
  stage->input.sharding_stage = t.stage;
  stage->input.microbatches_in_flight = t.in_flight;
  return stage;
}

Bytes states_of(const MemoryBreakdown& m) { return m.parameters + m.gradients + m.optimizer; }

template <class Check>
void for_each_trial(std::uint64_t seed, Check&& check) {
  Rng rng(seed);
  for (int i = 0; i < kTrials; ++i) {
    SCOPED_TRACE(i);
    check(random_trial(rng));
  }
}

TEST(LawMemory, PartsSumToTheTotalAndThePeakIsTheLargestPhase) {
  for_each_trial(1, [](const Trial& t) {
    const auto stage = make(t);
    const MemoryBreakdown peak = stage->memory();
    for (const MemoryBreakdown& m : stage->phases()) {
      EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.logits + m.working +
                    m.buffers + m.reserve + m.context,
                m.total());
      EXPECT_LE(m.total(), peak.total());
      EXPECT_GE(m.reserve.value, 0);
      if (m.phase == peak.phase) {
        EXPECT_EQ(m, peak);
      }
    }
  });
}

TEST(LawMemory, StatesShrinkWithTheShardingStage) {
  for_each_trial(2, [](Trial t) {
    Bytes before{kHuge.value};
    for (t.stage = 0; t.stage <= 3; ++t.stage) {
      const Bytes now = states_of(make(t)->memory());
      EXPECT_LE(now, before) << t.stage;
      before = now;
    }
  });
}

TEST(LawMemory, MoreShardsNeverNeedMore) {
  for_each_trial(3, [](Trial t) {
    Bytes states{kHuge.value}, total{kHuge.value};
    for (t.shards = 2; t.shards <= 1024; t.shards *= 2) {
      const MemoryBreakdown m = make(t)->memory();
      EXPECT_LE(states_of(m), states) << t.shards;
      EXPECT_LE(m.total(), total) << t.shards;
      states = states_of(m);
      total = m.total();
    }
  });
}

TEST(LawMemory, MoreTensorRanksNeverHoldMoreStates) {
  for_each_trial(4, [](Trial t) {
    Bytes before{kHuge.value};
    t.degrees.sequence_parallel = false;
    for (t.degrees.tensor = 1; t.degrees.tensor <= 8; t.degrees.tensor *= 2) {
      const Bytes now = states_of(make(t)->memory());
      EXPECT_LE(now, before + kRounding) << t.degrees.tensor;
      before = now;
    }
  });
}

TEST(LawMemory, MoreInFlightAndLargerMicrobatchesNeedMore) {
  for_each_trial(5, [](Trial t) {
    const Bytes one = make(t)->memory().total();
    t.in_flight += 0.5;
    EXPECT_GE(make(t)->memory().total(), one);
    t.in_flight -= 0.5;
    ++t.degrees.microbatch;
    EXPECT_GE(make(t)->memory().total(), one);
  });
}

TEST(LawMemory, MoreRecomputationSavesLess) {
  for_each_trial(6, [](const Trial& t) {
    const auto stage = make(t);
    const FrameworkRules& rules = rules_of(t.framework);
    const Bytes none = saved_bytes(stage->block(), RecomputeMode::kNone, rules);
    const Bytes selective = saved_bytes(stage->block(), RecomputeMode::kSelective, rules);
    const Bytes full = saved_bytes(stage->block(), RecomputeMode::kFull, rules);
    EXPECT_LT(selective, none);
    EXPECT_LT(full, selective);
  });
}

// Twice the layers, twice the states and activations; the working set is that of one layer.
TEST(LawMemory, LayersAddUp) {
  for_each_trial(7, [](Trial t) {
    auto stage = make(t);
    stage->keep(0, 4, 0);
    const MemoryBreakdown four = stage->phases()[0];
    stage->keep(0, 8, 0);
    const MemoryBreakdown eight = stage->phases()[0];
    EXPECT_LE(std::abs((eight.activations - 2 * four.activations).value), kRounding.value);
    EXPECT_LE(std::abs((states_of(eight) - 2 * states_of(four)).value), kRounding.value);
    EXPECT_GE(eight.working, four.working);
  });
}

TEST(LawMemory, FitIsMonotone) {
  Rng rng(8);
  for (int i = 0; i < kTrials; ++i) {
    const Bytes capacity{rng.integer(1, 200'000'000'000)};
    const Bytes total{rng.integer(0, 220'000'000'000)};
    const Fit fit = fit_of(total, capacity);
    EXPECT_GE(fit_of(total + Bytes{rng.integer(0, 1'000'000'000)}, capacity), fit);
    EXPECT_LE(fit_of(total, capacity + Bytes{rng.integer(0, 1'000'000'000)}), fit);
  }
}

}  // namespace memory_laws_test
}  // namespace towtank
