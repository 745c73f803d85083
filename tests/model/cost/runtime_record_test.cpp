// SPDX-License-Identifier: Apache-2.0
#include "model/cost/runtime_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/model/cost/devices.h"
#include "tests/support/expect_fault.h"
#include "tests/support/near.h"

namespace towtank::runtime_record_test {

using testing::a100;
using testing::device_of;
using testing::kSameArithmetic;

/// `rows` tells records apart in what follows from them.
RuntimeRecord record(Framework framework, const std::string& generation, int rows,
                     const std::string& device_kind = "") {
  RuntimeRecord r;
  r.framework = framework;
  r.device_kind = device_kind;
  r.generation = generation;
  r.costs.compute_factor = 1.25;
  r.costs.attention_factor = 1.5;
  r.costs.host_per_kernel = {rows * 1e-6};
  r.costs.per_microbatch = {1e-3};
  r.costs.per_step = {1e-2};
  r.costs.interference = 0.05;
  r.costs.context_bytes = Bytes{3'000'000'000};
  r.costs.reserved_factor = 1.1;
  r.costs.low90 = 0.9;
  r.costs.low50 = 1.0;
  r.costs.high50 = 1.21;
  r.costs.high90 = 1.6;
  r.identified = {"compute_factor", "host_per_kernel"};
  r.sets = {"ours"};
  r.rows = rows;
  r.folds = 7;
  r.bias = -0.125;
  r.spread = 0.25;
  return r;
}

/// The rows of the record that was chosen; 0 if none was.
int chosen(const std::vector<RuntimeRecord>& records, Framework framework,
           const DeviceKind& device) {
  const RuntimeCosts costs = runtime_costs(records, framework, device);
  return costs.origin.empty() ? 0
                              : static_cast<int>(std::lround(costs.host_per_kernel.value * 1e6));
}
DeviceKind of_generation(const std::string& generation) {
  return device_of(generation, 1e12, 1e12, 100);
}

// Each line takes away what was chosen before it.
TEST(UnitRuntimeRecord, ChoosesInTheOrderOfTheHeader) {
  std::vector<RuntimeRecord> records{
      record(Framework::kMegatron, "hopper", 6), record(Framework::kNemo, "turing", 5),
      record(Framework::kNemo, "volta", 4),      record(Framework::kMegatron, "ampere", 3),
      record(Framework::kNemo, "ampere", 2),     record(Framework::kNemo, "ampere", 1, a100().name),
  };
  const auto next = [&] { return chosen(records, Framework::kNemo, a100()); };
  EXPECT_EQ(next(), 1);  // its own kind, wherever it stands
  records.pop_back();
  EXPECT_EQ(next(), 2);  // its generation
  records.pop_back();
  EXPECT_EQ(next(), 3);  // who stands in, on the generation
  records.pop_back();
  EXPECT_EQ(next(), 5);  // the framework, one generation away; volta is two
  records.erase(records.begin() + 1);
  EXPECT_EQ(next(), 4);
  records.pop_back();
  EXPECT_EQ(next(), 6);  // who stands in, on the nearest
  records.pop_back();
  EXPECT_EQ(next(), 0);
}

TEST(UnitRuntimeRecord, TheFirstOfTwoForAGenerationCounts) {
  EXPECT_EQ(chosen({record(Framework::kFsdp, "ampere", 1), record(Framework::kFsdp, "ampere", 2)},
                   Framework::kFsdp, a100()),
            1);
}

// volta, turing, ampere, ada, hopper, blackwell.
TEST(UnitRuntimeRecord, OfTwoGenerationsAsNearTheOlderIsTaken) {
  const std::vector<RuntimeRecord> around{record(Framework::kFsdp, "ada", 2),
                                          record(Framework::kFsdp, "turing", 1)};
  EXPECT_EQ(chosen(around, Framework::kFsdp, a100()), 1);
  EXPECT_EQ(chosen(around, Framework::kFsdp, of_generation("blackwell")), 2);
  EXPECT_EQ(chosen(around, Framework::kFsdp, of_generation("volta")), 1);
}

TEST(UnitRuntimeRecord, NothingCarriesOverToOtherMakers) {
  const std::vector<RuntimeRecord> nvidia{record(Framework::kMegatron, "ampere", 1)};
  EXPECT_EQ(chosen(nvidia, Framework::kMegatron, of_generation("cdna3")), 0);
  const std::vector<RuntimeRecord> amd{record(Framework::kMegatron, "cdna3", 1)};
  EXPECT_EQ(chosen(amd, Framework::kMegatron, of_generation("cdna3")), 1);
  EXPECT_EQ(chosen(amd, Framework::kMegatron, a100()), 0);
  EXPECT_EQ(chosen(amd, Framework::kMegatron, of_generation("cdna2")), 0);
}

TEST(UnitRuntimeRecord, ARecordOfAnotherKindServesNobodyElse) {
  const std::vector<RuntimeRecord> other{record(Framework::kFsdp, "ampere", 1, "another kind")};
  EXPECT_EQ(chosen(other, Framework::kFsdp, a100()), 0);
  EXPECT_EQ(chosen(other, Framework::kFsdp, of_generation("hopper")), 0);
}

TEST(UnitRuntimeRecord, WhoStandsInForWhom) {
  const auto serves = [](Framework has, Framework asks) {
    return chosen({record(has, "ampere", 1)}, asks, a100()) == 1;
  };
  for (std::size_t h = 0; h < kFrameworkCount; ++h) {
    for (std::size_t a = 0; a < kFrameworkCount; ++a) {
      const auto has = static_cast<Framework>(h), asks = static_cast<Framework>(a);
      const bool kin = (has == Framework::kNemo && asks == Framework::kMegatron) ||
                       (has == Framework::kMegatron && asks == Framework::kNemo) ||
                       (has == Framework::kMegatron2021 && asks == Framework::kMegatronDeepSpeed);
      EXPECT_EQ(serves(has, asks), has == asks || kin)
          << kFrameworkNames[h] << " for " << kFrameworkNames[a];
    }
  }
}

TEST(UnitRuntimeRecord, AnOwnRecordIsTakenAsFitted) {
  const RuntimeRecord own = record(Framework::kMegatron, "ampere", 12);
  const RuntimeCosts c = runtime_costs({{own}}, Framework::kMegatron, a100());
  EXPECT_EQ(c.basis, Basis::kInterpolated);
  EXPECT_EQ(c.origin, "runtime constants of megatron on ampere, fitted on 12 measured steps");
  EXPECT_EQ(c.compute_factor, 1.25);
  EXPECT_EQ(c.attention_factor, 1.5);
  EXPECT_EQ(c.interference, 0.05);
  EXPECT_EQ(c.context_bytes, Bytes{3'000'000'000});
  EXPECT_EQ(c.reserved_factor, 1.1);
  EXPECT_EQ(c.low90, 0.9);
  EXPECT_EQ(c.high90, 1.6);
}

// Twice as wide in logarithms around the same middle: 0.9 to 1.6 is 1.2 * 0.75 to 1.2 / 0.75, so
// 1.2 * 0.75^2 to 1.2 / 0.75^2; 1 to 1.21 is 1.1 / 1.1 to 1.1 * 1.1, so 1.1 / 1.1^2 to 1.1 * 1.1^2.
void expect_doubled(const RuntimeCosts& c) {
  EXPECT_CLOSE(c.low90, 1.2 * 0.75 * 0.75, kSameArithmetic);
  EXPECT_CLOSE(c.high90, 1.2 / (0.75 * 0.75), kSameArithmetic);
  EXPECT_CLOSE(c.low50, 1.1 / (1.1 * 1.1), kSameArithmetic);
  EXPECT_CLOSE(c.high50, 1.1 * 1.1 * 1.1, kSameArithmetic);
  EXPECT_EQ(c.basis, Basis::kExtrapolated);
  EXPECT_FALSE(c.context_bytes.has_value());
  EXPECT_FALSE(c.reserved_factor.has_value());
  EXPECT_CLOSE(c.per_microbatch.value, 1e-3, kSameArithmetic);
  EXPECT_EQ(c.attention_factor, 1.5);
}

TEST(UnitRuntimeRecord, AStandInDoublesTheIntervalAndHasNoComputeFactor) {
  const RuntimeCosts c = runtime_costs({{record(Framework::kMegatron2021, "ampere", 12)}},
                                       Framework::kMegatronDeepSpeed, a100());
  expect_doubled(c);
  EXPECT_EQ(c.compute_factor, 1.0);
  EXPECT_EQ(c.origin,
            "runtime constants of megatron-2021 on ampere, fitted on 12 measured steps, stand in "
            "for megatron-deepspeed: interval doubled");
}

TEST(UnitRuntimeRecord, AnotherGenerationDoublesTheIntervalAndKeepsTheComputeFactor) {
  const RuntimeCosts c =
      runtime_costs({{record(Framework::kFsdp, "hopper", 12)}}, Framework::kFsdp, a100());
  expect_doubled(c);
  EXPECT_EQ(c.compute_factor, 1.25);
  EXPECT_EQ(c.origin,
            "runtime constants of fsdp on hopper, fitted on 12 measured steps, the nearest "
            "generation: interval doubled");
}

TEST(UnitRuntimeRecord, AStandInOnAnotherGenerationDoublesOnce) {
  const RuntimeCosts c =
      runtime_costs({{record(Framework::kNemo, "hopper", 12)}}, Framework::kMegatron, a100());
  expect_doubled(c);
  EXPECT_EQ(c.compute_factor, 1.0);
  EXPECT_EQ(c.origin,
            "runtime constants of nemo on hopper, fitted on 12 measured steps, stand in for "
            "megatron, the nearest generation: interval doubled");
}

TEST(UnitRuntimeRecord, WithoutARecordCostsAreThoseOfAnUnmeasuredMachine) {
  const RuntimeCosts c = runtime_costs({}, Framework::kMegatron, a100()), none;
  EXPECT_EQ(c.basis, Basis::kAnalytic);
  EXPECT_EQ(c.origin, "");
  EXPECT_EQ(c.compute_factor, 1.0);
  EXPECT_EQ(c.host_per_kernel.value, 0.0);
  EXPECT_EQ(c.low90, none.low90);
  EXPECT_EQ(c.high90, none.high90);
}

TEST(LawRuntimeRecord, DoubledIntervalsStayNestedAndHoldTheOldOnes) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    RuntimeRecord r = record(Framework::kFsdp, "hopper", 1);
    r.costs.low90 = rng.uniform(0.3, 1.2);
    r.costs.low50 = r.costs.low90 * rng.uniform(1.0, 1.5);
    r.costs.high50 = r.costs.low50 * rng.uniform(1.0, 1.5);
    r.costs.high90 = r.costs.high50 * rng.uniform(1.0, 1.5);
    const RuntimeCosts c = runtime_costs({{r}}, Framework::kFsdp, a100());
    const double rounding = 1.0 + kSameArithmetic;
    ASSERT_LE(c.low90, r.costs.low90 * rounding);
    ASSERT_LE(c.low90, c.low50 * rounding);
    ASSERT_LE(c.low50, c.high50 * rounding);
    ASSERT_LE(c.high50, c.high90 * rounding);
    ASSERT_GE(c.high90 * rounding, r.costs.high90);
  }
}

// --- files ---

RuntimeCalibration small_calibration() {
  RuntimeCalibration c;
  c.name = "ours.json";
  c.command = "towtank validate ours.jsonl --fit ours.json";
  c.source = "cases of ours";
  c.records = {record(Framework::kMegatron, "ampere", 12),
               record(Framework::kFsdp, "hopper", 3, "h100-sxm-80g")};
  c.records[1].costs.context_bytes.reset();
  c.records[1].costs.reserved_factor.reset();
  c.records[1].identified.clear();
  return c;
}
RuntimeCalibration parsed(const Json& json) {
  return parse_runtime_calibration(JsonFile::parse(json.dump(), "ours.json"));
}

TEST(UnitRuntimeRecordJson, RoundTrip) {
  const RuntimeCalibration before = small_calibration();
  const RuntimeCalibration after = parsed(to_json(before));
  EXPECT_EQ(to_text(to_json(after)), to_text(to_json(before)));
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.command, before.command);
  EXPECT_EQ(after.source, before.source);
  ASSERT_EQ(after.records.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const RuntimeRecord &a = after.records[i], &b = before.records[i];
    EXPECT_EQ(a.framework, b.framework);
    EXPECT_EQ(a.device_kind, b.device_kind);
    EXPECT_EQ(a.generation, b.generation);
    EXPECT_EQ(a.costs.compute_factor, b.costs.compute_factor);
    EXPECT_EQ(a.costs.attention_factor, b.costs.attention_factor);
    EXPECT_EQ(a.costs.host_per_kernel, b.costs.host_per_kernel);
    EXPECT_EQ(a.costs.per_microbatch, b.costs.per_microbatch);
    EXPECT_EQ(a.costs.per_step, b.costs.per_step);
    EXPECT_EQ(a.costs.interference, b.costs.interference);
    EXPECT_EQ(a.costs.context_bytes, b.costs.context_bytes);
    EXPECT_EQ(a.costs.reserved_factor, b.costs.reserved_factor);
    EXPECT_EQ(a.costs.low90, b.costs.low90);
    EXPECT_EQ(a.costs.low50, b.costs.low50);
    EXPECT_EQ(a.costs.high50, b.costs.high50);
    EXPECT_EQ(a.costs.high90, b.costs.high90);
    EXPECT_EQ(a.identified, b.identified);
    EXPECT_EQ(a.sets, b.sets);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.folds, b.folds);
    EXPECT_EQ(a.bias, b.bias);
    EXPECT_EQ(a.spread, b.spread);
  }
}

TEST(UnitRuntimeRecordJson, OpsAndCollectivesBesideAreAnothersConcern) {
  Json json = to_json(small_calibration());
  json["ops"] = Json::array({1});
  json["collectives"] = Json::array({2});
  EXPECT_EQ(parsed(json).records.size(), 2U);
}

TEST(FaultRuntimeRecordJson, UnknownAndMissingKeysAreToldTogether) {
  Json json = to_json(small_calibration());
  Json& first = json["frameworks"][0];
  first["compute_facter"] = first["compute_factor"];
  first.erase("compute_factor");
  first["measured_over_predicted"].erase("p95");
  json["frameworks"][1]["framework"] = "megatronn";
  json["frameworks"][1]["per_step_s"] = -1.0;
  json["sauce"] = "x";
  EXPECT_FAULT(parsed(json),
               "ours.json: /frameworks/0/compute_factor: missing key (it is required)\n"
               "ours.json: /frameworks/0/measured_over_predicted/p95: missing key (it is "
               "required)\n"
               "ours.json: /frameworks/0/compute_facter: unknown key. Did you mean "
               "\"compute_factor\"?\n"
               "ours.json: /frameworks/1/framework: \"megatronn\" is not one of the known "
               "values (known: megatron, megatron-2021, megatron-deepspeed, nemo, fsdp, "
               "torchtitan, deepspeed, towtank-runtime). Did you mean \"megatron\"?\n"
               "ours.json: /frameworks/1/per_step_s: -1.0 is too small (must be in 0 to 3600)\n"
               "ours.json: /sauce: unknown key");
}

TEST(FaultRuntimeRecordJson, ANewerVersionIsToldAlone) {
  Json json = to_json(small_calibration());
  json["version"] = 2;
  json["sauce"] = "x";
  EXPECT_FAULT(parsed(json),
               "ours.json: /version: 2 is newer than this program (it reads versions up to 1). "
               "Update towtank.");
}

// --- what is shipped ---

TEST(UnitRuntimeRecordJson, ShippedRecordsAreSoundAndApart) {
  const auto shipped = shipped_runtime_records();
  ASSERT_FALSE(shipped.empty());
  for (std::size_t i = 0; i < shipped.size(); ++i) {
    const RuntimeRecord& r = shipped[i];
    EXPECT_GE(r.folds, 2);
    EXPECT_GE(r.rows, r.folds);
    EXPECT_FALSE(r.identified.empty());
    EXPECT_LT(r.costs.low90, r.costs.low50);
    EXPECT_LT(r.costs.low50, r.costs.high50);
    EXPECT_LT(r.costs.high50, r.costs.high90);
    for (const std::string& set : r.sets) {
      for (const char* unseen : {"verdict", "mlperf", "megatron-sc21", "korthikanti"}) {
        EXPECT_FALSE(set.starts_with(unseen)) << set;
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(r.framework == shipped[j].framework && r.generation == shipped[j].generation &&
                   r.device_kind == shipped[j].device_kind);
    }
  }
}

}  // namespace towtank::runtime_record_test
