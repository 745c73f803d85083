// SPDX-License-Identifier: Apache-2.0
/// Fits of collectives, and what calibrate() sorts, refuses and leaves out.
#include "model/cost/fit/collective_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "model/cost/fit/calibrate.h"
#include "platforms/catalogue.h"
#include "tests/model/cost/devices.h"
#include "tests/model/cost/network_views.h"
#include "tests/support/near.h"

namespace towtank::collective_fit_test {

using testing::kSameArithmetic;

constexpr double kBandwidth = 300e9, kLatency = 1e-6;
constexpr double kRecovered = 0.01;  // no noise: the fit's own stopping rule
constexpr double kDespiteOutliers = 0.03;

/// A node of eight behind a switch.
NetworkView node_view() {
  NetworkView view = testing::view_of({{8, kBandwidth, kLatency}});
  view.levels[0].fabric = "nvlink3";
  return view;
}

void add_gather(Profile& profile, int ranks, int ranks_per_node, std::int64_t payload,
                double seconds) {
  CollectiveMeasurement m;
  m.op = Collective::kAllGather;
  m.payload = {payload};
  m.ranks = ranks;
  m.ranks_per_node = ranks_per_node;
  m.time.median = {seconds};
  m.group = std::to_string(ranks) + " ranks";
  profile.collectives.push_back(m);
}

/// All-gathers in a ring: n - 1 hops, (n-1)/n of the payload over the share of the link; with the
/// protocol of small payloads where that is faster.
struct GatherTruth {
  double launch = 12e-6, step = 3e-6, low_step = 0.8e-6, low_share = 0.3;
  [[nodiscard]] static double share(int ranks) { return ranks == 2 ? 0.6 : ranks == 4 ? 0.7 : 0.8; }
  [[nodiscard]] double time(int n, std::int64_t payload) const {
    const double transfer = (n - 1.0) / n * static_cast<double>(payload) / (kBandwidth * share(n));
    const double simple = (n - 1) * (kLatency + step) + transfer;
    const double low = (n - 1) * (kLatency + low_step) + transfer / low_share;
    return launch + std::min(simple, low);
  }
};

/// One payload an octave, least to most.
Profile gathers(const GatherTruth& truth, int first_octave, int last_octave) {
  Profile profile;
  profile.name = "bench";
  for (const int n : {2, 4, 8}) {
    for (int octave = first_octave; octave <= last_octave; ++octave) {
      const std::int64_t payload = std::int64_t{1} << octave;
      add_gather(profile, n, n, payload, truth.time(n, payload));
    }
  }
  return profile;
}

CollectiveFit fitted(const Profile& profile, const NetworkView& view,
                     FabricLevel level = FabricLevel::kIntranode) {
  std::vector<CollectiveRow> rows;
  for (const CollectiveMeasurement& m : profile.collectives) rows.push_back({&m, &profile, &view});
  CollectiveParameters parameters = documented_collective_parameters(view);
  auto result = fit_collective({level, Collective::kAllGather}, rows, parameters);
  return std::get<CollectiveFit>(std::move(result));
}

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

void expect_gathers(const CollectiveRecord& r, const GatherTruth& truth, double tolerance) {
  EXPECT_NEAR(r.launch.value / truth.launch, 1.0, tolerance);
  EXPECT_NEAR(r.step.value / truth.step, 1.0, tolerance);
  EXPECT_NEAR(r.low_step.value / truth.low_step, 1.0, tolerance);
  EXPECT_NEAR(r.low_share.value / truth.low_share, 1.0, tolerance);
  ASSERT_EQ(r.shares.size(), 3U);
  for (const auto& share : r.shares) {
    EXPECT_TRUE(share.share.fitted);
    EXPECT_NEAR(share.share.value / GatherTruth::share(share.ranks), 1.0, tolerance) << share.ranks;
  }
}

TEST(UnitFitCollectives, KnownParametersAreFound) {
  const GatherTruth truth;
  const CollectiveFit fit = fitted(gathers(truth, 10, 30), node_view());
  const CollectiveRecord& r = fit.record;
  expect_gathers(r, truth, kRecovered);
  EXPECT_EQ(r.fabric, "nvlink3");
  EXPECT_EQ(r.level, FabricLevel::kIntranode);
  EXPECT_EQ(r.topology, IntranodeTopology::kSwitch);
  EXPECT_EQ(r.op, Collective::kAllGather);
  EXPECT_EQ(r.payload, (Range{1024, std::exp2(30)}));
  EXPECT_EQ(r.evidence.rows, 63);
  EXPECT_EQ(r.evidence.outliers, 0);
  EXPECT_EQ(r.evidence.held_out, "each of 3 groups");  // numbers of ranks
  EXPECT_EQ(fit.report.notes,
            std::vector<std::string>{"a call of bench costs 12 us beside its hops"});
  EXPECT_TRUE(fit.report.untold.empty());
}

TEST(UnitFitCollectives, AFewRowsTenTimesTooLongDoNotMoveThem) {
  const GatherTruth truth;
  Profile profile = gathers(truth, 10, 30);
  for (const std::size_t i : {18U, 30U, 58U}) profile.collectives[i].time.median.value *= 10;
  const CollectiveFit fit = fitted(profile, node_view());
  expect_gathers(fit.record, truth, kDespiteOutliers);
  EXPECT_EQ(fit.record.evidence.outliers, 3);
  // The first of them: 2 ranks, 2^28 bytes.
  EXPECT_TRUE(std::any_of(fit.report.outliers.begin(), fit.report.outliers.end(),
                          [](const Outlier& o) { return o.what == "bench: 2 ranks, 256 MiB"; }))
      << fit.report.outliers.front().what;
}

TEST(UnitFitCollectives, WithoutSmallPayloadsNoProtocolForThemIsTold) {
  GatherTruth truth;
  truth.low_share = 0.01;  // it has none
  const CollectiveFit fit = fitted(gathers(truth, 22, 30), node_view());
  EXPECT_EQ(fit.record.low_share.value, 0.0);
  EXPECT_TRUE(says(fit.report.untold, "Measure 1 KB to 1 MB in a CUDA graph"));
  for (const auto& share : fit.record.shares) {
    EXPECT_NEAR(share.share.value / GatherTruth::share(share.ranks), 1.0, kRecovered);
  }
}

// Two payloads, both large: launches and hops cannot be told, so they keep documented values; what
// these take is in nobody's measurement but small beside 1 GiB at 300 GB/s.
TEST(UnitFitCollectives, OneOrTwoPayloadsTellAShareOnly) {
  const CollectiveFit fit = fitted(gathers({}, 29, 30), node_view());
  const CollectiveRecord& r = fit.record;
  EXPECT_FALSE(r.launch.fitted);
  EXPECT_FALSE(r.step.fitted);
  EXPECT_EQ(r.launch.error, 0.0);
  EXPECT_TRUE(says(fit.report.untold, "Measure 1 MB to 1 GB on two numbers of ranks"));
  for (const auto& share : r.shares) {
    EXPECT_TRUE(share.share.fitted);
    EXPECT_NEAR(share.share.value / GatherTruth::share(share.ranks), 1.0, kRecovered);
  }
}

// Between nodes: 4 ranks on each of 2 nodes get 7 GB/s through their node, where one port carries
// 12.5: no port is full, so the communicator is the limit.
TEST(UnitFitCollectives, WhereNoPortIsFilledTheGroupIsLimited) {
  constexpr double kThrough = 7e9, kPort = 12.5e9;
  NetworkView view = testing::view_of({{4, kBandwidth, kLatency}, {2, kPort, kLatency}});
  view.levels[1].fabric = "opa-100";
  Profile profile;
  profile.name = "bench";
  for (const int octave : {30, 31, 32}) {
    const double payload = std::exp2(octave);
    add_gather(profile, 8, 4, std::int64_t{1} << octave, 7.0 / 8 * payload / kThrough);
  }
  const CollectiveFit fit = fitted(profile, view, FabricLevel::kInternode);
  ASSERT_TRUE(fit.record.group_limit.has_value());
  EXPECT_CLOSE(fit.record.group_limit->value, kThrough, kRecovered);
  EXPECT_TRUE(says(fit.report.notes, "Several groups at once would tell"));
  EXPECT_FALSE(fit.record.shares.front().share.fitted);
  // Twice that fills a port: no limit.
  for (CollectiveMeasurement& m : profile.collectives) m.time.median.value /= 2;
  EXPECT_FALSE(fitted(profile, view, FabricLevel::kInternode).record.group_limit.has_value());
}

// Linear in 1 / ranks: 1/3 is two thirds of the way from 1/2 to 1/4.
TEST(UnitFitCollectives, SharesBetweenMeasuredRanks) {
  const std::vector<CollectiveRecord::Share> shares{{2, {0.6, 0, true}}, {4, {0.9, 0, true}}};
  EXPECT_CLOSE(share_at(shares, 3), 0.6 + 2.0 / 3 * 0.3, kSameArithmetic);
  EXPECT_EQ(share_at(shares, 1), 0.6);
  EXPECT_EQ(share_at(shares, 2), 0.6);
  EXPECT_EQ(share_at(shares, 4), 0.9);
  EXPECT_EQ(share_at(shares, 64), 0.9);
  CollectiveRecord record;
  record.shares = shares;
  record.launch.value = 1e-5;
  record.group_limit = Estimate{7e9, 0, true};
  const LinkParameters link = link_of(record);
  EXPECT_CLOSE(link.share_of(3), 0.8, kSameArithmetic);
  EXPECT_EQ(link.share_of(100), 0.9);
  EXPECT_EQ(link.launch.value, 1e-5);
  EXPECT_EQ(link.group_limit->value, 7e9);
}

// --- calibrate() ---

/// 19 sizes of an element-wise op, and gathers of 8 ranks in a node.
Profile whole_profile(const std::string& name) {
  Profile profile = gathers({}, 10, 30);
  profile.name = name;
  profile.device_kind = "a100-sxm-80g";
  profile.fabric_intranode = "nvlink3";
  profile.source = "a bench of ours";
  for (int octave = 12; octave <= 30; ++octave) {
    OpMeasurement m;
    m.signature = memory_op(OpKind::kElementwise, DType::kBf16, {std::int64_t{1} << octave});
    m.label = octave % 2 == 0 ? "add" : "mul";
    m.group = "model";
    m.time.median = {2e-6 + std::exp2(octave) / 1e12};
    profile.ops.push_back(m);
  }
  return profile;
}
CalibrateOptions options() {
  CalibrateOptions o;
  o.name = "ours";
  o.command = "towtank calibrate ours.json";
  o.devices = {load_device_kind("a100-sxm-80g")};
  o.platforms = {load_platform("dgx-a100-80g")};
  return o;
}

TEST(UnitCalibrate, MakesARecordOfEveryKindOfRow) {
  const std::vector<Profile> profiles{whole_profile("a"), whole_profile("b")};
  const CalibrationResult r = calibrate(profiles, options());
  EXPECT_TRUE(r.refusals.empty());
  EXPECT_EQ(r.calibration.name, "ours");
  EXPECT_EQ(r.calibration.source, "a bench of ours");  // once
  ASSERT_EQ(r.calibration.ops.size(), 1U);
  EXPECT_EQ(r.calibration.ops[0].evidence.rows, 38);
  EXPECT_EQ(r.calibration.ops[0].evidence.profiles, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(r.calibration.collectives.size(), 1U);
  EXPECT_EQ(r.calibration.collectives[0].evidence.rows, 126);
  ASSERT_EQ(r.reports.size(), 2U);
  EXPECT_EQ(r.reports[1].title, "all-gather on nvlink3, intranode");
}

// What a call costs beside its hops is that of the profile that costs least.
TEST(UnitCalibrate, LaunchesAreThoseOfTheLeastProfile) {
  std::vector<Profile> profiles{whole_profile("a"), whole_profile("b")};
  for (CollectiveMeasurement& m : profiles[0].collectives) m.time.median.value += 20e-6;
  const CalibrationResult r = calibrate(profiles, options());
  ASSERT_EQ(r.calibration.collectives.size(), 1U);
  EXPECT_NEAR(r.calibration.collectives[0].launch.value, 12e-6, 0.05 * 12e-6);
}

TEST(UnitCalibrate, RefusesWhatIsNotNamedAndSaysWhatToDo) {
  std::vector<Profile> profiles{whole_profile("a"), whole_profile("b"), whole_profile("c")};
  profiles[0].device_kind = "";
  profiles[0].fabric_intranode = "";
  profiles[1].device_kind = "a-new-one";
  profiles[1].fabric_intranode = "a-new-fabric";
  profiles[2].ops.resize(5);
  profiles[2].collectives.clear();
  const CalibrationResult r = calibrate(profiles, options());
  EXPECT_TRUE(r.calibration.ops.empty());
  EXPECT_TRUE(r.calibration.collectives.empty());
  std::vector<std::string> told;
  for (const Refusal& refusal : r.refusals)
    told.push_back(refusal.title + ": " + refusal.why + ". " + refusal.measure);
  const std::string device =
      ": the rates of the device are not known. Name a device kind of the "
      "catalogue when importing the profile";
  const std::string few =
      "elementwise, fp16, bf16, fp8, fp4 and int8, on a100-sxm-80g: only 5 sizes were measured. "
      "Measure 8 sizes or more, over a factor of a hundred";
  const std::string unnamed =
      "collectives of a: 63 rows cross a fabric that the profile does not name. Name it when "
      "importing (--fabric, --fabric-internode)";
  const std::string unknown =
      "collectives on a-new-fabric, intranode: no machine with it was named, so its hardware rate "
      "is not known. Name one (--platform)";
  const std::vector<std::string> expected{"ops on a device that is not named" + device,
                                          "ops on a-new-one" + device, few, unnamed, unknown};
  EXPECT_EQ(told, expected);
}

TEST(UnitCalibrate, RowsAreLeftOutByRuleAndCounted) {
  const std::vector<Profile> profiles{whole_profile("a"), whole_profile("b")};
  CalibrateOptions o = options();
  o.leave_out = {{"a", "add", "a bad clock"},
                 {"*", "mul forward", "of one pass"},
                 {"b", "mul input_grad", "of none"},
                 {"b", "all_gather", "a bad cable"}};
  const CalibrationResult r = calibrate(profiles, o);
  ASSERT_EQ(r.left_out.size(), 4U);
  EXPECT_EQ(r.left_out[0].rows, 10);  // even octaves of 12 to 30
  EXPECT_EQ(r.left_out[1].rows, 18);  // odd ones, of both profiles
  EXPECT_EQ(r.left_out[2].rows, 0);
  EXPECT_EQ(r.left_out[3].rows, 63);
  ASSERT_EQ(r.calibration.ops.size(), 1U);
  EXPECT_EQ(r.calibration.ops[0].evidence.rows, 10);
  EXPECT_EQ(r.calibration.ops[0].evidence.profiles, std::vector<std::string>{"b"});
  ASSERT_EQ(r.calibration.collectives.size(), 1U);
  EXPECT_EQ(r.calibration.collectives[0].evidence.profiles, std::vector<std::string>{"a"});
}

}  // namespace towtank::collective_fit_test
