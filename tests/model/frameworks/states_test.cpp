// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/frameworks/rules.h"

namespace towtank {
namespace frameworks_states_test {

/// Bytes a parameter on one of n ranks at a sharding stage, gathered copies not counted.
double held(const StateBytes& s, int stage, double n) {
  const auto part = [&](double bytes, int from) { return stage >= from ? bytes / n : bytes; };
  return part(s.parameter, s.parameter_from) + part(s.gradient, 2) + part(s.optimizer, 1) + s.extra;
}

StateBytes states(Framework f, DType precision, OptimizerKind o = OptimizerKind::kAdam) {
  return state_bytes(f, precision, o).value;
}

constexpr double kGroups[] = {1, 2, 8, 64, 1000};

// docs.nvidia.com/megatron-core, Distributed Optimizer: 18 -> 6 + 12/d (bf16), 20 -> 4 + 16/d
// (fp16), 16 -> 8 + 8/d (fp32); stages 2 and 3 divide the gradient and the parameter too.
TEST(UnitFrameworkStates, MegatronBf16KeepsFp32MainGradients) {
  const StateBytes s = states(Framework::kMegatron, DType::kBf16);
  for (const double n : kGroups) {
    EXPECT_DOUBLE_EQ(held(s, 0, n), 18);
    EXPECT_DOUBLE_EQ(held(s, 1, n), 6 + 12 / n);
    EXPECT_DOUBLE_EQ(held(s, 2, n), 2 + 16 / n);
    EXPECT_DOUBLE_EQ(held(s, 3, n), 18 / n);
  }
}

// Performance recipes set ddp.grad_reduce_in_fp32 to False: 2 bytes of gradient instead of 4.
TEST(UnitFrameworkStates, NemoKeepsBf16Gradients) {
  const StateBytes s = states(Framework::kNemo, DType::kBf16);
  for (const double n : kGroups) {
    EXPECT_DOUBLE_EQ(held(s, 0, n), 16);
    EXPECT_DOUBLE_EQ(held(s, 1, n), 4 + 12 / n);
  }
  EXPECT_DOUBLE_EQ(rules_of(Framework::kNemo).reduce_bytes.value, s.gradient);
}

TEST(UnitFrameworkStates, MegatronFp16CopiesGradients) {
  const StateBytes s = states(Framework::kMegatron, DType::kFp16);
  for (const double n : kGroups) {
    EXPECT_DOUBLE_EQ(held(s, 0, n), 20);
    EXPECT_DOUBLE_EQ(held(s, 1, n), 4 + 16 / n);
  }
}

TEST(UnitFrameworkStates, FullPrecisionHasNoMainCopy) {
  for (const Framework f :
       {Framework::kMegatron, Framework::kMegatronDeepSpeed, Framework::kDeepSpeed}) {
    const StateBytes s = states(f, DType::kFp32);
    for (const double n : kGroups) {
      EXPECT_DOUBLE_EQ(held(s, 0, n), 16);
      EXPECT_DOUBLE_EQ(held(s, 1, n), 8 + 8 / n);
      EXPECT_DOUBLE_EQ(held(s, 3, n), 16 / n);
    }
  }
}

// DeepSpeed stage_1_and_2.py, stage3.py: 2 bytes of weight, 2 of gradient, 12 of optimizer.
TEST(UnitFrameworkStates, DeepSpeedReducesInSixteenBits) {
  for (const DType d : {DType::kFp16, DType::kBf16}) {
    const StateBytes s = states(Framework::kDeepSpeed, d);
    for (const double n : kGroups) {
      EXPECT_DOUBLE_EQ(held(s, 0, n), 16);
      EXPECT_DOUBLE_EQ(held(s, 1, n), 4 + 12 / n);
      EXPECT_DOUBLE_EQ(held(s, 2, n), 2 + 14 / n);
      EXPECT_DOUBLE_EQ(held(s, 3, n), 16 / n);
    }
  }
}

// The fork's bf16 optimizer accumulates gradients in whole fp32 copies; its fp16 one does not.
TEST(UnitFrameworkStates, MegatronDeepSpeedBf16AddsAnUnshardedGradient) {
  const StateBytes bf16 = states(Framework::kMegatronDeepSpeed, DType::kBf16);
  const StateBytes fp16 = states(Framework::kMegatronDeepSpeed, DType::kFp16);
  for (const double n : kGroups) {
    EXPECT_DOUBLE_EQ(held(fp16, 1, n), 4 + 12 / n);
    EXPECT_DOUBLE_EQ(held(bf16, 1, n), held(fp16, 1, n) + 4);
  }
}

// fp32 shards and a bf16 copy while gathered; without resharding that copy stays: + 2.
TEST(UnitFrameworkStates, FsdpShardsFullPrecision) {
  for (const Framework f : {Framework::kFsdp, Framework::kTorchtitan, Framework::kTowtankRuntime}) {
    const StateBytes s = states(f, DType::kBf16);
    EXPECT_DOUBLE_EQ(s.gathered, 2);
    EXPECT_DOUBLE_EQ(states(f, DType::kFp32).gathered, 4);
    for (const double n : kGroups) {
      EXPECT_DOUBLE_EQ(held(s, 3, n), 16 / n);
      EXPECT_DOUBLE_EQ(held(s, 2, n) + s.gathered, 16 / n + 2);
    }
  }
}

TEST(LawFrameworkStates, Fp8ShrinksNothing) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    const auto f = static_cast<Framework>(i);
    EXPECT_EQ(states(f, DType::kFp8), states(f, DType::kBf16)) << kFrameworkNames[i];
  }
}

TEST(LawFrameworkStates, FewerMomentsTakeFourBytesEach) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    const auto f = static_cast<Framework>(i);
    for (const DType d : {DType::kFp32, DType::kFp16, DType::kBf16}) {
      const double adam = states(f, d).optimizer;
      EXPECT_DOUBLE_EQ(states(f, d, OptimizerKind::kMomentum).optimizer, adam - 4);
      EXPECT_DOUBLE_EQ(states(f, d, OptimizerKind::kSgd).optimizer, adam - 8);
    }
  }
}

TEST(LawFrameworkStates, EveryStateHasASource) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      EXPECT_FALSE(
          state_bytes(static_cast<Framework>(i), static_cast<DType>(d), OptimizerKind::kAdam)
              .assumed());
    }
  }
}

}  // namespace frameworks_states_test
}  // namespace towtank
