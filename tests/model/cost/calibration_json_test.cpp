// SPDX-License-Identifier: Apache-2.0
#include "model/cost/calibration_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/cost/choose_costs.h"
#include "tests/support/expect_fault.h"

namespace towtank::calibration_json_test {

Calibration parsed(const std::string& text) {
  return parse_calibration(JsonFile::parse(text, "ours.json"));
}
Calibration parsed(const Json& json) { return parsed(json.dump()); }

/// One record of each kind.
Json small_calibration() {
  return Json::parse(R"({
    "format": "towtank-calibration", "version": 1, "name": "ours", "command": "by hand",
    "source": "a bench of ours",
    "ops": [
      {"device_kind": "a100-sxm-80g", "generation": "ampere",
       "memory_bandwidth_bytes_per_s": 2.039e12, "peak_flop_per_s": 3.12e14, "op": "matmul",
       "dtypes": ["fp16", "bf16"],
       "terms": {"share": {"value": 0.9, "error": 0.01},
                 "depth_half": {"value": 192.0, "fitted": false},
                 "idle_share": {"value": 0.2, "error": 0.02},
                 "misaligned": {"value": 3.0, "fitted": false},
                 "stream_share": {"value": 0.8, "error": 0.02},
                 "ramp_s": {"value": 1e-06, "fitted": false},
                 "gap_s": {"value": 3e-06, "error": 1e-07}},
       "rows": {"m": [1.0, 4096.0], "n": [1024.0, 8192.0], "k": [1024.0, 8192.0],
                "traffic_bytes": [2e6, 2e8]},
       "shapes": [{"batch": 1, "n": 4096, "k": 4096,
                   "m_and_log_ratio": [[128, 0.05], [1024, -0.02]]}],
       "evidence": {"profiles": ["bench"], "rows": 40, "outliers": 1,
                    "held_out": "each of 3 groups", "held_out_rows": 40, "bias": 0.01,
                    "spread": 0.05, "median": 0.03}}],
    "collectives": [
      {"fabric": "nvlink3", "level": "intranode", "topology": "switch",
       "collective": "all_reduce",
       "launch_s": {"value": 1e-05, "error": 1e-06}, "step_s": {"value": 2e-06, "error": 1e-07},
       "low_step_s": {"value": 1e-06, "error": 1e-07}, "low_share": {"value": 0.4, "error": 0.02},
       "shares": [{"ranks": 2, "share": {"value": 0.7, "error": 0.01}},
                  {"ranks": 8, "share": {"value": 0.8, "error": 0.01}}],
       "payload_bytes": [1024.0, 1073741824.0],
       "evidence": {"profiles": ["bench"], "rows": 60, "outliers": 0,
                    "held_out": "each of 2 groups", "held_out_rows": 60, "bias": 0.0,
                    "spread": 0.04, "median": 0.02}}]})");
}

TEST(UnitCalibrationJson, ReadsEveryPart) {
  const Calibration c = parsed(small_calibration());
  EXPECT_EQ(c.name, "ours");
  EXPECT_EQ(c.command, "by hand");
  EXPECT_EQ(c.source, "a bench of ours");
  EXPECT_FALSE(c.hash.empty());
  ASSERT_EQ(c.ops.size(), 1U);
  const OpRecord& op = c.ops[0];
  EXPECT_EQ(op.device_kind, "a100-sxm-80g");
  EXPECT_EQ(op.kind, OpKind::kMatmul);
  EXPECT_EQ(op.dtypes, (std::vector{DType::kFp16, DType::kBf16}));
  EXPECT_EQ(op.memory_bandwidth.value, 2.039e12);
  EXPECT_EQ(op.peak.value, 312e12);
  EXPECT_EQ(op.terms[static_cast<std::size_t>(OpTerm::kShare)], (Estimate{0.9, 0.01, true}));
  EXPECT_EQ(op.terms[static_cast<std::size_t>(OpTerm::kDepthHalf)], (Estimate{192, 0, false}));
  EXPECT_FALSE(op.terms[static_cast<std::size_t>(OpTerm::kBackwardShare)].has_value());
  EXPECT_EQ(op.m, (Range{1, 4096}));
  EXPECT_EQ(op.traffic, (Range{2e6, 2e8}));
  EXPECT_EQ(op.families, (std::vector<ShapeFamily>{{1, 4096, 4096, {{128, 0.05}, {1024, -0.02}}}}));
  EXPECT_EQ(op.evidence,
            (FitEvidence{{"bench"}, 40, 0, 1, "each of 3 groups", 40, 0.01, 0.05, 0.03}));
  ASSERT_EQ(c.collectives.size(), 1U);
  const CollectiveRecord& link = c.collectives[0];
  EXPECT_EQ(link.fabric, "nvlink3");
  EXPECT_EQ(link.level, FabricLevel::kIntranode);
  EXPECT_EQ(link.topology, IntranodeTopology::kSwitch);
  EXPECT_EQ(link.op, Collective::kAllReduce);
  EXPECT_EQ(link.low_share, (Estimate{0.4, 0.02, true}));
  EXPECT_EQ(link.shares,
            (std::vector<CollectiveRecord::Share>{{2, {0.7, 0.01, true}}, {8, {0.8, 0.01, true}}}));
  EXPECT_FALSE(link.group_limit.has_value());
  EXPECT_TRUE(c.frameworks.empty());
}

TEST(UnitCalibrationJson, RoundTrip) {
  const Json json = small_calibration();
  const Calibration c = parsed(json);
  EXPECT_EQ(to_json(c), json);
  EXPECT_EQ(Json::parse(calibration_text(c)), json);
}

// 0.123456 and 123456 keep five digits, log ratios four places.
TEST(UnitCalibrationJson, WritesFiveDigits) {
  Calibration c = parsed(small_calibration());
  c.ops[0].terms[0] = Estimate{0.123456, 123456, true};
  c.ops[0].families[0].knots[0].log_ratio = 0.05678;
  const Json json = to_json(c)["ops"][0];
  EXPECT_EQ(json["terms"]["share"]["value"], 0.12346);
  EXPECT_EQ(json["terms"]["share"]["error"], 123460.0);
  EXPECT_EQ(json["shapes"][0]["m_and_log_ratio"][0][1], 0.0568);
}

TEST(UnitCalibrationJson, EveryShippedFileIsReadAndWrittenAgain) {
  ASSERT_FALSE(embedded_calibrations().empty());
  ASSERT_EQ(shipped_calibrations().size(), embedded_calibrations().size());
  for (const EmbeddedFile& file : embedded_calibrations()) {
    SCOPED_TRACE(file.name);
    const Calibration c = load_calibration(std::string(file.name));
    EXPECT_EQ(Json::parse(calibration_text(c)), Json::parse(file.text));
    EXPECT_EQ(calibration_text(parsed(calibration_text(c))), calibration_text(c));
    EXPECT_FALSE(c.command.empty());
    EXPECT_FALSE(c.source.empty());
    EXPECT_GT(c.ops.size() + c.collectives.size() + c.frameworks.size(), 0U);
  }
}

// Shares of datasheet rates lie in (0, 1]: no shipped number claims more than the hardware has.
// Between devices joined point to point two links to one peer may give more (calibration.h).
// Known miss: the RTX 3090s that tell of pcie4 are bridged in pairs (NVLink, 56 GB/s), so a group
// of two reaches 1.28 and 1.39 times the slot's 31.5 GB/s, also on machines without bridges.
TEST(UnitCalibrationJson, ShippedSharesAreOfWhatTheHardwareHas) {
  for (const Calibration& c : shipped_calibrations()) {
    SCOPED_TRACE(c.name);
    for (const OpRecord& r : c.ops) {
      for (const OpTerm term : {OpTerm::kShare, OpTerm::kBackwardShare, OpTerm::kStreamShare}) {
        const auto& share = r.terms[static_cast<std::size_t>(term)];
        if (!share) continue;
        EXPECT_GT(share->value, 0.0) << to_text(r.kind);
        EXPECT_LE(share->value, 1.0) << to_text(r.kind);
      }
      EXPECT_GT(r.evidence.rows, 0);
      EXPECT_FALSE(r.evidence.profiles.empty());
      for (const auto& term : r.terms) {
        if (!term || !term->fitted) continue;
        EXPECT_GT(term->error, 0.0) << to_text(r.kind);
      }
    }
    for (const CollectiveRecord& r : c.collectives) {
      const double most = r.topology == IntranodeTopology::kMesh ? 2.0 : 1.0;
      for (const auto& share : r.shares) {
        const bool bridged = r.fabric == "pcie4" && share.ranks == 2;
        EXPECT_LE(share.share.value, bridged ? 56.0 / 31.5 : most) << r.fabric;
      }
      EXPECT_LE(r.low_share.value, 1.0);
      EXPECT_GT(r.evidence.rows, 0);
    }
  }
}

TEST(FaultCalibrationJson, EveryFaultOfAFileIsTold) {
  Json json = small_calibration();
  Json& op = json["ops"][0];
  op["terms"].erase("idle_share");
  op["terms"]["share"]["valu"] = 1;
  op["rows"]["n"] = {8192.0, 1024.0};
  op["shapes"][0]["m_and_log_ratio"] = Json::parse("[[1024, 0.0], [128, 0.0], [1]]");
  op["dtypes"] = {"bf61"};
  Json& link = json["collectives"][0];
  link["shares"][1]["ranks"] = 2;
  link["collective"] = "all_reduced";
  link["payload_bytes"] = {1.0};
  link.erase("evidence");
  json["op"] = Json::array();
  EXPECT_FAULT(parsed(json),
               "ours.json: /ops/0/dtypes/0: is not a number format (one of fp64, fp32, tf32, "
               "fp16, bf16, fp8, fp4, int8)\n"
               "ours.json: /ops/0/terms/share/valu: unknown key. Did you mean \"value\"?\n"
               "ours.json: /ops/0/terms/idle_share: missing key (it is required)\n"
               "ours.json: /ops/0/rows/n: is not in order (low <= high)\n"
               "ours.json: /ops/0/shapes/0/m_and_log_ratio/1: is not in order of m\n"
               "ours.json: /ops/0/shapes/0/m_and_log_ratio/2: does not have two numbers ([m, "
               "log(measured / fitted)])\n"
               "ours.json: /collectives/0/collective: \"all_reduced\" is not one of the known "
               "values (known: all_reduce, all_gather, reduce_scatter, all_to_all, send_recv, "
               "broadcast). Did you mean \"all_reduce\"?\n"
               "ours.json: /collectives/0/shares/1: is not in order of ranks\n"
               "ours.json: /collectives/0/payload_bytes: does not have two numbers (a range is "
               "[low, high])\n"
               "ours.json: /collectives/0/evidence: missing key (it is required)\n"
               "ours.json: /op: unknown key. Did you mean \"ops\"?");
}

TEST(FaultCalibrationJson, RecordsWithoutWhatTheyAreFor) {
  Json json = small_calibration();
  json["ops"][0]["dtypes"] = Json::array();
  json["ops"][0]["shapes"][0]["m_and_log_ratio"] = Json::array();
  json["collectives"][0]["shares"] = Json::array();
  EXPECT_FAULT(parsed(json),
               "ours.json: /ops/0: serves no dtype\n"
               "ours.json: /ops/0/shapes/0: has no measured shape\n"
               "ours.json: /collectives/0: has no share (one for each number of ranks measured)");
}

TEST(FaultCalibrationJson, TermsAreThoseOfTheKind) {
  Json json = small_calibration();
  json["ops"][0]["op"] = "norm";
  json["ops"][0]["terms"] = Json::parse(
      R"({"share": {"value": 0.5, "error": 0.1}, "backward_share": {"value": 0.5, "fitted": false},
          "ramp_s": {"value": 1e-6, "fitted": false}, "keys_half": {"value": 1, "error": 1}})");
  EXPECT_FAULT(parsed(json),
               "ours.json: /ops/0/terms/gap_s: missing key (it is required)\n"
               "ours.json: /ops/0/terms/keys_half: unknown key");
}

TEST(FaultCalibrationJson, ANewerVersionIsToldAlone) {
  Json json = small_calibration();
  json["version"] = 2;
  json["op"] = 1;
  EXPECT_FAULT(parsed(json),
               "ours.json: /version: 2 is newer than this program (it reads versions up to 1). "
               "Update towtank.");
}

TEST(FaultCalibrationJson, ANameThatIsNotShipped) {
  EXPECT_FAULT(load_calibration("ops-a100-8g"),
               "calibration: \"ops-a100-8g\" is not shipped. Did you mean \"ops-a100-80g\"? A "
               "file is given by its path.");
  EXPECT_FAULT(load_calibration("no-such-file.json"), "no-such-file.json: no such file");
}

}  // namespace towtank::calibration_json_test
