// SPDX-License-Identifier: Apache-2.0
/// Fits of ops: rows whose times are arithmetic with known parameters give the parameters back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/rng.h"
#include "model/cost/fit/op_fit.h"
#include "tests/model/cost/devices.h"
#include "tests/support/near.h"

namespace towtank::fit_test {

using testing::a100;

constexpr double kPeak = 312e12, kBandwidth = 2.039e12, kMultiprocessors = 108;  // a100()
/// Rows without noise: what the fit leaves is its own stopping rule.
constexpr double kRecovered = 0.01;
/// 5 % of rows are ten times too long: Huber's loss lets each pull with 1.345 of the least scale,
/// 1 %, which moves a mean by 0.05 * 1.345 * 1 %, and what a few rows alone tell by more.
constexpr double kDespiteOutliers = 0.03;

/// Rows of one bench; measurements must stay where they are.
struct Bench {
  Profile profile;
  std::vector<OpRow> rows() const {
    std::vector<OpRow> out;
    for (const OpMeasurement& m : profile.ops) out.push_back({&m, &profile});
    return out;
  }
  void add(const OpSignature& s, double seconds, const std::string& group) {
    OpMeasurement m;
    m.signature = s;
    m.time.median = {seconds};
    m.label = "op";
    m.group = group;
    profile.ops.push_back(m);
  }
  /// Rows 7, 27, 47, ... take ten times as long.
  int spoil() {
    int spoilt = 0;
    for (std::size_t i = 7; i < profile.ops.size(); i += 20, ++spoilt)
      profile.ops[i].time.median.value *= 10.0;
    return spoilt;
  }
  Bench() { profile.name = "bench"; }
};

struct Fitted {
  OpFit fit;
  [[nodiscard]] const Estimate& term(OpTerm t) const {
    return fit.record.terms[static_cast<std::size_t>(t)].value();
  }
  [[nodiscard]] bool says(const std::string& text) const {
    const auto& lines = fit.report.untold;
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
};

Fitted fitted(const Bench& bench, const OpKey& key) {
  OpParameters parameters = documented_op_parameters(a100());
  auto result = fit_op(a100(), key, bench.rows(), parameters);
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    ADD_FAILURE() << refusal->title << ": " << refusal->why;
    return {};
  }
  Fitted out{std::get<OpFit>(std::move(result))};
  // What follows is predicted with what was fitted.
  for (const OpTerm t : terms_of(key.kind, key.fused)) {
    EXPECT_EQ(term_of(parameters, key.kind, key.fused, key.dtypes.front(), t), out.term(t).value);
  }
  return out;
}

void expect_told(const Fitted& f, OpTerm term, double truth, double tolerance) {
  const auto name = kOpTermNames[static_cast<std::size_t>(term)];
  EXPECT_TRUE(f.term(term).fitted) << name;
  EXPECT_NEAR(f.term(term).value / truth, 1.0, tolerance) << name;
}

// --- products ---

const OpKey kProducts{OpKind::kMatmul, true, {DType::kFp16, DType::kBf16}};

struct ProductTruth {
  double share = 0.8, depth_half = 300, idle = 0.35, misaligned = 1.5, stream = 0.7, ramp = 2e-6,
         gap = 2.5e-6;
  // op_formula.h: gap + max(compute, memory); rows of 16 two-byte elements are aligned.
  [[nodiscard]] double time(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const double tiles = std::ceil(double(m) / 128) * std::ceil(double(n) / 128);
    const double padded =
        2.0 * 128 * 128 * (tiles + idle * kMultiprocessors) * (double(k) + depth_half);
    const double work = 2.0 * double(m) * double(n) * double(k);
    int halvings = 4;
    for (std::int64_t a = 1; a < 16 && (n | k) % (2 * a) == 0; a *= 2) --halvings;
    const double compute =
        std::max(work, padded) / (kPeak * share) * (1 + misaligned * halvings / 4);
    const double bytes =
        2.0 * (double(m) * double(k) + double(k) * double(n) + double(m) * double(n));
    const double memory = (bytes + kBandwidth * ramp) / (kBandwidth * stream);
    return gap + std::max(compute, memory);
  }
};

struct Weight {
  std::int64_t n, k;
};
const std::vector<Weight> kWeights{{1024, 64},    {1024, 4096},  {4096, 1024}, {4096, 4096},
                                   {12288, 4096}, {4096, 16384}, {2048, 256},  {4100, 4096},
                                   {4104, 2048},  {1001, 1024}};

Bench products(const ProductTruth& truth, const std::vector<Weight>& weights,
               const std::vector<std::int64_t>& rows) {
  Bench bench;
  for (const Weight& w : weights) {
    for (const std::int64_t m : rows) {
      bench.add(matmul(DType::kBf16, 1, m, w.n, w.k), truth.time(m, w.n, w.k),
                "model of " + std::to_string(w.n));
    }
  }
  return bench;
}
const std::vector<std::int64_t> kRows{1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

void expect_products(const Fitted& f, const ProductTruth& truth, double tolerance) {
  expect_told(f, OpTerm::kShare, truth.share, tolerance);
  expect_told(f, OpTerm::kDepthHalf, truth.depth_half, tolerance);
  expect_told(f, OpTerm::kIdleShare, truth.idle, tolerance);
  expect_told(f, OpTerm::kMisaligned, truth.misaligned, tolerance);
  expect_told(f, OpTerm::kStreamShare, truth.stream, tolerance);
  expect_told(f, OpTerm::kRamp, truth.ramp, tolerance);
  expect_told(f, OpTerm::kGap, truth.gap, tolerance);
}

TEST(UnitFitProducts, KnownParametersAreFound) {
  const ProductTruth truth;
  const Fitted f = fitted(products(truth, kWeights, kRows), kProducts);
  expect_products(f, truth, kRecovered);
  const OpRecord& r = f.fit.record;
  EXPECT_EQ(r.device_kind, a100().name);
  EXPECT_EQ(r.generation, "ampere");
  EXPECT_EQ(r.dtypes, kProducts.dtypes);
  EXPECT_EQ(r.m, (Range{1, 8192}));
  EXPECT_EQ(r.n, (Range{1001, 12288}));
  EXPECT_EQ(r.k, (Range{64, 16384}));
  EXPECT_EQ(r.evidence.rows, 100);
  EXPECT_EQ(r.evidence.outliers, 0);
  EXPECT_EQ(r.evidence.profiles, std::vector<std::string>{"bench"});
  EXPECT_EQ(r.evidence.held_out, "each of 7 groups");  // n: 1001 1024 2048 4096 4100 4104 12288
  EXPECT_LT(r.evidence.median, kRecovered);
  EXPECT_TRUE(f.fit.report.untold.empty());
}

TEST(LawFitProducts, AnyParametersAreFound) {
  Rng rng(1);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    ProductTruth truth;
    truth.share = rng.uniform(0.75, 0.95);  // less, and no row is bound by traffic
    truth.depth_half = rng.uniform(100, 350);
    truth.idle = rng.uniform(0.1, 0.4);
    truth.misaligned = rng.uniform(0.5, 4.0);
    truth.stream = rng.uniform(0.4, 0.8);
    truth.ramp = rng.uniform(1e-6, 4e-6);
    truth.gap = rng.uniform(1e-6, 5e-6);
    expect_products(fitted(products(truth, kWeights, kRows), kProducts), truth, kRecovered);
  }
}

TEST(UnitFitProducts, AFewRowsTenTimesTooLongDoNotMoveThem) {
  const ProductTruth truth;
  Bench bench = products(truth, kWeights, kRows);
  const int spoilt = bench.spoil();
  ASSERT_EQ(spoilt, 5);  // of 100
  const Fitted f = fitted(bench, kProducts);
  expect_products(f, truth, kDespiteOutliers);
  EXPECT_EQ(f.fit.record.evidence.outliers, spoilt);
  ASSERT_EQ(f.fit.report.outliers.size(), 5U);
  for (const Outlier& o : f.fit.report.outliers) {
    EXPECT_NEAR(o.measured / o.predicted, 10.0, 10.0 * kDespiteOutliers) << o.what;
  }
  // Row 7 is m = 2048 of the first weight.
  const auto& outliers = f.fit.report.outliers;
  EXPECT_TRUE(std::any_of(outliers.begin(), outliers.end(), [](const Outlier& o) {
    return o.what == "bench: model of 1024, op, 1 x 2048 x 1024 x 64";
  }));
}

// Noise of 5 %, uniform: the truth of what is told lies within four of the errors that are stated.
TEST(LawFitProducts, StatedErrorsHold) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(seed);
    const ProductTruth truth;
    Bench bench = products(truth, kWeights, kRows);
    Rng rng(seed);
    for (OpMeasurement& m : bench.profile.ops)
      m.time.median.value *= std::exp(rng.uniform(-0.05, 0.05));
    const Fitted f = fitted(bench, kProducts);
    const auto within = [&](OpTerm t, double value) {
      if (!f.term(t).fitted) return;
      EXPECT_LE(std::abs(f.term(t).value - value), 4.0 * f.term(t).error)
          << kOpTermNames[static_cast<std::size_t>(t)];
    };
    within(OpTerm::kShare, truth.share);
    within(OpTerm::kDepthHalf, truth.depth_half);
    within(OpTerm::kStreamShare, truth.stream);
    within(OpTerm::kMisaligned, truth.misaligned);
    EXPECT_TRUE(f.term(OpTerm::kShare).fitted && f.term(OpTerm::kDepthHalf).fitted);
    EXPECT_LT(f.term(OpTerm::kShare).error, 0.05 * truth.share);
  }
}

TEST(UnitFitProducts, WhatTheRowsDoNotTellKeepsItsValueAndSaysWhatWould) {
  const ProductTruth truth;
  const ProductParameters documented =
      documented_op_parameters(a100()).product[static_cast<std::size_t>(DType::kBf16)];
  // One inner size, whole cache lines, nothing small.
  const Fitted f = fitted(
      products(truth, {{1024, 4096}, {4096, 4096}, {12288, 4096}}, {512, 1024, 2048, 4096, 8192}),
      kProducts);
  EXPECT_EQ(f.term(OpTerm::kDepthHalf), (Estimate{documented.depth_half, 0.0, false}));
  EXPECT_TRUE(
      f.says("depth_half keeps 192: inner sizes differ too little. Measure products with k "
             "from 64 to 4096"));
  EXPECT_EQ(f.term(OpTerm::kMisaligned), (Estimate{documented.misaligned, 0.0, false}));
  EXPECT_TRUE(
      f.says("misaligned keeps 3: all rows are whole cache lines. Measure products with n "
             "or k odd"));
  EXPECT_EQ(f.term(OpTerm::kStreamShare), (Estimate{documented.stream_share, 0.0, false}));
  EXPECT_TRUE(
      f.says("stream_share keeps 0.85: no product is bound by traffic. Measure ones with m "
             "of 1 to 64"));
  EXPECT_FALSE(f.term(OpTerm::kRamp).fitted);
  EXPECT_TRUE(f.says("Measure ones of less than 10 us in a CUDA graph"));
  // What they tell is the rate at that depth: share k / (k + k_half).
  EXPECT_TRUE(f.term(OpTerm::kShare).fitted);
  EXPECT_NEAR(f.term(OpTerm::kShare).value / (4096 + 192.0), truth.share / (4096 + 300.0),
              kRecovered * truth.share / 4396);
}

TEST(UnitFitProducts, LaunchersAreFoundBesideAndTellNothingOfTheDevice) {
  constexpr double kHost = 40e-6;
  const ProductTruth truth;
  Bench bench = products(truth, kWeights, kRows);
  bench.profile.launch_included = true;
  int host_bound = 0;
  for (OpMeasurement& m : bench.profile.ops) {
    host_bound += m.time.median.value < kHost ? 1 : 0;
    m.time.median.value = std::max(m.time.median.value, kHost);
  }
  const Fitted f = fitted(bench, kProducts);
  ASSERT_GT(host_bound, 20);
  EXPECT_NEAR(f.fit.record.evidence.host_bound, host_bound, 2);
  EXPECT_EQ(f.fit.report.notes, std::vector<std::string>{"a launch of bench forward takes 40 us"});
  EXPECT_FALSE(f.term(OpTerm::kGap).fitted);
  EXPECT_FALSE(f.term(OpTerm::kRamp).fitted);
  EXPECT_TRUE(f.says("Measure ones of less than 10 us in a CUDA graph"));
  // The gap that is kept is half a microsecond longer than the true one: 1 % of the rows beyond
  // the launcher.
  expect_told(f, OpTerm::kShare, truth.share, 2 * kRecovered);
}

TEST(UnitFitProducts, MeasuredShapesStandBesideTheFit) {
  const ProductTruth truth;
  Bench bench = products(truth, kWeights, kRows);
  // One shape takes 8 % longer than its neighbours tell: no outlier.
  for (OpMeasurement& m : bench.profile.ops) {
    const OpSignature& s = m.signature;
    if (s.m == 1024 && s.n == 4096 && s.k == 4096) m.time.median.value *= 1.08;
  }
  const Fitted f = fitted(bench, kProducts);
  const auto& families = f.fit.record.families;
  EXPECT_EQ(families.size(), kWeights.size());
  const auto at = std::find_if(families.begin(), families.end(), [](const ShapeFamily& family) {
    return family.n == 4096 && family.k == 4096;
  });
  ASSERT_NE(at, families.end());
  const auto knot =
      std::find_if(at->knots.begin(), at->knots.end(), [](const auto& k) { return k.m == 1024; });
  ASSERT_NE(knot, at->knots.end());
  EXPECT_NEAR(knot->log_ratio, std::log(1.08), kRecovered);
}

TEST(UnitFitProducts, FewSizesAreRefused) {
  OpParameters parameters = documented_op_parameters(a100());
  const Bench bench = products({}, {{4096, 4096}}, {1, 16, 64, 128, 256, 512, 1024});
  const auto result = fit_op(a100(), kProducts, bench.rows(), parameters);
  ASSERT_TRUE(std::holds_alternative<Refusal>(result));
  const auto& refusal = std::get<Refusal>(result);
  EXPECT_EQ(refusal.title, "matmul, fp16 and bf16, on ampere device");
  EXPECT_EQ(refusal.why, "only 7 sizes were measured");
  EXPECT_EQ(refusal.measure, "Measure 8 sizes or more, over a factor of a hundred");
}

// --- ops bound by traffic ---

const OpKey kNorms{OpKind::kNorm, true, dtypes_with(OpKind::kNorm, true, DType::kBf16)};

struct StreamTruth {
  double forward = 0.6, backward = 0.45, ramp = 1.5e-6, gap = 2e-6;
  [[nodiscard]] double time(double bytes, bool back) const {
    return gap + (bytes + kBandwidth * ramp) / (kBandwidth * (back ? backward : forward));
  }
};

/// 4 KiB to 1 GiB.
Bench norms(const StreamTruth& truth, bool with_backward) {
  Bench bench;
  for (int octave = 12; octave <= 30; ++octave) {
    for (const bool back : {false, true}) {
      if (back && !with_backward) continue;
      OpSignature s = memory_op(OpKind::kNorm, DType::kBf16, {std::int64_t{1} << octave});
      if (back) s.pass = Pass::kInputGrad;
      bench.add(s, truth.time(std::exp2(octave), back), "model");
    }
  }
  return bench;
}

TEST(UnitFitStreams, KnownParametersAreFound) {
  const StreamTruth truth;
  const Fitted f = fitted(norms(truth, true), kNorms);
  expect_told(f, OpTerm::kShare, truth.forward, kRecovered);
  expect_told(f, OpTerm::kBackwardShare, truth.backward, kRecovered);
  expect_told(f, OpTerm::kRamp, truth.ramp, kRecovered);
  expect_told(f, OpTerm::kGap, truth.gap, kRecovered);
  // One group: octaves are left out in turn.
  EXPECT_EQ(f.fit.record.evidence.held_out, "10 parts of 19 octaves of size");
  EXPECT_EQ(f.fit.record.traffic, (Range{4096, std::exp2(30)}));
  EXPECT_TRUE(f.fit.record.families.empty());
}

TEST(UnitFitStreams, AFewRowsTenTimesTooLongDoNotMoveThem) {
  const StreamTruth truth;
  Bench bench = norms(truth, true);
  EXPECT_EQ(bench.spoil(), 2);  // of 38
  const Fitted f = fitted(bench, kNorms);
  expect_told(f, OpTerm::kShare, truth.forward, kDespiteOutliers);
  expect_told(f, OpTerm::kBackwardShare, truth.backward, kDespiteOutliers);
  EXPECT_EQ(f.fit.record.evidence.outliers, 2);
}

// Forward alone tells gap + ramp / share, not the two apart: one keeps its documented value and the
// other makes up for it.
TEST(UnitFitStreams, WithoutABackwardRowGradientsReachWhatForwardDoes) {
  const StreamTruth truth;
  const Fitted f = fitted(norms(truth, false), kNorms);
  expect_told(f, OpTerm::kShare, truth.forward, kRecovered);
  EXPECT_EQ(f.term(OpTerm::kBackwardShare), (Estimate{f.term(OpTerm::kShare).value, 0.0, false}));
  EXPECT_TRUE(f.says("backward_share is taken from share: no row is of a backward pass"));
  const double start =
      f.term(OpTerm::kGap).value + f.term(OpTerm::kRamp).value / f.term(OpTerm::kShare).value;
  EXPECT_NEAR(start, truth.gap + truth.ramp / truth.forward, kRecovered * start);
}

// --- fused attention ---

const OpKey kFlash{OpKind::kAttention, true, {DType::kFp16, DType::kBf16}};

TEST(UnitFitAttention, KnownParametersAreFound) {
  constexpr double kForward = 0.6, kBackward = 0.45, kHalf = 300, kCausalHalf = 500, kWidth = 40,
                   kGapTime = 4e-6;
  Bench bench;
  for (const std::int64_t keys : {256, 512, 1024, 2048, 4096, 8192, 16384}) {
    for (const std::int64_t width : {64, 128, 256}) {
      for (const bool causal : {false, true}) {
        for (const Pass pass : {Pass::kForward, Pass::kInputGrad}) {
          OpSignature s = testing::attention_core({16, keys, width}, causal, true, pass);
          s.traffic = {1 + std::ssize(bench.profile.ops)};  // next to nothing, each its own
          const bool forward = pass == Pass::kForward;
          // Shares hold at heads 128 wide; backward reaches half at twice as many keys.
          const double rate = kPeak * (forward ? kForward : kBackward) * (1 + kWidth / 128);
          const double half = (causal ? kCausalHalf : kHalf) * (forward ? 1 : 2);
          const double compute =
              s.work.value / rate * (1 + half / double(keys)) * (1 + kWidth / double(width));
          bench.add(s, kGapTime + compute, "model of " + std::to_string(width));
        }
      }
    }
  }
  const Fitted f = fitted(bench, kFlash);
  expect_told(f, OpTerm::kShare, kForward, kRecovered);
  expect_told(f, OpTerm::kBackwardShare, kBackward, kRecovered);
  expect_told(f, OpTerm::kKeysHalf, kHalf, kRecovered);
  expect_told(f, OpTerm::kCausalKeysHalf, kCausalHalf, kRecovered);
  expect_told(f, OpTerm::kWidthHalf, kWidth, kRecovered);
  expect_told(f, OpTerm::kGap, kGapTime, kRecovered);
}

}  // namespace towtank::fit_test
