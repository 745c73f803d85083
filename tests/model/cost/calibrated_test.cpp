// SPDX-License-Identifier: Apache-2.0
#include "model/cost/calibrated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/rng.h"
#include "model/cost/analytic.h"
#include "model/cost/choose_costs.h"
#include "platforms/catalogue.h"
#include "tests/model/cost/devices.h"
#include "tests/model/cost/network_views.h"
#include "tests/support/near.h"

namespace towtank::calibrated_test {

using testing::a100;
using testing::kSameArithmetic;
using testing::lone_view;

constexpr double kPeak = 312e12;  // a100()
constexpr std::int64_t kWidth = 4096;

void set_terms(OpRecord& r, const std::vector<std::pair<OpTerm, double>>& terms) {
  for (const auto& [term, value] : terms)
    r.terms[static_cast<std::size_t>(term)] = Estimate{value, 0.0, true};
}

/// Products that reach `share` of the peak at every depth and number of tiles, gap 2 us.
OpRecord products(const DeviceKind& device, double share = 0.8) {
  OpRecord r;
  r.device_kind = device.name;
  r.generation = device.generation;
  r.memory_bandwidth = device.memory_bandwidth;
  r.peak = product_peak(device, DType::kBf16);
  r.kind = OpKind::kMatmul;
  r.dtypes = {DType::kFp16, DType::kBf16};
  set_terms(r, {{OpTerm::kShare, share},
                {OpTerm::kDepthHalf, 0.0},
                {OpTerm::kIdleShare, 0.0},
                {OpTerm::kMisaligned, 0.0},
                {OpTerm::kStreamShare, 0.9},
                {OpTerm::kRamp, 0.0},
                {OpTerm::kGap, 2e-6}});
  r.m = {128, 8192};
  r.n = r.k = {1024, 8192};
  r.traffic = {1e6, 1e9};
  r.evidence.rows = 10;
  return r;
}
/// Element-wise ops that reach `share` of the bandwidth, gap 2 us.
OpRecord streams(const DeviceKind& device, double share) {
  OpRecord r = products(device);
  r.kind = OpKind::kElementwise;
  r.terms = {};
  set_terms(r, {{OpTerm::kShare, share},
                {OpTerm::kBackwardShare, share},
                {OpTerm::kRamp, 0.0},
                {OpTerm::kGap, 2e-6}});
  r.m = r.n = r.k = {};
  return r;
}

Calibration calibration_of(std::vector<OpRecord> ops, const std::string& name = "ours") {
  Calibration c;
  c.name = name;
  c.ops = std::move(ops);
  return c;
}
CalibratedCostModel model_of(const DeviceKind& device, const std::vector<Calibration>& calibrations,
                             const std::vector<RuntimeRecord>& runtime = {},
                             const NetworkView& view = lone_view()) {
  std::vector<const Calibration*> asked;
  for (const Calibration& c : calibrations) asked.push_back(&c);
  return {device, view, asked, runtime};
}

OpSignature product(std::int64_t m, DType dtype = DType::kBf16) {
  return matmul(dtype, 1, m, kWidth, kWidth);
}
/// gap + 2 m n k / (share * peak): whole tiles, none idle.
double formula(std::int64_t m, double share = 0.8) {
  return 2e-6 + 2.0 * static_cast<double>(m) * kWidth * kWidth / (share * kPeak);
}

/// Measured at m = 1024: 200 us, and at 4096: 700 us.
Calibration with_shapes() {
  OpRecord r = products(a100());
  r.families = {
      {1,
       kWidth,
       kWidth,
       {{1024, std::log(200e-6 / formula(1024))}, {4096, std::log(700e-6 / formula(4096))}}}};
  return calibration_of({r});
}

// --- products ---

TEST(UnitCalibrated, AMeasuredShapeTakesWhatWasMeasured) {
  const CalibratedCostModel model = model_of(a100(), {with_shapes()});
  for (const auto& [m, seconds] : {std::pair{1024, 200e-6}, std::pair{4096, 700e-6}}) {
    const OpCost c = model.op(product(m));
    EXPECT_CLOSE(c.time.value, seconds, kSameArithmetic);
    EXPECT_CLOSE(c.launch.value + std::max(c.compute.value, c.memory.value), seconds,
                 kSameArithmetic);
    EXPECT_EQ(c.basis, Basis::kMeasured);
  }
}

// 2048 lies in the middle of 1024 and 4096 in logarithms: the correction is the geometric mean.
TEST(UnitCalibrated, BetweenTwoMeasuredRowsTheCorrectionIsInterpolated) {
  const OpCost c = model_of(a100(), {with_shapes()}).op(product(2048));
  const double correction = std::sqrt(200e-6 / formula(1024) * 700e-6 / formula(4096));
  EXPECT_CLOSE(c.time.value, formula(2048) * correction, kSameArithmetic);
  EXPECT_EQ(c.basis, Basis::kInterpolated);
}

TEST(UnitCalibrated, OtherProductsTakeTheFormula) {
  const CalibratedCostModel model = model_of(a100(), {with_shapes()});
  const auto expect = [&](const OpSignature& op, double seconds, Basis basis) {
    const OpCost c = model.op(op);
    EXPECT_CLOSE(c.time.value, seconds, kSameArithmetic);
    EXPECT_EQ(c.basis, basis) << op.m;
  };
  expect(product(512), formula(512), Basis::kInterpolated);      // below the first of the family
  expect(product(8192), formula(8192), Basis::kInterpolated);    // beyond its last
  expect(product(16384), formula(16384), Basis::kExtrapolated);  // beyond the rows
  expect(matmul(DType::kBf16, 1, 1024, 2048, kWidth), formula(512), Basis::kInterpolated);
  expect(matmul(DType::kBf16, 1, 1024, 512, kWidth), formula(128), Basis::kExtrapolated);
  expect(matmul(DType::kBf16, 2, 1024, kWidth, kWidth), formula(2048), Basis::kInterpolated);
  // Several kernels together were not what was measured.
  OpSignature two = product(1024);
  two.kernels = 2;
  expect(two, formula(1024) + 2e-6, Basis::kInterpolated);
}

TEST(UnitCalibrated, ShapesOfManyFamiliesAreFound) {
  std::vector<ShapeFamily> families;
  for (std::int64_t i = 1; i <= 500; ++i)
    families.push_back({i % 3 + 1, 128 * i, 64 * (501 - i), {{7, 0.001 * static_cast<double>(i)}}});
  const ShapeTable table(families);
  for (std::int64_t i = 1; i <= 500; ++i) {
    const auto found = table.find(matmul(DType::kBf16, i % 3 + 1, 7, 128 * i, 64 * (501 - i)));
    ASSERT_TRUE(found.found) << i;
    EXPECT_CLOSE(found.factor, std::exp(0.001 * static_cast<double>(i)), kSameArithmetic);
  }
  EXPECT_FALSE(table.find(matmul(DType::kBf16, 4, 7, 128, 64 * 500)).found);
  EXPECT_FALSE(ShapeTable().find(product(1)).found);
}

// Twice the share of bf16 than before is twice the share of eight bits.
TEST(UnitCalibrated, NarrowProductsFollowTwoByteOnes) {
  const DeviceKind device = testing::h100();
  const CalibratedCostModel slow = model_of(device, {calibration_of({products(device, 0.4)})});
  const CalibratedCostModel fast = model_of(device, {calibration_of({products(device, 0.8)})});
  const OpCost c = slow.op(product(8192, DType::kFp8));
  EXPECT_EQ(c.basis, Basis::kExtrapolated);
  EXPECT_CLOSE(c.compute.value, 2.0 * fast.op(product(8192, DType::kFp8)).compute.value,
               kSameArithmetic);
  EXPECT_LT(c.time, slow.op(product(8192)).time);
}

// --- which record ---

TEST(UnitCalibrated, WithoutARecordParametersAreDocumented) {
  const CalibratedCostModel model = model_of(a100(), {with_shapes()});
  const AnalyticCostModel analytic(a100(), lone_view());
  for (const OpSignature& op :
       {memory_op(OpKind::kNorm, DType::kBf16, {100'000'000}), product(2048, DType::kFp32),
        testing::attention_core({64, 2048}, true, true)}) {
    const OpCost c = model.op(op);
    EXPECT_EQ(c.basis, Basis::kAnalytic);
    EXPECT_EQ(c.compute, analytic.op(op).compute);
    EXPECT_EQ(c.memory, analytic.op(op).memory);
  }
}

// What launches cost the host is the framework's: a tiny op costs the device's gap.
TEST(UnitCalibrated, OpsAreOfTheDeviceAlone) {
  const CalibratedCostModel model = model_of(a100(), {calibration_of({streams(a100(), 0.5)})});
  const OpCost c = model.op(memory_op(OpKind::kElementwise, DType::kBf16, {1000}));
  EXPECT_CLOSE(c.time.value, 2e-6 + 1000 / (0.5 * 2.039e12), kSameArithmetic);
  EXPECT_EQ(c.basis, Basis::kExtrapolated);  // rows begin at 1 MB
  EXPECT_EQ(model.runtime(Framework::kMegatron).host_per_kernel,
            documented_op_parameters(a100()).host);
  EXPECT_EQ(model.runtime(Framework::kMegatron).origin, "");
}

TEST(UnitCalibrated, OptimizersStreamAsElementwiseOpsDo) {
  const CalibratedCostModel model = model_of(a100(), {calibration_of({streams(a100(), 0.5)})});
  const OpCost c = model.op(memory_op(OpKind::kOptimizer, DType::kBf16, {100'000'000}));
  EXPECT_CLOSE(c.memory.value, 1e8 / (0.5 * 2.039e12), kSameArithmetic);
  EXPECT_EQ(c.basis, Basis::kExtrapolated);
}

/// Another kind of the generation: half the rates.
DeviceKind half_a100() {
  DeviceKind d = a100();
  d.name = "half an a100";
  d.memory_bandwidth = d.memory_bandwidth / 2.0;
  for (const DType t : {DType::kFp16, DType::kBf16}) testing::set_peak(d, t, kPeak / 2);
  return d;
}

TEST(UnitCalibrated, AnotherKindOfTheGenerationServesByItsSharesAndIsNamed) {
  const CalibratedCostModel model = model_of(half_a100(), {with_shapes()});
  const OpCost c = model.op(product(1024));
  // Its share of half the peak; a shape that was measured elsewhere says nothing here.
  EXPECT_CLOSE(c.time.value, formula(1024, 0.4), kSameArithmetic);
  EXPECT_EQ(c.basis, Basis::kExtrapolated);
  EXPECT_EQ(model.description(),
            "calibration ours for half an a100 (matmul of fp16 and bf16 from ampere device: "
            "interval doubled), no fabric calibrated");
  DeviceKind hopper = half_a100();
  hopper.generation = "hopper";
  EXPECT_EQ(model_of(hopper, {with_shapes()}).op(product(1024)).basis, Basis::kAnalytic);
  EXPECT_EQ(model_of(hopper, {with_shapes()}).description(),
            "documented efficiencies for half an a100, no fabric calibrated");
}

TEST(UnitCalibrated, AKindWithTheSameRatesServesAsTheDeviceItself) {
  DeviceKind larger = a100();
  larger.name = "a larger a100";
  const CalibratedCostModel model = model_of(larger, {with_shapes()});
  EXPECT_EQ(model.op(product(1024)).basis, Basis::kMeasured);
  EXPECT_CLOSE(model.op(product(1024)).time.value, 200e-6, kSameArithmetic);
  EXPECT_EQ(model.description(), "calibration ours for a larger a100, no fabric calibrated");
}

TEST(UnitCalibrated, TheOwnKindIsTakenWhereverItStandsAndElseTheNearest) {
  DeviceKind third = a100();
  third.name = "a third";
  third.memory_bandwidth = third.memory_bandwidth / 3.0;
  for (const DType t : {DType::kFp16, DType::kBf16}) testing::set_peak(third, t, kPeak / 3);
  const std::vector<Calibration> all{
      calibration_of({products(third, 0.3), streams(third, 0.3)}, "third"),
      calibration_of({products(half_a100(), 0.5), streams(half_a100(), 0.5)}, "half"),
      calibration_of({products(a100(), 0.8), streams(a100(), 0.8)}, "own"),
      calibration_of({products(a100(), 0.7)}, "own again")};
  const OpSignature add = memory_op(OpKind::kElementwise, DType::kBf16, {100'000'000});
  const CalibratedCostModel own = model_of(a100(), all);
  EXPECT_CLOSE(own.op(product(1024)).time.value, formula(1024, 0.8), kSameArithmetic);
  EXPECT_EQ(own.description(), "calibration own for ampere device, no fabric calibrated");
  // Without it: half the peak is nearer than a third.
  const CalibratedCostModel kin = model_of(a100(), {all[0], all[1]});
  EXPECT_CLOSE(kin.op(product(1024)).time.value, formula(1024, 0.5), kSameArithmetic);
  EXPECT_CLOSE(kin.op(add).memory.value, 1e8 / (0.5 * 2.039e12), kSameArithmetic);
  // As near: the one with more rows.
  std::vector<Calibration> twice{all[1], all[1]};
  twice[1].ops[0] = products(half_a100(), 0.6);
  twice[1].ops[0].evidence.rows = 11;
  EXPECT_CLOSE(model_of(a100(), twice).op(product(1024)).time.value, formula(1024, 0.6),
               kSameArithmetic);
}

// --- laws of what is shipped ---

std::vector<const Calibration*> shipped() {
  std::vector<const Calibration*> out;
  for (const Calibration& c : shipped_calibrations()) out.push_back(&c);
  return out;
}

/// The least correction of any measured shape that may serve the device.
double least_correction(const DeviceKind& device) {
  double least = 0.0;
  for (const Calibration& c : shipped_calibrations()) {
    for (const OpRecord& r : c.ops) {
      if (r.generation != device.generation) continue;
      for (const ShapeFamily& family : r.families)
        for (const auto& knot : family.knots) least = std::min(least, knot.log_ratio);
    }
  }
  return std::exp(least);
}

const std::array kDevices{"v100-sxm2-32g", "t4",           "rtx-3090",  "a100-sxm-40g",
                          "a100-sxm-80g",  "h100-sxm-80g", "gh200-96g", "h200-sxm-141g"};

TEST(LawCalibrated, NeverAboveTheRooflineButForMeasuredShapes) {
  Rng rng(1);
  for (const char* name : kDevices) {
    const DeviceKind device = load_device_kind(name);
    const CalibratedCostModel model(device, lone_view(), shipped(), {});
    const double least = least_correction(device);
    EXPECT_GT(least, 0.5);
    const auto extent = [&](double most) {
      return static_cast<std::int64_t>(std::exp2(rng.uniform(0.0, std::log2(most))));
    };
    for (int round = 0; round < 3000; ++round) {
      OpSignature op = matmul(rng.integer(0, 3) == 0 ? DType::kFp32 : DType::kFp16, extent(64),
                              extent(65536), extent(65536), extent(65536));
      const int which = static_cast<int>(rng.integer(0, 8));
      if (which > 1) op = memory_op(static_cast<OpKind>(which), op.dtype, {extent(1e10)});
      if (which == 1) op = testing::attention_core({extent(64), extent(16384)}, true, true);
      const double floor = op.kind == OpKind::kMatmul ? least : 1.0;
      const double time = model.op(op).time.value;
      ASSERT_GE(time, floor * (op.work.value / product_peak(device, op.dtype).value)) << name;
      ASSERT_GE(time, floor * (op.traffic / device.memory_bandwidth).value)
          << name << " " << to_text(op.kind);
    }
  }
}

// Measured shapes themselves: none reaches more than the datasheet's peak, but for the RTX 3090,
// whose board makers clock it higher than the 1.695 GHz that its peak is stated for.
TEST(LawCalibrated, NoMeasuredShapeBeatsThePeak) {
  for (const char* name : kDevices) {
    const DeviceKind device = load_device_kind(name);
    const CalibratedCostModel model(device, lone_view(), shipped(), {});
    for (const Calibration& c : shipped_calibrations()) {
      for (const OpRecord& r : c.ops) {
        if (r.device_kind != name) continue;
        for (const ShapeFamily& family : r.families) {
          for (const auto& knot : family.knots) {
            const OpSignature op =
                matmul(r.dtypes.front(), family.batch, knot.m, family.n, family.k);
            const OpCost cost = model.op(op);
            ASSERT_EQ(cost.basis, Basis::kMeasured) << name;
            const double clock = r.device_kind == "rtx-3090" ? 1.85 / 1.695 : 1.0;
            EXPECT_GE(cost.time.value * clock, op.work.value / product_peak(device, op.dtype).value)
                << name << " " << family.batch << " x " << knot.m << " x " << family.n << " x "
                << family.k;
          }
        }
      }
    }
  }
}

NetworkView view_of_platform(const Platform& platform, int devices) {
  return network_view(platform, std::get<Allocation>(allocate(platform, devices)));
}

TEST(LawCalibrated, CollectivesTakeLongerForMoreBytes) {
  for (const char* name : {"dgx-a100-80g", "dgx-h100", "jean-zay-v100", "jean-zay-a100",
                           "gh200x4-slingshot", "dgx-b200", "aws-p3dn"}) {
    const Platform platform = load_platform(name);
    const int in_node = platform.node_kinds[platform.nodes.front().kind].devices;
    for (const int devices : {in_node, 4 * in_node}) {
      if (std::holds_alternative<TooManyDevices>(allocate(platform, devices))) continue;
      const NetworkView view = view_of_platform(platform, devices);
      const CalibratedCostModel model(platform.device_kinds[view.device], view, shipped(), {});
      for (std::size_t c = 0; c < kCollectiveCount; ++c) {
        for (const int ranks : {2, in_node, devices}) {
          const GroupShape group = group_shape(view, ranks, 1);
          Seconds before;
          for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 34); bytes = bytes * 3 / 2 + 1) {
            const Seconds now =
                model.collective({static_cast<Collective>(c), {bytes}, group}).time();
            ASSERT_GE(now, before) << name << " " << kCollectiveNames[c] << " " << ranks;
            before = now;
          }
          EXPECT_GT(before.value, 0.0);
        }
      }
    }
  }
}

TEST(UnitCalibrated, CollectivesSayWhatTheyRestOn) {
  const Platform platform = load_platform("dgx-a100-80g");
  const NetworkView view = view_of_platform(platform, 16);
  const CalibratedCostModel model(platform.device_kinds[view.device], view, shipped(), {});
  const auto basis = [&](int ranks, std::int64_t bytes) {
    return model.collective({Collective::kAllReduce, {bytes}, group_shape(view, ranks, 1)}).basis;
  };
  EXPECT_EQ(basis(8, 1 << 26), Basis::kInterpolated);
  EXPECT_EQ(basis(8, std::int64_t{1} << 40), Basis::kExtrapolated);  // beyond the rows
  EXPECT_EQ(basis(16, 1 << 26), Basis::kAnalytic);  // nobody measured its InfiniBand
  EXPECT_TRUE(model.description().ends_with(", fabric nvlink3")) << model.description();
}

}  // namespace towtank::calibrated_test
