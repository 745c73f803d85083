// SPDX-License-Identifier: Apache-2.0
#include "validate/predict_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/constant_costs.h"
#include "tests/validate/small_case.h"

namespace towtank::predict_case_test {

using validate_testing::case_of;
using validate_testing::fault_of_prediction;
using validate_testing::small_case;
using validate_testing::with_notes;

std::vector<int> layers_of(const Plan& plan) {
  std::vector<int> out;
  for (const PlanStage& stage : plan.stages) out.push_back(stage.last - stage.first);
  return out;
}

CasePrediction predict(const Case& c) { return CasePredictor().predict(c); }
CasePrediction predict(const Json& json) { return predict(case_of(json)); }

bool has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(UnitPredictCase, APlainCaseIsItsPlan) {
  const CasePrediction p = predict(small_case());
  EXPECT_EQ(layers_of(p.plan), (std::vector<int>{4, 4}));
  EXPECT_EQ(p.plan.stages[0].recompute_full, 4);
  EXPECT_EQ(p.plan.framework, Framework::kMegatron);
  EXPECT_EQ(p.step_time, p.whole.step_time);
  EXPECT_EQ(p.memory_kind, MemoryKind::kDeviceTotal);
  EXPECT_EQ(p.peak_memory, p.whole.peak_memory().total());
  EXPECT_EQ(p.outcome, CaseOutcome::kRan);
  EXPECT_TRUE(p.assumptions.empty());
}

TEST(UnitPredictCase, TheCostModelIsTheCallers) {
  const Case c = case_of(small_case());
  CasePredictor slow([](const Platform&, const DeviceKind&, const NetworkView&) {
    ConstantRates rates;
    rates.work = FlopPerSecond{1e6};
    return std::make_unique<ConstantCosts>(rates);
  });
  EXPECT_GT(slow.predict(c).step_time, 1000 * predict(c).step_time);
}

TEST(UnitPredictCase, SplitsAsTheNotesSay) {
  EXPECT_EQ(layers_of(predict(with_notes("layers per stage [3, 5]")).plan),
            (std::vector<int>{3, 5}));
  // Embedding and head count: [3, 7] holds 3 - 1 and 7 - 1 of the 8 layers.
  EXPECT_EQ(layers_of(predict(with_notes("layers per stage [3, 7] count embedding and head as one "
                                         "layer each"))
                          .plan),
            (std::vector<int>{2, 6}));
  // (8 + 2) / 2 = 5 a stage, less the embedding and the head.
  EXPECT_EQ(layers_of(predict(with_notes("layer partition type:transformer|embedding")).plan),
            (std::vector<int>{4, 4}));
}

TEST(UnitPredictCase, CountedSplitsFillTheFirstStages) {
  Json json = small_case();
  json["plan"]["tensor"] = 1;
  json["plan"]["data"] = 2;
  json["plan"]["pipeline"] = 4;
  json["notes"] = "embedding and loss count as layers";
  // 10 over 4 stages: 3, 3, 3, 1; less the embedding and the head.
  EXPECT_EQ(layers_of(predict(json).plan), (std::vector<int>{2, 3, 3, 0}));
  // 10 over 6 stages: 2 each would leave none for the last, so 2, 2, 2, 2, 1, 1.
  json["devices"] = 12;
  json["plan"]["pipeline"] = 6;
  EXPECT_EQ(layers_of(predict(json).plan), (std::vector<int>{1, 2, 2, 2, 1, 0}));
}

TEST(UnitPredictCase, MoreStagesThanLayersMakeStagesOfEmbeddingAndHead) {
  Json json = small_case();
  json["workload"]["model"]["n_layer"] = 6;
  json["plan"]["tensor"] = 1;
  json["plan"]["data"] = 1;
  json["plan"]["pipeline"] = 8;
  const CasePrediction p = predict(json);
  EXPECT_EQ(layers_of(p.plan), (std::vector<int>{0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(has(p.assumptions, "more stages than layers"));
  json["workload"]["model"]["n_layer"] = 5;
  EXPECT_EQ(fault_of_prediction(json),
            "cases.jsonl:7: mine-0001: /plan/stages_per_rank: makes 8 stages (the model has 5 "
            "layers, embedding and head)");
}

TEST(UnitPredictCase, StatesAsTheNotesSay) {
  // PURE: bf16 parameters, gradients, copies and two moments.
  const auto pure = predict(with_notes("PURE mixed precision")).plan.state_override;
  ASSERT_TRUE(pure.has_value());
  EXPECT_EQ(pure->parameter, 2);
  EXPECT_EQ(pure->gradient, 2);
  EXPECT_EQ(pure->optimizer, 2 + 2);
  const auto bf16 = predict(with_notes("BF16 optimizer")).plan.state_override;
  ASSERT_TRUE(bf16.has_value());
  EXPECT_EQ(bf16->extra, 4);
  const auto fp16 = predict(with_notes("fp16 gradients")).plan.state_override;
  ASSERT_TRUE(fp16.has_value());
  EXPECT_EQ(fp16->gradient, 2);
  EXPECT_EQ(fp16->extra, 0);
  EXPECT_FALSE(predict(small_case()).plan.state_override.has_value());
}

TEST(UnitPredictCase, CompileAndPackedSamples) {
  EXPECT_TRUE(predict(with_notes("FSDP + torch.compile")).plan.compile);
  EXPECT_TRUE(has(predict(with_notes("packed samples")).assumptions, "packed samples"));
}

TEST(UnitPredictCase, RulesOfASetAreTakenAndTold) {
  Json json = small_case();
  json["id"] = "bigscience-a100-0001";
  const CasePrediction p = predict(json);
  EXPECT_EQ(p.plan.framework, Framework::kMegatronDeepSpeed);
  EXPECT_EQ(p.plan.state_override->extra, 0);  // no "BF16 optimizer" in its notes
  EXPECT_TRUE(has(p.assumptions, "framework rules: megatron-deepspeed"));
  EXPECT_TRUE(has(p.assumptions, "BigScience ran Megatron-DeepSpeed"));
  json["id"] = "vtrain-multi-0001";
  const CasePrediction v = predict(json);
  EXPECT_EQ(v.plan.framework, Framework::kMegatron2021);
  StateBytes states =
      state_bytes(Framework::kMegatronDeepSpeed, DType::kBf16, OptimizerKind::kAdam).value;
  states.extra = 0;
  EXPECT_EQ(v.plan.state_override, states);
  EXPECT_EQ(rule_of_set("mine").reason, "");
  EXPECT_EQ(rule_of_set("torchtitan").memory, MemoryKind::kReserved);
  EXPECT_EQ(rule_of_set("sailor").memory, MemoryKind::kAllocated);
  EXPECT_EQ(framework_followed(rule_of_set("verdict"), Framework::kFsdp, 4),
            Framework::kTorchtitan);
  EXPECT_EQ(framework_followed(rule_of_set("verdict"), Framework::kFsdp, 1), Framework::kFsdp);
}

TEST(UnitPredictCase, MemoryAsTheSetReadsIt) {
  MemoryBreakdown m;
  m.parameters = {100};
  m.reserve = {20};
  m.context = {3};
  EXPECT_EQ(memory_of_kind(m, MemoryKind::kAllocated).value, 100);
  EXPECT_EQ(memory_of_kind(m, MemoryKind::kReserved).value, 100 + 20);
  EXPECT_EQ(memory_of_kind(m, MemoryKind::kDeviceTotal).value, 100 + 20 + 3);
}

TEST(UnitPredictCase, SailorsLayersKeepWhatItsProfilesCount) {
  // llm_info.json of Sailor, OPT-350M, floats a layer and sample: s h (3 + 40 / t), 32 of them
  // scores. We count one LayerNorm output more and the two masks of hidden values, a byte each.
  Json json = small_case();
  json["id"] = "sailor-0001";
  json["workload"]["model"] = {{"model_type", "gpt2"}, {"n_embd", 1024},
                               {"n_layer", 24},        {"n_head", 16},
                               {"n_positions", 2048},  {"vocab_size", 50257}};
  json["workload"]["sequence_length"] = 2048;
  json["workload"]["precision"] = "fp32";
  json["plan"]["tensor"] = 4;
  json["plan"]["pipeline"] = 2;
  json["plan"]["data"] = 1;
  json["plan"]["microbatch"] = 1;
  json["plan"]["recompute"] = "none";
  json["platform"] = "gh200x4-slingshot";
  const CasePrediction p = predict(json);
  // Twelve layers on the first stage, two microbatches in flight; embedding adds one mask.
  const double sh = 2048.0 * 1024.0;
  const double layer = 4 * sh * (4 + 40.0 / 4) + 2 * sh;
  const double first = static_cast<double>(p.whole.memory.front().activations.value);
  EXPECT_NEAR(first, 2 * (12 * layer + sh), 0.01 * first);
  const MemoryBreakdown& peak = p.whole.peak_memory();
  EXPECT_EQ(p.peak_memory.value,
            peak.allocated().value - peak.buffers.value + 5'060'000'000);  // its memory rule
  // A dict that states its rates keeps them; other sets are left alone.
  EXPECT_EQ(completed_model("mine", "{}"), "{}");
  EXPECT_EQ(completed_model("sailor", R"({"n_embd":2560,"attn_pdrop":0.1})"),
            R"({"n_embd":2560,"attn_pdrop":0.1})");
}

TEST(UnitPredictCase, MoreThanTheDeviceHoldsIsOutOfMemory) {
  Json json = small_case();
  json["workload"]["model"]["n_embd"] = 16384;
  json["workload"]["model"]["n_head"] = 128;
  const CasePrediction p = predict(json);
  // 8 layers of 12 h^2 over t p = 4 ranks, at 20 bytes: more than 80 GB.
  ASSERT_GT(8 * 12 * 16384.0 * 16384.0 / 4 * 18, static_cast<double>(p.capacity.value));
  EXPECT_EQ(p.outcome, CaseOutcome::kOom);
}

/// Two stages of two devices each, of different kinds.
Json mixed_case() {
  Json json = small_case();
  json["platform"] = "mit-rtx";
  json["devices"] = 4;
  json["plan"]["data"] = 1;
  json["notes"] = R"(stages=[{"layers":3,"replicas":[["RTX-3090",2]]},)"
                  R"({"layers":5,"replicas":[["RTX-2080",2]]}])";
  return json;
}

TEST(UnitPredictCase, StagesOnDeviceKindsOfTheirOwn) {
  const CasePrediction p = predict(mixed_case());
  EXPECT_EQ(layers_of(p.plan), (std::vector<int>{3, 5}));
  EXPECT_EQ(p.plan.stages[0].device_kind, "rtx-3090");
  EXPECT_EQ(p.plan.stages[1].device_kind, "rtx-2080");
  EXPECT_TRUE(has(p.whole.assumptions, "several device kinds"));
  // The smallest device counts: 8 GB of the RTX 2080.
  EXPECT_LT(p.capacity.value, 9LL << 30);
}

TEST(FaultPredictCase, SplitsThatDoNotHoldTheModel) {
  Json json = small_case();
  json["notes"] = "layers per stage [3, 6]";
  EXPECT_EQ(fault_of_prediction(json),
            "cases.jsonl:7: mine-0001: /notes: splits 9 layers over the stages (the model has 8)");
  json["notes"] = "layers per stage [2, 2, 4]";
  EXPECT_EQ(fault_of_prediction(json),
            "cases.jsonl:7: mine-0001: /notes: splits layers over 3 stages (pipeline * "
            "stages_per_rank = 2)");
}

TEST(FaultPredictCase, ReplicasThatThePlanDoesNotHave) {
  Json json = mixed_case();
  json["notes"] = R"(stages=[{"layers":3,"replicas":[["RTX-5090",2]]},)"
                  R"({"layers":5,"replicas":[["RTX-2080",2]]}])";
  EXPECT_EQ(fault_of_prediction(json),
            "cases.jsonl:7: mine-0001: /notes: names the device \"rtx-5090\" (mit-rtx has no node "
            "with 2 of it)");
  json["notes"] = R"(stages=[{"layers":3,"replicas":[["RTX-3090",4]]},)"
                  R"({"layers":5,"replicas":[["RTX-2080",2]]}])";
  EXPECT_EQ(fault_of_prediction(json),
            "cases.jsonl:7: mine-0001: /notes: has a replica on 4 devices (tensor is 2)");
}

TEST(FaultPredictCase, PlansThatCannotRunNameTheirKey) {
  Json json = small_case();
  json["devices"] = 16;
  EXPECT_NE(
      fault_of_prediction(json).find("cases.jsonl:7: mine-0001: /devices: tensor 2 x pipeline"),
      std::string::npos)
      << fault_of_prediction(json);
  json = small_case();
  json["workload"]["global_batch"] = 30;
  EXPECT_NE(
      fault_of_prediction(json).find("mine-0001: /workload/global_batch: a global batch of 30"),
      std::string::npos)
      << fault_of_prediction(json);
}

TEST(FaultPredictCase, ModelsAndMachinesThatAreNotKnown) {
  Json json = small_case();
  json["platform"] = "dgx-a100";
  EXPECT_TRUE(fault_of_prediction(json).starts_with(
      "cases.jsonl:7: mine-0001: /platform: platform: \"dgx-a100\" is not in the catalogue."))
      << fault_of_prediction(json);
  json = small_case();
  json["workload"]["model"]["n_embd"] = -256;
  EXPECT_TRUE(fault_of_prediction(json).starts_with(
      "cases.jsonl:7: mine-0001: /workload: model: /n_embd: "))
      << fault_of_prediction(json);
}

TEST(UnitPredictCase, ARunIsEvidenceAgainstARuleOfItsFramework) {
  // Composer has no pipeline, Megatron's ZeRO-2 none either; the run says otherwise.
  Json json = small_case();
  json["plan"]["sharding_stage"] = 2;
  const CasePrediction p = predict(json);
  EXPECT_TRUE(has(p.assumptions, "it ran, against the rule: megatron does not combine"));
  json["measured"] = {{"step_time_s", nullptr}, {"peak_memory_bytes", nullptr}, {"outcome", "oom"}};
  EXPECT_NE(fault_of_prediction(json).find("/plan/sharding_stage: megatron does not combine"),
            std::string::npos)
      << fault_of_prediction(json);
}

TEST(UnitPredictCase, NullsOfThePlanTakeDefaultsAndSaySo) {
  Json json = small_case();
  for (const char* key : {"microbatch", "sequence_parallel", "stages_per_rank", "schedule"}) {
    json["plan"][key] = nullptr;
  }
  const CasePrediction p = predict(json);
  EXPECT_EQ(p.plan.microbatch, 1);
  EXPECT_TRUE(p.plan.sequence_parallel);  // tensor is 2
  EXPECT_EQ(p.plan.schedule, ScheduleKind::kOneFOneB);
  for (const char* text : {"microbatch: 1", "sequence_parallel: true", "schedule: 1f1b"}) {
    EXPECT_TRUE(has(p.assumptions, text)) << text;
  }
}

TEST(FaultPredictCase, EveryOpenCaseIsExpressed) {
  const auto folder = validate_testing::open_cases();
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "NO OPEN CASES at " << folder << ": nothing was checked";
  }
  CasePredictor predictor;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".jsonl") continue;
    for (const Case& c : load_cases(file.path().string())) {
      EXPECT_NO_THROW({
        const CasePrediction p = predictor.predict(c);
        EXPECT_GT(p.step_time.value, 0) << c.id;
      }) << c.id;
    }
  }
}

}  // namespace towtank::predict_case_test
