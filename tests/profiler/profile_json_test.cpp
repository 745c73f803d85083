// SPDX-License-Identifier: Apache-2.0
#include "profiler/profile_json.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace profile_json_test {

Profile tiny_profile() {
  Profile p;
  p.name = "tiny";
  p.device_kind = "synth";
  p.launch_included = true;
  p.source = "by hand";
  OpMeasurement op;
  op.signature = matmul(DType::kFp16, 1, 2, 3, 4);
  op.time = {.median = Seconds{2e-6}, .low = Seconds{1e-6}, .high = Seconds{4e-6}, .repeats = 5};
  op.label = "fc1";
  op.group = "g";
  p.ops = {op};
  p.collectives = {{.op = Collective::kAllGather,
                    .payload = Bytes{1024},
                    .ranks = 8,
                    .ranks_per_node = 4,
                    .time = {.median = Seconds{3e-5}, .low = {}, .high = {}, .repeats = 1},
                    .group = "c"}};
  p.stats.rows_read = 3;
  p.stats.rows_kept = 2;
  p.stats.add("rows of zero bytes", ImportStats::Severity::kLoss, 1, "x: line 2");
  return p;
}

Profile parsed(const std::string& text) { return parse_profile(JsonFile::parse(text, "p.json")); }

/// The text of a file with one piece of it replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = profile_text(tiny_profile());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Duration random_duration(Rng& rng) {
  const double low = rng.uniform(1e-7, 1e-3);
  Duration d{.median = Seconds{low * rng.uniform(1, 2)}, .low = {}, .high = {}, .repeats = 1};
  if (rng.uniform() < 0.5) {
    d.low = Seconds{low};
    d.high = Seconds{low * rng.uniform(2, 3)};
    d.repeats = static_cast<int>(rng.integer(2, 100));
  }
  return d;
}

OpSignature random_signature(Rng& rng) {
  const auto dtype = static_cast<DType>(rng.integer(0, kDTypeCount - 1));
  OpSignature s = matmul(dtype, rng.integer(1, 64), rng.integer(1, 9999), rng.integer(1, 9999),
                         rng.integer(1, 9999));
  if (rng.uniform() < 0.5) {
    s = memory_op(static_cast<OpKind>(rng.integer(1, kOpKindCount - 1)), dtype,
                  Bytes{rng.integer(0, 1LL << 50)}, Flop{rng.uniform(0, 1e20)},
                  static_cast<int>(rng.integer(0, 40)));
    s.causal = rng.uniform() < 0.5;
    s.fused = rng.uniform() < 0.5;
  }
  s.pass = static_cast<Pass>(rng.integer(0, 2));
  return s;
}

Profile random_profile(Rng& rng) {
  Profile p = tiny_profile();
  p.machine = "caf\u00e9 \"quoted\" \\ \n";
  p.launch_included = rng.uniform() < 0.5;
  p.fabric_intranode = "nvlink3";
  for (int i = 0; i < 20; ++i) {
    p.ops.push_back(
        {random_signature(rng), random_duration(rng), std::to_string(i) + " label", "g"});
    const int ranks = static_cast<int>(rng.integer(2, 1024));
    p.collectives.push_back({static_cast<Collective>(rng.integer(0, kCollectiveCount - 1)),
                             Bytes{rng.integer(0, 1LL << 40)}, ranks,
                             static_cast<int>(rng.integer(1, ranks)), random_duration(rng), "h"});
  }
  return p;
}

TEST(UnitProfileJson, AFileHoldsEachMeasurementOnALine) {
  EXPECT_EQ(profile_text(tiny_profile()), R"({
  "format": "towtank-profile",
  "version": 1,
  "name": "tiny",
  "device_kind": "synth",
  "fabric_intranode": "",
  "fabric_internode": "",
  "launch_included": true,
  "source": "by hand",
  "machine": "",
  "import": {"rows_read":3,"rows_kept":2,"counts":[{"what":"rows of zero bytes","severity":"loss","rows":1,"first":"x: line 2"}]},
  "ops": {
    "columns": ["kind","pass","dtype","batch","m","n","k","work_flop","traffic_bytes","kernels","causal","fused","median_s","low_s","high_s","repeats","label","group"],
    "rows": [
      ["matmul","forward","fp16",1,2,3,4,48.0,52,1,false,true,2e-06,1e-06,4e-06,5,"fc1","g"]
    ]
  },
  "collectives": {
    "columns": ["op","payload_bytes","ranks","ranks_per_node","median_s","low_s","high_s","repeats","group"],
    "rows": [
      ["all_gather",1024,8,4,3e-05,null,null,1,"c"]
    ]
  }
}
)");
}

TEST(LawProfileJson, ReadingWhatWasWrittenGivesTheSameText) {
  Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    const std::string text = profile_text(random_profile(rng));
    EXPECT_EQ(profile_text(parsed(text)), text);
  }
}

TEST(LawProfileJson, NoFieldIsLostOnTheWay) {
  const Profile in = tiny_profile();
  const Profile out = parsed(profile_text(in));
  EXPECT_EQ(out.name, in.name);
  EXPECT_EQ(out.device_kind, in.device_kind);
  EXPECT_EQ(out.launch_included, in.launch_included);
  EXPECT_EQ(out.stats, in.stats);
  ASSERT_EQ(out.ops.size(), 1U);
  EXPECT_EQ(out.ops[0].time, in.ops[0].time);
  EXPECT_EQ(out.ops[0].signature.k, 4);
  ASSERT_EQ(out.collectives.size(), 1U);
  EXPECT_EQ(out.collectives[0].op, Collective::kAllGather);
  EXPECT_EQ(out.collectives[0].ranks_per_node, 4);
  EXPECT_FALSE(out.collectives[0].time.low.has_value());
}

TEST(UnitProfileJson, ColumnsMayStandInAnotherOrder) {
  std::string text = edited(R"(["op","payload_bytes",)", R"(["payload_bytes","op",)");
  const std::string row = R"(["all_gather",1024,)";
  text.replace(text.find(row), row.size(), R"([1024,"all_gather",)");
  EXPECT_EQ(profile_text(parsed(text)), profile_text(tiny_profile()));
}

TEST(UnitProfileJson, AProfileWithoutTablesIsEmpty) {
  const Profile p = parsed(R"({"format": "towtank-profile", "version": 1, "name": "n",
    "device_kind": "", "fabric_intranode": "", "fabric_internode": "", "launch_included": false,
    "source": "s", "machine": ""})");
  EXPECT_TRUE(p.ops.empty());
  EXPECT_TRUE(p.collectives.empty());
}

TEST(FaultProfileJson, EachCellIsChecked) {
  EXPECT_FAULT(parsed(edited("\"fp16\"", "\"fp17\"")),
               "p.json: /ops/rows: row 0: dtype is \"fp17\" (must be one of fp64, fp32, tf32, "
               "fp16, bf16, fp8, fp4, int8)");
  EXPECT_FAULT(parsed(edited("1,2,3,4,48.0", "1,2,3.5,4,48.0")),
               "p.json: /ops/rows: row 0: n is 3.5 (must be a whole number)");
  EXPECT_FAULT(parsed(edited("48.0,52", "-48.0,52")),
               "p.json: /ops/rows: row 0: work_flop is -48.0 (must be >= 0.0)");
  EXPECT_FAULT(parsed(edited("3e-05,null", "0,null")),
               "p.json: /collectives/rows: row 0: median_s is 0 (must be >= 1e-12)");
  EXPECT_FAULT(parsed(edited("2e-06,1e-06,4e-06", "2e-06,3e-06,4e-06")),
               "p.json: /ops/rows: row 0: times are not in order (low_s <= median_s <= high_s)");
  EXPECT_FAULT(parsed(edited("1024,8,4", "1024,8,9")),
               "p.json: /collectives/rows: row 0: ranks_per_node > ranks (must be <= ranks)");
  EXPECT_FAULT(parsed(edited(R"(,"fc1","g"])", R"(,"fc1"])")),
               "p.json: /ops/rows: row 0 does not have a cell for each column (18 are needed)");
}

TEST(FaultProfileJson, ColumnsAreAllNeededAndKnown) {
  EXPECT_FAULT(
      parsed(edited(R"("payload_bytes","ranks",)", R"("payload_byte","ranks",)")),
      "p.json: /collectives/columns/1: \"payload_byte\" is not a known column. Did you mean "
      "\"payload_bytes\"?\np.json: /collectives: has no column \"payload_bytes\" (every "
      "column is needed)");
}

TEST(FaultProfileJson, AnotherFileIsToldApart) {
  EXPECT_FAULT(parsed(edited("towtank-profile", "towtank-plan")),
               "p.json: /format: \"towtank-plan\" is another format (must be \"towtank-profile\")");
  EXPECT_FAULT(parsed(edited("\"machine\"", "\"machin\"")),
               "p.json: /machine: missing key (it is required)\np.json: /machin: unknown key. Did "
               "you mean \"machine\"?");
}

}  // namespace profile_json_test
}  // namespace towtank
