// SPDX-License-Identifier: Apache-2.0
#include "model/cost/analytic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/contracts.h"
#include "core/rng.h"
#include "model/cost/efficiencies.h"
#include "tests/model/cost/devices.h"
#include "tests/support/near.h"

namespace towtank::analytic_test {

using testing::a100;
using testing::attention_core;
using testing::h100;
using testing::kSameArithmetic;
using testing::rate_of;
using testing::seconds_of;
using testing::set_peak;
using testing::v100;

OpSignature stream(OpKind kind, std::int64_t bytes, int kernels = 1) {
  return memory_op(kind, DType::kBf16, {bytes}, {}, kernels);
}

OpCost cost_on(const DeviceKind& device, const OpSignature& op) {
  return AnalyticCostModel(device, testing::lone_view()).op(op);
}

TEST(UnitAnalytic, NothingCostsNothing) {
  EXPECT_EQ(seconds_of(stream(OpKind::kElementwise, 0, 5), a100()), 0.0);
  EXPECT_EQ(cost_on(a100(), matmul(DType::kBf16, 1, 0, 8, 8)).compute.value, 0.0);
}

TEST(UnitAnalytic, TimeIsLaunchAndTheSlowerOfComputeAndMemory) {
  for (const OpSignature& op :
       {matmul(DType::kBf16, 1, 8192, 8192, 8192), matmul(DType::kBf16, 1, 8192, 8192, 1),
        stream(OpKind::kNorm, 1'000'000'000), attention_core({64, 4096}, true, true)}) {
    const OpCost c = cost_on(a100(), op);
    EXPECT_CLOSE(c.time.value, c.launch.value + std::max(c.compute.value, c.memory.value),
                 kSameArithmetic);
    EXPECT_EQ(c.basis, Basis::kAnalytic);
  }
}

// Kernels of unfused attention run one after the other: two products and, over the 4096 x 4096
// scores of 64 heads in two bytes, a softmax that reads and writes at 0.75 * 0.85 of 2.039 TB/s.
TEST(UnitAnalytic, UnfusedAttentionAddsComputeAndMemory) {
  const OpCost c = cost_on(a100(), attention_core({64, 4096}, false, false));
  EXPECT_CLOSE(c.time.value, c.launch.value + c.compute.value + c.memory.value, kSameArithmetic);
  const double scores = 64.0 * 4096 * 4096 * 2;
  EXPECT_NEAR(c.memory.value, 2 * scores / (0.75 * 0.85 * 2.039e12), 2e-6);
  const OpCost first = cost_on(a100(), matmul(DType::kBf16, 64, 4096, 4096, 128));
  const OpCost second = cost_on(a100(), matmul(DType::kBf16, 64, 4096, 128, 4096));
  const auto body = [](const OpCost& cost) { return cost.time.value - cost.launch.value; };
  EXPECT_CLOSE(c.compute.value, body(first) + body(second), 1e-6);
}

// Backward has the gradients of scores, of values, of queries and of keys; its softmax reads two
// tensors and writes one.
TEST(UnitAnalytic, UnfusedAttentionGoesBackThroughFourProducts) {
  const auto body = [](const OpSignature& op) {
    const OpCost cost = cost_on(a100(), op);
    return cost.time.value - cost.launch.value;
  };
  const double outer = body(matmul(DType::kBf16, 64, 4096, 4096, 128));
  const double inner = body(matmul(DType::kBf16, 64, 4096, 128, 4096));
  const OpCost c = cost_on(a100(), attention_core({64, 4096}, false, false, Pass::kInputGrad));
  EXPECT_CLOSE(c.compute.value, outer + 3 * inner, 1e-6);
  EXPECT_NEAR(c.memory.value, 3 * 64.0 * 4096 * 4096 * 2 / (0.75 * 0.85 * 2.039e12), 2e-6);
}

// 10 GB at what element-wise kernels reach: the ramp is 1 us, 0.02 % of it.
TEST(UnitAnalytic, LargeStreamsReachTheGenerationsBandwidth) {
  const double reached = 10e9 / seconds_of(stream(OpKind::kElementwise, 10'000'000'000), a100());
  EXPECT_NEAR(reached, 2.039e12 * efficiencies_of("ampere").memory, 2.039e12 * 0.002);
}

TEST(UnitAnalytic, SmallStreamsReachLess) {
  const DeviceKind device = h100();
  const auto bandwidth = [&](std::int64_t bytes) {
    const OpSignature op = stream(OpKind::kElementwise, bytes);
    return static_cast<double>(bytes) / cost_on(device, op).memory.value;
  };
  EXPECT_LT(bandwidth(1'000), 0.001 * bandwidth(10'000'000'000));
  EXPECT_LT(bandwidth(1'000'000), 0.5 * bandwidth(10'000'000'000));
  EXPECT_GT(bandwidth(100'000'000), 0.9 * bandwidth(10'000'000'000));
}

// A device that outruns its host waits: kernels of no size cost the host's time each, whatever the
// device.
TEST(UnitAnalytic, TinyKernelsAreBoundByTheHost) {
  const double one = seconds_of(stream(OpKind::kElementwise, 8), h100());
  EXPECT_CLOSE(seconds_of(stream(OpKind::kElementwise, 8, 10), h100()), 10 * one, kSameArithmetic);
  EXPECT_CLOSE(seconds_of(stream(OpKind::kElementwise, 8), v100()), one, kSameArithmetic);
  EXPECT_GE(one, 5e-6);  // from Python to the driver: 5 to 25 us
  EXPECT_LE(one, 25e-6);
}

// A kernel that takes long hides the host; only the device's own gap stays.
TEST(UnitAnalytic, LongKernelsHideTheHost) {
  const OpCost c = cost_on(h100(), stream(OpKind::kElementwise, 10'000'000'000));
  EXPECT_LT(c.launch.value, 5e-6);
  EXPECT_GT(c.launch.value, 0.0);
}

// A product with one row more than a whole number of tiles costs another row of tiles.
TEST(UnitAnalytic, ProductsRunInWholeTiles) {
  const auto compute = [](std::int64_t m) {
    return cost_on(a100(), matmul(DType::kBf16, 1, m, 4096, 4096)).compute.value;
  };
  EXPECT_EQ(compute(1025), compute(1152));
  EXPECT_GT(compute(1025), compute(1024));
  EXPECT_LT(compute(1025) / compute(1024), 9.0 / 8);
}

// Starting and storing a tile takes as long as some depth of it.
TEST(UnitAnalytic, ShallowProductsReachLess) {
  const auto flop_rate = [](std::int64_t k) {
    const OpSignature op = matmul(DType::kBf16, 1, 16384, 16384, k);
    return op.work.value / cost_on(a100(), op).compute.value;
  };
  EXPECT_LT(flop_rate(128), 0.5 * flop_rate(65536));
  EXPECT_GT(flop_rate(1024), 0.8 * flop_rate(65536));
}

TEST(UnitAnalytic, ShapesWithoutDimensionsUseTheirWork) {
  OpSignature op = stream(OpKind::kConvolution, 1000);
  op.work = {1e12};
  const double bound = 1e12 / 312e12;
  EXPECT_GT(cost_on(a100(), op).compute.value, bound);
  EXPECT_LT(cost_on(a100(), op).compute.value, 3 * bound);
}

// bf16 on a device without it runs in fp16, fp8 without it in bf16; fp32 without matrix units on
// the vector units.
TEST(UnitAnalytic, MissingUnitsRunOnTheNextWider) {
  const auto product = [](DType d, const DeviceKind& device) {
    return cost_on(device, matmul(d, 1, 4096, 4096, 4096)).compute.value;
  };
  EXPECT_EQ(product(DType::kBf16, v100()), product(DType::kFp16, v100()));
  EXPECT_EQ(product(DType::kFp8, a100()), product(DType::kBf16, a100()));
  EXPECT_EQ(product(DType::kInt8, a100()), product(DType::kBf16, a100()));
  EXPECT_EQ(product(DType::kFp4, h100()), product(DType::kFp8, h100()));
  EXPECT_CLOSE(product(DType::kFp32, v100()), product(DType::kFp16, v100()) * 125 / 15.7,
               kSameArithmetic);
}

// Only products gain from eight bits, 1.27 to 1.45 times.
TEST(UnitAnalytic, EightBitsGainWhatWasMeasured) {
  const double gain = seconds_of(matmul(DType::kBf16, 1, 8192, 8192, 8192), h100()) /
                      seconds_of(matmul(DType::kFp8, 1, 8192, 8192, 8192), h100());
  EXPECT_GE(gain, 1.27);
  EXPECT_LE(gain, 1.45);
}

TEST(UnitAnalytic, UnknownGenerationsAreConservative) {
  const Efficiencies& unknown = efficiencies_of("of another maker");
  EXPECT_EQ(unknown.generation, "unknown");
  for (const char* known :
       {"volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna2", "cdna3", "cdna4"}) {
    const Efficiencies& e = efficiencies_of(known);
    EXPECT_EQ(e.generation, known);
    EXPECT_LE(unknown.product, e.product);
    EXPECT_LE(unknown.flash_forward, e.flash_forward);
    EXPECT_LE(unknown.flash_backward, e.flash_backward);
    EXPECT_LE(unknown.memory, e.memory);
    EXPECT_LE(e.flash_backward, e.flash_forward);
  }
}

TEST(UnitAnalytic, NamesItsDeviceAndBasis) {
  const std::string text = AnalyticCostModel(a100(), testing::lone_view()).description();
  EXPECT_NE(text.find("ampere device"), std::string::npos);
  EXPECT_NE(text.find("no calibration"), std::string::npos);
}

TEST(UnitAnalytic, NeedsRates) {
  DeviceKind none = a100();
  none.memory_bandwidth = {0.0};
  EXPECT_THROW(AnalyticCostModel(none, testing::lone_view()), ContractViolation);
}

TEST(UnitAnalytic, FusedCausalAttentionSavesNearlyHalfOfLongOnes) {
  const auto ratio = [](std::int64_t keys) {
    return seconds_of(attention_core({64, keys}, true, true), h100()) /
           seconds_of(attention_core({64, keys}, false, true), h100());
  };
  EXPECT_GT(ratio(2048), 0.55);
  EXPECT_GT(ratio(65536), 0.5);
  EXPECT_LT(ratio(65536), 0.51);
}

// Backward of short sequences reaches less of its best than forward does.
TEST(UnitAnalytic, FusedBackwardNeedsLongerSequences) {
  const auto share = [](Pass pass) {
    return rate_of(attention_core({2048, 1024}, false, true, pass), h100()) /
           rate_of(attention_core({2, 1 << 20}, false, true, pass), h100());
  };
  EXPECT_LT(share(Pass::kInputGrad), 0.9 * share(Pass::kForward));
}

/// A random device whose rates lie between those of a V100 and twice a B200's.
DeviceKind random_device(Rng& rng) {
  constexpr std::array generations{"volta", "ampere", "hopper", "cdna3", "else"};
  DeviceKind d = testing::device_of(generations[static_cast<std::size_t>(rng.integer(0, 4))],
                                    rng.uniform(10e12, 100e12), rng.uniform(0.3e12, 8e12),
                                    static_cast<int>(rng.integer(20, 304)));
  set_peak(d, DType::kFp16, rng.uniform(50e12, 5000e12));
  if (rng.integer(0, 1) == 0) set_peak(d, DType::kBf16, rng.uniform(50e12, 5000e12));
  if (rng.integer(0, 1) == 0) set_peak(d, DType::kFp8, rng.uniform(100e12, 9000e12));
  if (rng.integer(0, 1) == 0) d.multiprocessors.reset();
  return d;
}

std::int64_t log_uniform(Rng& rng, double most) {
  return static_cast<std::int64_t>(std::exp2(rng.uniform(0.0, std::log2(most))));
}

struct Extents {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};
Extents random_extents(Rng& rng) {
  return {log_uniform(rng, 64), log_uniform(rng, 65536), log_uniform(rng, 65536),
          log_uniform(rng, 65536)};
}

OpSignature op_of(int which, DType dtype, const Extents& e) {
  switch (which) {
    case 0:
      return matmul(dtype, e.batch, e.m, e.n, e.k);
    case 1: {
      OpSignature s = matmul(dtype, e.batch, e.m, e.n, e.k);
      s.kind = OpKind::kConvolution;
      return s;
    }
    case 2:
      return attention_core({e.batch, e.m, e.k}, true, true);
    case 3:
      return attention_core({e.batch, e.m, e.k}, false, true, Pass::kInputGrad);
    case 4:
      return attention_core({e.batch, e.m, e.k}, false, false);
    default:
      return memory_op(static_cast<OpKind>(which - 3), dtype, {e.batch * e.m * e.n},
                       {static_cast<double>(e.batch * e.m)});
  }
}

/// The fastest units that an op could run on.
double roof_of(const DeviceKind& device, const OpSignature& op) {
  const bool product = op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution ||
                       op.kind == OpKind::kAttention;
  double roof = device.vector_peak.value;
  if (!product || op.dtype == DType::kFp32) return roof;
  for (const DType d : {DType::kFp16, DType::kBf16, DType::kFp8}) {
    if (op.dtype != DType::kFp8 && d == DType::kFp8) continue;
    roof = std::max(roof, device.peak_of(d).value_or(FlopPerSecond{0}).value);
  }
  return roof;
}

TEST(LawAnalytic, NeverAboveTheRoofline) {
  Rng rng(1);
  for (int round = 0; round < 20000; ++round) {
    const DeviceKind device = random_device(rng);
    constexpr std::array dtypes{DType::kFp16, DType::kBf16, DType::kFp8, DType::kFp32};
    const DType dtype = dtypes[static_cast<std::size_t>(rng.integer(0, 3))];
    const OpSignature op = op_of(static_cast<int>(rng.integer(0, 10)), dtype, random_extents(rng));
    const double roof = roof_of(device, op);
    const double time = seconds_of(op, device);
    ASSERT_GE(time, op.work.value / roof) << to_text(op.kind);
    ASSERT_GE(time, static_cast<double>(op.traffic.value) / device.memory_bandwidth.value)
        << to_text(op.kind);
  }
}

TEST(LawAnalytic, MonotoneInEveryAlignedExtent) {
  constexpr std::int64_t kAligned = 64;  // elements of 2 bytes that fill 128 bytes
  Rng rng(2);
  for (int round = 0; round < 20000; ++round) {
    const DeviceKind device = random_device(rng);
    Extents small = random_extents(rng);
    for (std::int64_t* extent : {&small.m, &small.n, &small.k}) *extent *= kAligned;
    Extents large = small;
    for (std::int64_t* extent : {&large.m, &large.n, &large.k}) {
      if (rng.integer(0, 1) == 0) *extent += kAligned * log_uniform(rng, 300);
    }
    if (rng.integer(0, 1) == 0) large.batch += log_uniform(rng, 300);
    const int which = static_cast<int>(rng.integer(0, 10));
    ASSERT_LE(seconds_of(op_of(which, DType::kBf16, small), device),
              seconds_of(op_of(which, DType::kBf16, large), device))
        << "op " << which << ": " << small.batch << " x " << small.m << " x " << small.n << " x "
        << small.k;
  }
}

TEST(UnitAnalytic, MisalignedRowsCostByTheHalving) {
  Rng rng(4);
  DeviceKind device = random_device(rng);
  device.generation = "ampere";
  const auto large = [&](std::int64_t n, std::int64_t k) {
    return seconds_of(matmul(DType::kBf16, 1, 8192, n, k), device) / static_cast<double>(n * k);
  };
  // Sixteen elements fill 32 bytes: 8,176 = 16 x 511 loses nothing, 8,184 = 8 x 1,023 one halving
  // of four, 8,191 all: 1 + 3 / 4 and 1 + 3.
  EXPECT_NEAR(large(8176, 8192) / large(8192, 8192), 1.0, 0.02);
  EXPECT_NEAR(large(8184, 8192) / large(8192, 8192), 1.75, 0.02);
  EXPECT_NEAR(large(8191, 8192) / large(8192, 8192), 4.0, 0.04);
  device.generation = "volta";  // asks for rows of 16 bytes only
  EXPECT_NEAR(large(8184, 8192) / large(8192, 8192), 1.0, 0.02);
}

TEST(LawAnalytic, AFasterDeviceIsNeverSlower) {
  Rng rng(3);
  for (int round = 0; round < 20000; ++round) {
    const DeviceKind device = random_device(rng);
    DeviceKind faster = device;
    const auto raise = [&](double& rate) { rate *= rng.uniform(1.0, 2.0); };
    raise(faster.vector_peak.value);
    raise(faster.memory_bandwidth.value);
    for (auto& peak : faster.peak) {
      if (peak) raise(peak->value);
    }
    const Extents extents = random_extents(rng);
    const int which = static_cast<int>(rng.integer(0, 10));
    for (const DType dtype : {DType::kBf16, DType::kFp8}) {
      const OpSignature op = op_of(which, dtype, extents);
      ASSERT_LE(seconds_of(op, faster), seconds_of(op, device)) << "op " << which;
    }
  }
}

}  // namespace towtank::analytic_test
