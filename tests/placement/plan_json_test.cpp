// SPDX-License-Identifier: Apache-2.0
#include "placement/plan_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "tests/support/expect_fault.h"

namespace towtank::plan_json_test {

constexpr const char* kModel =
    R"({"model_type":"gpt2","n_embd":64,"n_layer":8,"n_head":4,"vocab_size":512})";

/// A whole valid file; tests change one thing.
Json plain_file() {
  return Json::parse(R"({
    "format": "towtank-plan", "version": 1,
    "workload": {"model": {"model_type": "gpt2", "n_embd": 64, "n_layer": 8, "n_head": 4,
                           "vocab_size": 512},
                 "sequence_length": 128, "global_batch": 32, "precision": "bf16"},
    "platform": "dgx-h100", "devices": 8,
    "plan": {"tensor": 2, "pipeline": 2, "data": 2, "context": 1, "expert": 1,
             "stages_per_rank": 1, "microbatch": 4, "schedule": "1f1b",
             "sequence_parallel": true, "sharding_stage": 1, "recompute": "full",
             "framework": "megatron"}})");
}

PlanFile parse(const Json& json) {
  return parse_plan_file(JsonFile::parse(json.dump(), "plan.json"));
}
std::string fault(const Json& json) {
  return testing::fault_of([&] { static_cast<void>(parse(json)); });
}

TEST(UnitPlanJson, ReadsEveryKeyOfACase) {
  const PlanFile file = parse(plain_file());
  EXPECT_EQ(file.workload.model_json, kModel);
  EXPECT_EQ(file.workload.model_name, "gpt2");
  EXPECT_EQ(file.workload.sequence_length, 128);
  EXPECT_EQ(file.workload.global_batch, 32);
  EXPECT_EQ(file.workload.precision, DType::kBf16);
  EXPECT_EQ(file.workload.optimizer, OptimizerKind::kAdam);
  EXPECT_EQ(file.platform_name, "dgx-h100");
  EXPECT_EQ(file.platform_inline, "");
  EXPECT_EQ(file.devices, 8);
  EXPECT_EQ(file.plan.tensor, 2);
  EXPECT_EQ(file.plan.pipeline, 2);
  EXPECT_EQ(file.plan.data, 2);
  EXPECT_EQ(file.plan.microbatch, 4);
  EXPECT_EQ(file.plan.schedule, ScheduleKind::kOneFOneB);
  EXPECT_TRUE(file.plan.sequence_parallel);
  EXPECT_EQ(file.plan.sharding_stage, 1);
  EXPECT_EQ(file.plan.recompute, RecomputeMode::kFull);
  EXPECT_EQ(file.plan.framework, Framework::kMegatron);
  EXPECT_TRUE(file.plan.stages.empty());
  EXPECT_TRUE(file.defaults_taken.empty());
}

TEST(UnitPlanJson, NullsTakeTheListedDefaults) {
  Json json = plain_file();
  for (const char* key : {"stages_per_rank", "schedule", "sharding_stage", "recompute"}) {
    json["plan"][key] = nullptr;
  }
  json["workload"]["precision"] = nullptr;
  json["workload"]["global_batch"] = nullptr;
  json["plan"]["framework"] = "torchtitan";
  const PlanFile file = parse(json);
  EXPECT_EQ(file.plan.stages_per_rank, 1);
  EXPECT_EQ(file.plan.schedule, ScheduleKind::kOneFOneB);
  EXPECT_EQ(file.plan.sharding_stage, 0);
  EXPECT_EQ(file.plan.recompute, RecomputeMode::kSelective);
  EXPECT_EQ(file.workload.precision, DType::kBf16);
  EXPECT_EQ(file.workload.global_batch, 2 * 4 * 2);
  EXPECT_EQ(
      file.defaults_taken,
      (std::vector<std::string>{"precision: bf16", "stages_per_rank: 1", "schedule: 1f1b",
                                "sharding_stage: 0", "recompute: selective (torchtitan's default)",
                                "global_batch: 16 (data * microbatch * pipeline)"}));
}

TEST(UnitPlanJson, NoScheduleOnOnePipelineRankIsNoDefault) {
  Json json = plain_file();
  json["plan"]["pipeline"] = 1;
  json["plan"]["schedule"] = nullptr;
  EXPECT_EQ(parse(json).plan.schedule, ScheduleKind::kNone);
  EXPECT_TRUE(parse(json).defaults_taken.empty());
}

TEST(UnitPlanJson, DefaultRecomputeOfEachFramework) {
  for (std::size_t f = 0; f < kFrameworkCount; ++f) {
    const auto framework = static_cast<Framework>(f);
    EXPECT_EQ(default_recompute(framework), framework == Framework::kTorchtitan
                                                ? RecomputeMode::kSelective
                                                : RecomputeMode::kNone);
  }
}

TEST(UnitPlanJson, StagesAreRead) {
  Json json = plain_file();
  json["plan"]["recompute"] = "mixed";
  json["plan"]["stages"] = Json::parse(R"([
    {"layers": [0, 3], "recompute": {"full": 2, "selective": 1}},
    {"layers": [3, 8], "replicas": [{"device_kind": "h100", "tensor": 2, "microbatch_share": 1}]}])");
  const Plan plan = parse(json).plan;
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[0], (PlanStage{0, 3, 2, 1, ""}));
  EXPECT_EQ(plan.stages[1], (PlanStage{3, 8, 0, 0, "h100"}));
  EXPECT_EQ(plan.recompute, RecomputeMode::kFull);  // the strongest that a stage uses
}

TEST(UnitPlanJson, AnInlinePlatformIsKeptAsText) {
  Json json = plain_file();
  json["platform"] = Json::parse(R"({"format": "towtank-platform", "version": 1, "name": "lab"})");
  const PlanFile file = parse(json);
  EXPECT_EQ(file.platform_name, "");
  EXPECT_EQ(file.platform_inline, R"({"format":"towtank-platform","version":1,"name":"lab"})");
}

TEST(UnitPlanJson, OptimizerBytes) {
  Json json = plain_file();
  json["plan"]["optimizer"] =
      Json::parse(R"({"parameter": 2, "gradient": 2, "main_copy": 4, "moments": 4})");
  const StateBytes bytes = *parse(json).plan.state_override;
  EXPECT_EQ(bytes.parameter, 2);
  EXPECT_EQ(bytes.gradient, 2);
  EXPECT_EQ(bytes.optimizer, 4 + 4);
  json["plan"]["optimizer"] = Json::parse(R"({"parameter": 2, "gradient": 2, "states": 8})");
  EXPECT_EQ(*parse(json).plan.state_override, bytes);
}

TEST(UnitPlanJson, InputHasAUnit) {
  Json json = plain_file();
  json["workload"]["input"] = "600 kB";
  EXPECT_EQ(parse(json).workload.input_bytes, Bytes{600'000});
  json["workload"].erase("input");
  json["workload"]["input_bytes"] = 1234;
  EXPECT_EQ(parse(json).workload.input_bytes, Bytes{1234});
}

PlanFile random_file(Rng& rng) {
  const auto degree = [&](int most) { return static_cast<int>(rng.integer(1, most)); };
  PlanFile file;
  file.workload.model_json = kModel;
  file.workload.model_hash = parse(plain_file()).workload.model_hash;
  file.workload.model_name = "net \"" + std::to_string(rng.integer(0, 99)) + "\"";
  file.workload.sequence_length = static_cast<int>(rng.integer(0, 8192));
  file.workload.global_batch = degree(4096);
  file.workload.precision = static_cast<DType>(rng.integer(0, 7));
  file.workload.optimizer = static_cast<OptimizerKind>(rng.integer(0, 2));
  if (rng.uniform() < 0.5) file.workload.train_tokens = rng.uniform(1e6, 1e13);
  if (rng.uniform() < 0.5) file.workload.input_bytes = Bytes{rng.integer(0, 1'000'000)};
  if (rng.uniform() < 0.5) file.workload.expert_load = rng.uniform(1, 3);
  if (rng.uniform() < 0.5) {
    file.platform_name = "dgx-h100";
    file.platform_hash = "0123456789abcdef";
  } else {
    file.platform_inline = R"({"format":"towtank-platform","version":1,"name":"lab"})";
  }
  if (rng.uniform() < 0.5) file.generated_by = "towtank plan --top 3";
  Plan& plan = file.plan;
  plan.tensor = degree(8);
  plan.pipeline = degree(4);
  plan.data = degree(8);
  plan.context = degree(2);
  plan.expert = degree(4);
  plan.expert_tensor = degree(2);
  plan.stages_per_rank = degree(3);
  plan.microbatch = degree(4);
  plan.schedule = static_cast<ScheduleKind>(rng.integer(plan.pipeline > 1 ? 1 : 0, 4));
  plan.sequence_parallel = rng.uniform() < 0.5;
  plan.sharding_stage = static_cast<int>(rng.integer(0, 3));
  plan.recompute = static_cast<RecomputeMode>(rng.integer(0, 2));
  plan.framework = static_cast<Framework>(rng.integer(0, kFrameworkCount - 1));
  if (rng.uniform() < 0.3) plan.state_override = StateBytes{2, 2.5, 8, 1, 4, 2};
  plan.compile = rng.uniform() < 0.5;
  file.devices = plan.devices();
  if (rng.uniform() < 0.7) {
    expand_stages(plan, plan.pipeline * plan.stages_per_rank + degree(20));
    PlanStage& stage = plan.stages.front();
    stage.device_kind = "h100-sxm";
    if (plan.recompute == RecomputeMode::kFull && rng.uniform() < 0.5) {
      stage.recompute_selective = 1;  // mixed: the strongest mode names the plan
      --stage.recompute_full;
      if (plan.stages.size() == 1 && stage.recompute_full == 0) {
        plan.recompute = RecomputeMode::kSelective;
      }
    }
  }
  if (rng.uniform() < 0.3) {
    for (int r = 0; r < file.devices; ++r) plan.rank_map.push_back(file.devices - 1 - r);
  }
  return file;
}

TEST(LawPlanJson, WrittenAndReadAgainIsTheSame) {
  Rng rng(59);
  for (int n = 0; n < 500; ++n) {
    const PlanFile file = random_file(rng);
    const std::string text = to_text(to_json(file));
    const PlanFile again = parse_plan_file(JsonFile::parse(text, "again.json"));
    ASSERT_TRUE(again.plan == file.plan) << text;
    ASSERT_EQ(again.devices, file.devices);
    ASSERT_EQ(again.generated_by, file.generated_by);
    ASSERT_EQ(again.platform_name, file.platform_name);
    ASSERT_EQ(again.platform_hash, file.platform_hash);
    ASSERT_EQ(again.platform_inline, file.platform_inline);
    ASSERT_EQ(again.workload.model_name, file.workload.model_name);
    ASSERT_EQ(again.workload.model_hash, file.workload.model_hash);
    ASSERT_EQ(again.workload.sequence_length, file.workload.sequence_length);
    ASSERT_EQ(again.workload.global_batch, file.workload.global_batch);
    ASSERT_EQ(again.workload.precision, file.workload.precision);
    ASSERT_EQ(again.workload.optimizer, file.workload.optimizer);
    ASSERT_EQ(again.workload.train_tokens, file.workload.train_tokens);
    ASSERT_EQ(again.workload.input_bytes, file.workload.input_bytes);
    ASSERT_EQ(again.workload.expert_load, file.workload.expert_load);
    ASSERT_TRUE(again.defaults_taken.empty());
    ASSERT_EQ(to_text(to_json(again)), text);
  }
}

TEST(GoldenPlanJson, AWrittenFile) {
  PlanFile file = parse(plain_file());
  file.generated_by = "towtank plan";
  file.platform_hash = "0123456789abcdef";
  file.plan.recompute = RecomputeMode::kSelective;
  expand_stages(file.plan, 8);
  EXPECT_EQ(to_json(file).dump(1), R"({
 "format": "towtank-plan",
 "version": 1,
 "generated_by": "towtank plan",
 "workload": {
  "name": "gpt2",
  "model": {
   "model_type": "gpt2",
   "n_embd": 64,
   "n_layer": 8,
   "n_head": 4,
   "vocab_size": 512
  },
  "sequence_length": 128,
  "global_batch": 32,
  "precision": "bf16",
  "optimizer": "adam"
 },
 "platform": "dgx-h100",
 "platform_hash": "0123456789abcdef",
 "devices": 8,
 "plan": {
  "tensor": 2,
  "pipeline": 2,
  "data": 2,
  "context": 1,
  "expert": 1,
  "expert_tensor": 1,
  "stages_per_rank": 1,
  "microbatch": 4,
  "schedule": "1f1b",
  "sequence_parallel": true,
  "sharding_stage": 1,
  "recompute": "selective",
  "framework": "megatron",
  "compile": false,
  "stages": [
   {
    "layers": [
     0,
     4
    ],
    "recompute": {
     "selective": 4
    }
   },
   {
    "layers": [
     4,
     8
    ],
    "recompute": {
     "selective": 4
    }
   }
  ]
 }
})");
}

TEST(FaultPlanJson, AMissingKey) {
  Json json = plain_file();
  json["plan"].erase("tensor");
  EXPECT_EQ(fault(json), "plan.json: /plan/tensor: missing key (it is required)");
  json = plain_file();
  json.erase("workload");
  EXPECT_EQ(fault(json), "plan.json: /workload: missing key (it is required)");
}

TEST(FaultPlanJson, AMisspeltKey) {
  Json json = plain_file();
  json["plan"]["sharding_stge"] = 1;
  EXPECT_EQ(fault(json),
            "plan.json: /plan/sharding_stge: unknown key. Did you mean \"sharding_stage\"?");
  json = plain_file();
  json["plan"]["expert_tensr"] = 1;
  EXPECT_EQ(fault(json),
            "plan.json: /plan/expert_tensr: unknown key. Did you mean \"expert_tensor\"?");
}

TEST(FaultPlanJson, AnotherFormatAndANewerVersion) {
  Json json = plain_file();
  json["format"] = "towtank-graph";
  EXPECT_EQ(fault(json),
            "plan.json: /format: \"towtank-graph\" is another format (must be \"towtank-plan\")");
  json = plain_file();
  json["version"] = 2;
  EXPECT_EQ(fault(json),
            "plan.json: /version: 2 is newer than this program (it reads versions up to 1). Update "
            "towtank.");
}

TEST(FaultPlanJson, NamesThatAreNotKnown) {
  Json json = plain_file();
  json["plan"]["schedule"] = "1f1";
  EXPECT_EQ(fault(json),
            "plan.json: /plan/schedule: \"1f1\" is not one of the known values (known: none, "
            "gpipe, 1f1b, interleaved, zb-h1). Did you mean \"1f1b\"?");
}

TEST(FaultPlanJson, NumbersOutOfRange) {
  Json json = plain_file();
  json["plan"]["tensor"] = 0;
  json["plan"]["sharding_stage"] = 4;
  json["devices"] = -8;
  EXPECT_EQ(fault(json),
            "plan.json: /devices: -8 is too small (must be in 1 to 2147483647)\n"
            "plan.json: /plan/tensor: 0 is too small (must be in 1 to 1000000)\n"
            "plan.json: /plan/sharding_stage: 4 is too large (must be in 0 to 3)");
}

TEST(FaultPlanJson, AProductBeyondInt) {
  Json json = plain_file();
  json["plan"]["tensor"] = 1000000;
  json["plan"]["data"] = 1000000;
  EXPECT_EQ(fault(json), "plan.json: /plan: has degrees whose product is over 2,147,483,647");
}

TEST(FaultPlanJson, ShorthandAndStagesThatDisagree) {
  Json json = plain_file();
  json["plan"]["stages"] =
      Json::parse(R"([{"layers": [0, 4], "recompute": {"full": 4}}, {"layers": [4, 8]}])");
  EXPECT_EQ(fault(json), "plan.json: /plan/recompute: is \"full\" (the stages say \"mixed\")");
  json["plan"]["recompute"] = nullptr;
  EXPECT_EQ(fault(json), "(no InputError was thrown)");
  json["plan"]["stages"].erase(1);
  EXPECT_EQ(fault(json), "plan.json: /plan/stages: has 1 stages (pipeline * stages_per_rank = 2)");
  json["plan"].erase("stages");
  json["plan"]["recompute"] = "mixed";
  EXPECT_EQ(fault(json),
            "plan.json: /plan/recompute: is \"mixed\" (that needs stages to say where)");
}

TEST(FaultPlanJson, WhatCannotBeExpressedYet) {
  Json json = plain_file();
  json["plan"]["recompute"] = nullptr;
  json["plan"]["stages"] = Json::parse(R"([
    {"layers": [0, 4], "offload": {"activations": 2}},
    {"layers": [4, 8], "recompute": {"norms": 2},
     "replicas": [{"device_kind": "a", "tensor": 2, "microbatch_share": 0.5},
                  {"device_kind": "b", "tensor": 2, "microbatch_share": 0.5}]}])");
  EXPECT_EQ(fault(json),
            "plan.json: /plan/stages/0/offload: is not predicted yet (activations and states stay "
            "on the device). Remove it.\n"
            "plan.json: /plan/stages/1/recompute/norms: is an option that is not predicted yet "
            "(known: full, selective)\n"
            "plan.json: /plan/stages/1/replicas: has unequal replicas (these are not predicted "
            "yet). Give one replica, which stands for all, with tensor = 2.");
  json = plain_file();
  json["workload"]["task"] = "infer";
  json["workload"]["sample"] = Json::parse(R"({"shape": [3, 224, 224]})");
  EXPECT_EQ(fault(json),
            "plan.json: /workload/task: is not \"train\" (only training is predicted)\n"
            "plan.json: /workload/sample: is not read yet (a graph states its own sample; "
            "sequences are sequence_length). Remove it.");
}

TEST(FaultPlanJson, LayersThatAreNoRange) {
  Json json = plain_file();
  json["plan"]["recompute"] = nullptr;
  json["plan"]["stages"] = Json::parse(
      R"([{"layers": [4, 0]}, {"layers": [4, 8], "recompute": {"full": 3, "selective": 2}}])");
  EXPECT_EQ(fault(json),
            "plan.json: /plan/stages/0/layers: is not [first, last) (two layer numbers, the second "
            "not less)\n"
            "plan.json: /plan/stages/1/recompute: recomputes 5 layers of 4");
}

TEST(FaultPlanJson, AModelThatIsNoObject) {
  Json json = plain_file();
  json["workload"]["model"] = "config.json";
  EXPECT_EQ(fault(json),
            "plan.json: /workload/model: is not an object (the model is embedded). Put the content "
            "of config.json here.");
}

TEST(FaultPlanJson, AnyValueOfAnyTypeIsAFaultOrAPlan) {
  const std::vector<Json> values{nullptr,
                                 true,
                                 -1,
                                 0,
                                 1.5,
                                 1e300,
                                 "",
                                 "x",
                                 Json::array(),
                                 Json::object(),
                                 Json::array({1, 2}),
                                 Json::array({nullptr})};
  const Json plain = plain_file();
  for (const char* section : {"workload", "plan", ""}) {
    const Json& object = *section == '\0' ? plain : plain[section];
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    for (const char* key : {"optimizer", "stages", "rank_map", "expert_tensor", "compile", "input",
                            "expert_load", "train_tokens", "task", "name", "platform_hash"}) {
      keys.emplace_back(key);
    }
    for (const std::string& key : keys) {
      for (const Json& value : values) {
        Json json = plain;
        (*section == '\0' ? json : json[section])[key] = value;
        EXPECT_NE(fault(json), "");  // an InputError or none, nothing else
      }
    }
  }
}

/// Every case of the open data, if it is beside the checkout.
std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder =
      std::filesystem::path(TOWTANK_SOURCE_DIR) / ".." / "shared" / "data" / "cases";
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  return files;
}

TEST(ImportPlanJson, EveryOpenCaseIsRead) {
  const auto files = case_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/data/cases";
  int rows = 0;
  for (const auto& path : files) {
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line); ++rows) {
      const JsonFile file = JsonFile::parse(line, path.filename().string());
      const PlanFile plan = read_plan_body(file.root());
      EXPECT_EQ(testing::fault_of([&] { file.finish(); }), "(no InputError was thrown)");
      EXPECT_EQ(plan.plan.devices(), plan.devices) << line.substr(0, 80);
    }
  }
  EXPECT_EQ(rows, 1105);  // the row count that the data set states
}

}  // namespace towtank::plan_json_test
