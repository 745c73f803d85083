// SPDX-License-Identifier: Apache-2.0
#include "tests/support/constant_costs.h"

#include <gtest/gtest.h>

namespace towtank::constant_costs_test {

TEST(UnitConstantCosts, ATeraflopAndAGigabyteTakeASecond) {
  const ConstantCosts costs;
  const OpSignature product = matmul(DType::kBf16, 1, 1'000'000, 1000, 500);  // 2 m n k = 1e12
  EXPECT_EQ(costs.op(product).time.value, 1.0);
  EXPECT_EQ(costs.op(memory_op(OpKind::kNorm, DType::kBf16, {2'000'000'000})).time.value, 2.0);
  CollectiveCall call{Collective::kAllReduce, {3'000'000'000}, {.size = 8, .per_level = {8}}};
  EXPECT_EQ(costs.collective(call).time().value, 3.0);
  call.group = {};
  EXPECT_EQ(costs.collective(call).time().value, 0.0);
}

TEST(UnitConstantCosts, RatesCanBeGiven) {
  const ConstantCosts costs({.work = {2e12}, .memory = {1e9}, .collective = {4e9}});
  EXPECT_EQ(costs.op(matmul(DType::kBf16, 1, 1'000'000, 1000, 500)).time.value, 0.5);
  const CollectiveCall call{Collective::kSendRecv, {1'000'000'000}, {.size = 2, .per_level = {2}}};
  EXPECT_EQ(costs.collective(call).time().value, 0.25);
}

}  // namespace towtank::constant_costs_test
