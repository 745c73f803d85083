// SPDX-License-Identifier: Apache-2.0
#include "validate/case_json.h"

#include <gtest/gtest.h>

#include "tests/validate/small_case.h"
#include "validate/bundled.h"

namespace towtank::case_test {

using validate_testing::case_of;
using validate_testing::fault_of_case;
using validate_testing::small_case;
using validate_testing::with_notes;

TEST(UnitCase, ReadsEveryKey) {
  const Case c = case_of(small_case());
  EXPECT_EQ(c.id, "mine-0001");
  EXPECT_EQ(c.set(), "mine");
  EXPECT_EQ(c.where, "cases.jsonl:7");
  EXPECT_EQ(c.source, "a log of ours");
  EXPECT_EQ(c.body.workload.global_batch, 32);
  EXPECT_EQ(c.body.platform_name, "dgx-a100-80g");
  EXPECT_EQ(c.body.devices, 8);
  EXPECT_EQ(c.body.plan.pipeline, 2);
  EXPECT_EQ(c.measured.step_time->value, 0.5);
  EXPECT_EQ(c.measured.peak_memory->value, 1000000000);
  EXPECT_EQ(c.measured.outcome, CaseOutcome::kRan);
  EXPECT_EQ(c.confidence, CaseConfidence::kHigh);
  EXPECT_EQ(c.assumed, std::vector<std::string>{"precision"});
  EXPECT_EQ(c.notes, "plain");
}

TEST(UnitCase, NullsAreNotGuessed) {
  Json json = small_case();
  json["measured"] = {{"step_time_s", nullptr}, {"peak_memory_bytes", nullptr}, {"outcome", "oom"}};
  json["workload"]["global_batch"] = nullptr;
  json["plan"]["sharding_stage"] = nullptr;
  json["plan"]["recompute"] = nullptr;
  const Case c = case_of(json);
  EXPECT_EQ(c.measured.step_time, std::nullopt);
  EXPECT_EQ(c.measured.peak_memory, std::nullopt);
  EXPECT_EQ(c.measured.outcome, CaseOutcome::kOom);
  // data 2 * microbatch 4 * pipeline 2
  EXPECT_EQ(c.body.workload.global_batch, 2 * 4 * 2);
  EXPECT_EQ(c.body.defaults_taken,
            (std::vector<std::string>{"sharding_stage: 0", "recompute: none (megatron's default)",
                                      "global_batch: 16 (data * microbatch * pipeline)"}));
}

TEST(UnitCase, GroupsDoNotDependOnTheOrderOfKeys) {
  Json other = small_case();
  Json model = other["workload"]["model"];
  other["workload"].erase("model");
  other["workload"]["model"] = model;
  other["plan"]["microbatch"] = 8;
  other["id"] = "mine-0002";
  const Case a = case_of(small_case()), b = case_of(other);
  EXPECT_EQ(a.group_key, b.group_key);
  EXPECT_NE(a.plan_key, b.plan_key);
}

TEST(UnitCase, ASetIsTheIdWithoutItsNumber) {
  EXPECT_EQ(set_of_id("megatron-sc21-0003"), "megatron-sc21");
  EXPECT_EQ(set_of_id("lonely"), "lonely");
}

TEST(UnitCase, EmptyLinesAreSkippedAndLinesCounted) {
  const std::string line = small_case().dump();
  Json second = small_case();
  second["id"] = "mine-0002";
  const auto cases = parse_cases("\n" + line + "\n \r\n" + second.dump(), "f.jsonl");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].where, "f.jsonl:2");
  EXPECT_EQ(cases[1].where, "f.jsonl:4");
}

TEST(UnitCaseNotes, WordsAreWhole) {
  EXPECT_FALSE(with_notes("IMPURE mix").tokens.pure);
  EXPECT_TRUE(with_notes("bf16, PURE mixed precision").tokens.pure);
  EXPECT_FALSE(with_notes("DEFAULT mixed precision").tokens.pure);
}

TEST(UnitCaseNotes, EveryTokenIsRead) {
  const CaseNotes n = with_notes(
                          "BF16 optimizer with fp32 gradient accumulation; fp16 gradients; FSDP + "
                          "torch.compile; SFT, packed samples; layer partition "
                          "type:transformer|embedding; gradient reduction 0.25 s of the step")
                          .tokens;
  EXPECT_TRUE(n.bf16_optimizer);
  EXPECT_TRUE(n.fp16_gradients);
  EXPECT_TRUE(n.compile);
  EXPECT_TRUE(n.packed_samples);
  EXPECT_TRUE(n.ends_count_as_layers);
  EXPECT_EQ(n.gradient_reduction->value, 0.25);
  EXPECT_TRUE(n.stages.empty());
  EXPECT_TRUE(with_notes("embedding and loss count as layers").tokens.ends_count_as_layers);
}

TEST(UnitCaseNotes, SplitsOfLayers) {
  EXPECT_EQ(with_notes("layers per stage [3, 5] count embedding and head as one layer each")
                .tokens.layers_per_stage,
            (std::vector<int>{3, 5}));
  // 3 + 3 + 2 = 8
  EXPECT_EQ(with_notes("8 layers on 3 stages: 3 on the first 2 stages, 2 on the last")
                .tokens.layers_per_stage,
            (std::vector<int>{3, 3, 2}));
  EXPECT_TRUE(with_notes("8 layers on 3 stages").tokens.layers_per_stage.empty());
}

TEST(UnitCaseNotes, StagesOfSeveralDeviceKinds) {
  const CaseNotes n =
      with_notes(R"(stages=[{"layers":3,"replicas":[["RTX-3090",2]]},)"
                 R"({"layers":5,"replicas":[["Titan-RTX",2]]}]; each replica is [GPU, GPUs])")
          .tokens;
  EXPECT_EQ(n.stages, (std::vector<CaseStage>{{3, {{"rtx-3090", 2}}}, {5, {{"titan-rtx", 2}}}}));
}

TEST(FaultCase, AnUnknownKeyNamesItsLineAndTheNearestKey) {
  Json json = small_case();
  json["plan"]["tensors"] = 2;
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /plan/tensors: unknown key. Did you mean \"tensor\"?");
  json = small_case();
  json["note"] = "";
  EXPECT_EQ(fault_of_case(json), "cases.jsonl:7: /note: unknown key. Did you mean \"notes\"?");
  json = small_case();
  json["measured"]["step_time"] = 2;
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /measured/step_time: unknown key. Did you mean "
            "\"step_time_s\"?");
}

TEST(FaultCase, FaultsOfAllLinesAreToldTogether) {
  Json first = small_case(), second = small_case();
  first["confidence"] = "certain";
  second["measured"]["step_time_s"] = -1;
  const std::string text = first.dump() + "\n" + second.dump() + "\n";
  const std::string fault =
      testing::fault_of([&] { static_cast<void>(parse_cases(text, "f.jsonl")); });
  EXPECT_NE(fault.find("f.jsonl:1: /confidence"), std::string::npos) << fault;
  EXPECT_NE(fault.find("f.jsonl:2: /measured/step_time_s"), std::string::npos) << fault;
}

TEST(FaultCase, WhatCannotBe) {
  Json json = small_case();
  json["measured"]["outcome"] = "oom";
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /measured/step_time_s: is stated (a run that was out of memory has no "
            "step time)");
  const std::string twice = small_case().dump() + "\n" + small_case().dump();
  EXPECT_FAULT(parse_cases(twice, "f.jsonl"), "f.jsonl:2: /id: \"mine-0001\" is given twice");
}

TEST(FaultCase, TokensThatCannotBeRead) {
  Json json = small_case();
  json["notes"] = "layers per stage [3, five]";
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /notes: has \"layers per stage [\" without a list that can be read");
  json["notes"] = "layers per stage [3, -5]";
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /notes: has layers per stage that are not whole numbers (-5)");
  json["notes"] = "stages=[{\"layers\":3}]";
  EXPECT_EQ(fault_of_case(json),
            "cases.jsonl:7: /notes: has a stage that is not {\"layers\": n, \"replicas\": "
            "[[device, tensor], ...]} ({\"layers\":3})");
}

TEST(UnitBundledCases, EveryFileIsReadAndIdsAreUnique) {
  const std::vector<Case> all = bundled_cases();
  std::size_t sum = 0;
  for (const EmbeddedFile& file : embedded_cases()) sum += bundled_cases(file.name).size();
  EXPECT_EQ(all.size(), sum);
  EXPECT_GE(all.size(), 8U + 10U);  // Korthikanti's table and SC'21's
  std::set<std::string> ids;
  for (const Case& c : all) EXPECT_TRUE(ids.insert(c.id).second) << c.id;
  EXPECT_TRUE(bundled_cases("no-such-file").empty());
}

}  // namespace towtank::case_test
