// SPDX-License-Identifier: Apache-2.0
#include "profiler/op_signature.h"

#include <gtest/gtest.h>

#include "core/contracts.h"

namespace towtank::op_signature_test {
namespace {

TEST(UnitOpSignature, ProductCountsTwoFlopAnElementPair) {
  const OpSignature s = matmul(DType::kBf16, 3, 128, 256, 512);
  EXPECT_EQ(s.kind, OpKind::kMatmul);
  EXPECT_EQ(s.work.value, 2.0 * 3 * 128 * 256 * 512);
  // Operands and result, each once, two bytes an element.
  EXPECT_EQ(s.traffic.value, 3 * 2 * (128 * 512 + 512 * 256 + 128 * 256));
  EXPECT_EQ(s.kernels, 1);
}

TEST(UnitOpSignature, LowPrecisionResultsHaveTwoBytes) {
  const OpSignature s = matmul(DType::kFp8, 1, 64, 32, 16);
  EXPECT_EQ(s.traffic.value, 64 * 16 + 16 * 32 + 2 * 64 * 32);
  EXPECT_EQ(matmul(DType::kFp32, 1, 64, 32, 16).traffic.value, 4 * (64 * 16 + 16 * 32 + 64 * 32));
}

TEST(UnitOpSignature, EmptyProductCostsNothing) {
  const OpSignature s = matmul(DType::kBf16, 1, 0, 32, 0);
  EXPECT_EQ(s.work.value, 0);
  EXPECT_EQ(s.traffic.value, 0);
}

TEST(UnitOpSignature, MemoryOpIsItsTraffic) {
  const OpSignature s = memory_op(OpKind::kNorm, DType::kBf16, Bytes{4096}, Flop{7}, 2);
  EXPECT_EQ(s.kind, OpKind::kNorm);
  EXPECT_EQ(s.traffic.value, 4096);
  EXPECT_EQ(s.work.value, 7);
  EXPECT_EQ(s.kernels, 2);
}

TEST(UnitOpSignature, HugeProductsStayFinite) {
  const OpSignature s = matmul(DType::kFp32, 1 << 20, 1LL << 40, 1LL << 40, 1LL << 40);
  EXPECT_GT(s.traffic.value, 0);
  EXPECT_GT(s.work.value, 0);
}

TEST(UnitOpSignature, NegativeShapesBreakTheContract) {
  EXPECT_THROW(static_cast<void>(matmul(DType::kBf16, 1, -1, 1, 1)), ContractViolation);
  EXPECT_THROW(static_cast<void>(memory_op(OpKind::kNorm, DType::kBf16, Bytes{-1})),
               ContractViolation);
}

}  // namespace
}  // namespace towtank::op_signature_test
