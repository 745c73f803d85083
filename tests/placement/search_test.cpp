// SPDX-License-Identifier: Apache-2.0
#include "placement/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/rng.h"
#include "placement/validity.h"
#include "tests/support/near.h"
#include "tests/support/planning.h"

namespace towtank {
namespace {

using testing::Question;

void expect_same_plans(const SearchResult& a, const SearchResult& b, const std::string& what) {
  ASSERT_EQ(a.plans.size(), b.plans.size()) << what;
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_NEAR(a.plans[i].prediction.step_time / b.plans[i].prediction.step_time, 1.0, 1e-9)
        << what << ": " << short_text(a.plans[i].plan) << " against "
        << short_text(b.plans[i].plan);
  }
  if (!a.plans.empty()) {
    EXPECT_EQ(a.plans[0].plan, b.plans[0].plan) << what;
  }
  EXPECT_EQ(a.counts.plans, b.counts.plans) << what;
}

TEST(DifferSearch, BestFirstIsExhaustiveOnAHundredRandomSpaces) {
  Rng rng(7);
  const char* machines[] = {"dgx-h100", "dgx-a100-80g", "jean-zay-v100"};
  const Framework frameworks[] = {Framework::kMegatron, Framework::kTowtankRuntime,
                                  Framework::kTorchtitan, Framework::kFsdp};
  int with_plans = 0;
  for (int i = 0; i < 100; ++i) {
    const int heads = 4 << rng.integer(0, 2);
    const int layers = static_cast<int>(rng.integer(2, 12));
    const std::string config = testing::llama_config(
        128 * heads, layers, heads, heads / 2, 512 * static_cast<int>(rng.integer(1, 8)), 32000);
    const int devices = 1 << rng.integer(0, 5);
    const int batch = static_cast<int>(rng.integer(1, 6)) * 8;
    const Question question(config, machines[rng.integer(0, 2)], devices, 1024 << rng.integer(0, 2),
                            batch);
    SearchOptions options;
    options.framework = frameworks[rng.integer(0, 3)];
    options.top = static_cast<int>(rng.integer(1, 12));
    const SearchResult fast = question.best_first(options);
    with_plans += fast.plans.empty() ? 0 : 1;
    expect_same_plans(fast, question.exhaustive(options), "space " + std::to_string(i));
  }
  EXPECT_GT(with_plans, 80);
}

TEST(DifferSearch, MixtureOfExperts) {
  const std::string config =
      R"({"model_type": "mixtral", "hidden_size": 1024, "num_hidden_layers": 8,
          "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 3584,
          "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})";
  const Question question(config, "dgx-h100", 16, 2048, 64);
  expect_same_plans(question.best_first(), question.exhaustive(), "mixtral");
}

TEST(LawSearch, EveryPlanOfTheSpaceIsValid) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  for (const Framework framework : {Framework::kMegatron, Framework::kTorchtitan, Framework::kFsdp,
                                    Framework::kTowtankRuntime}) {
    SearchOptions options;
    options.framework = framework;
    options.top = 50;
    const SearchResult result = question.best_first(options);
    EXPECT_FALSE(result.plans.empty()) << kFrameworkNames[static_cast<std::size_t>(framework)];
    for (const RankedPlan& ranked : result.plans) {
      const auto faults =
          check_plan(ranked.plan, question.graph(), question.workload(), question.problem().view);
      EXPECT_TRUE(faults.empty()) << short_text(ranked.plan) << ": " << to_text(faults[0]);
      EXPECT_EQ(ranked.prediction.fit, Fit::kFits) << short_text(ranked.plan);
    }
  }
}

// DeepSpeed hides gradient reductions but not the gather of stage 1 (its rules), so whole states may
// win; Megatron-LM hides both, and stage 1 has the traffic of stage 0 with less memory.
TEST(UnitSearch, WholeStatesAreSearchedWhereGathersAreExposed) {
  const Question question(testing::gpt2_config(768, 12, 12, 50257, 1024), "dgx-a100-80g", 16, 1024,
                          64);
  const auto whole = [&](Framework framework) {
    SearchOptions options;
    options.framework = framework;
    options.top = 1000;
    const SearchResult result = question.exhaustive(options);
    return std::any_of(result.plans.begin(), result.plans.end(), [](const RankedPlan& r) {
      return r.plan.sharding_stage == 0 && r.plan.data > 1;
    });
  };
  EXPECT_TRUE(whole(Framework::kDeepSpeed));
  EXPECT_FALSE(whole(Framework::kMegatron));
}

TEST(LawSearch, TheStepIsTheSumOfItsParts) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  SearchOptions options;
  options.top = 50;
  for (const RankedPlan& ranked : question.best_first(options).plans) {
    const Prediction& p = ranked.prediction;
    EXPECT_NEAR(p.step.total() / p.step_time, 1.0, 1e-9) << short_text(ranked.plan);
    EXPECT_GE(p.step.bubble.value, -1e-9 * p.step_time.value) << short_text(ranked.plan);
    for (const MemoryBreakdown& m : p.memory) {
      EXPECT_EQ(m.total(), m.allocated() + m.reserve + m.context);
    }
  }
}

TEST(LawSearch, CountsAddUpAndPlansComeFastestFirst) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  const SearchResult result = question.best_first();
  const SearchCounts& c = result.counts;
  EXPECT_EQ(c.plans, c.pruned_by_bound + c.pruned_by_memory + c.costed);
  EXPECT_TRUE(std::is_sorted(result.plans.begin(), result.plans.end(),
                             [](const RankedPlan& a, const RankedPlan& b) {
                               return a.prediction.step_time < b.prediction.step_time;
                             }));
  ASSERT_EQ(result.baselines.size(), 2U);
  // 70.6e9 parameters at 18 bytes are 1.18 TiB on one device: plain data parallel cannot fit.
  EXPECT_FALSE(result.baselines[0].plan.has_value());
  EXPECT_NE(result.baselines[0].why_not.find("out of memory by 1.1"), std::string::npos)
      << result.baselines[0].why_not;
}

Platform faster(const std::string& name, double network, double memory) {
  Platform p = load_platform(name);
  for (NetworkLevel& level : p.levels) {
    if (level.fabric.bandwidth) level.fabric.bandwidth = network * *level.fabric.bandwidth;
  }
  for (NodeKind& node : p.node_kinds) {
    if (node.intranode.bandwidth) node.intranode.bandwidth = network * *node.intranode.bandwidth;
    if (node.nic_bandwidth) node.nic_bandwidth = network * *node.nic_bandwidth;
  }
  for (DeviceKind& device : p.device_kinds) {
    device.memory = {static_cast<std::int64_t>(memory * static_cast<double>(device.memory.value))};
  }
  return p;
}

TEST(LawSearch, MoreBandwidthOrMemoryNeverHurts) {
  const auto best = [](const Platform& platform) {
    const Question q(testing::llama_70b(), platform, 64, 4096, 64);
    SearchOptions options;
    options.top = 1;
    return q.best_first(options).plans.at(0).prediction.step_time;
  };
  const Seconds base = best(load_platform("dgx-a100-80g"));
  EXPECT_LE(best(faster("dgx-a100-80g", 2.0, 1.0)), base);
  EXPECT_LE(best(faster("dgx-a100-80g", 1.0, 1.5)), base);
  EXPECT_GE(best(faster("dgx-a100-80g", 0.25, 1.0)), base);
}

TEST(RepeatSearch, SameQuestionSameAnswer) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  const SearchResult a = question.best_first(), b = question.best_first();
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_EQ(a.plans[i].plan, b.plans[i].plan);
    EXPECT_EQ(a.plans[i].prediction.step_time, b.plans[i].prediction.step_time);
  }
}

TEST(FaultSearch, PinsThatLeaveNothingSayWhy) {
  const Question question(testing::llama_70b(), "dgx-h100", 7, 8192, 128);
  SearchOptions options;
  options.pins.tensor = 8;
  const SearchResult result = question.best_first(options);
  ASSERT_FALSE(result.empty_space.empty());
  EXPECT_EQ(result.empty_space[0], "tensor=8 does not divide 7 devices (valid: 1, 7)");
}

TEST(FaultSearch, PinsBeyondAnyMachineAreRefusedNotMultiplied) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  SearchOptions options;
  options.pins.tensor = options.pins.pipeline = 65536;  // their product wraps in 32 bits
  const SearchResult result = question.best_first(options);
  ASSERT_GE(result.empty_space.size(), 2U);
  EXPECT_EQ(result.empty_space[0],
            "tensor=65536 does not divide 64 devices (valid: 1, 2, 4, 8, 16, 32, 64)");
}

TEST(UnitSearch, APinOfStagesPerRankIsKept) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  SearchOptions options;
  options.pins.pipeline = 8;
  options.pins.stages_per_rank = 6;  // 48 stages, at most 2 of 80 layers each, as with 5
  const SearchResult result = question.best_first(options);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans[0].plan.stages_per_rank, 6);
}

TEST(FaultSearch, ABatchThatNoDataDegreeDivides) {
  const Question question(testing::llama_70b(), "dgx-h100", 64, 8192, 127);
  SearchOptions options;
  options.pins.tensor = 8;
  options.pins.pipeline = 1;
  options.pins.context = 1;
  const SearchResult result = question.best_first(options);
  ASSERT_EQ(result.empty_space.size(), 1U);
  EXPECT_EQ(result.empty_space[0],
            "a global batch of 127 is not divisible by data=8 (valid data degrees: 1, 127)");
}

TEST(FaultSearch, NothingFitsNamesTheNearestPlan) {
  const Question question(testing::llama_405b(), "dgx-h100", 8, 8192, 8);
  const SearchResult result = question.best_first();
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.nothing_fits.has_value());
  // 406e9 parameters at 18 bytes over 8 devices are 850 GiB each.
  EXPECT_GT(result.nothing_fits->needed, Bytes{850LL << 30});
  EXPECT_EQ(result.nothing_fits->available, question.problem().capacity);
}

// --- published plans ----------------------------------------------------------------------------

struct Sc21Row {
  int tensor, pipeline, microbatch, batch, layers, hidden, heads, devices;
};
// Narayanan et al., SC'21, Table 1: every row ran on 80 GB A100s.
constexpr Sc21Row kSc21[] = {
    {1, 1, 16, 512, 24, 2304, 24, 32},       {2, 1, 16, 512, 30, 3072, 32, 64},
    {4, 1, 16, 512, 36, 4096, 32, 128},      {8, 1, 8, 1024, 40, 6144, 48, 256},
    {8, 2, 4, 1536, 48, 8192, 64, 512},      {8, 4, 2, 1792, 60, 10240, 80, 1024},
    {8, 8, 2, 2304, 80, 12288, 96, 1536},    {8, 16, 1, 2160, 96, 16384, 128, 1920},
    {8, 35, 1, 2520, 105, 20480, 128, 2520}, {8, 64, 1, 3072, 128, 25600, 160, 3072}};

SearchOptions sc21_options() {
  SearchOptions options;
  options.framework = Framework::kMegatron2021;  // unfused attention, as in 2021
  options.pins.sharding_stage = 0;
  options.pins.recompute = RecomputeMode::kFull;
  options.pins.sequence_parallel = false;
  options.pins.context = 1;
  return options;
}

TEST(UnitPublishedPlans, EveryRowOfSc21TableOneFits) {
  for (const Sc21Row& row : kSc21) {
    const Question question(testing::gpt2_config(row.hidden, row.layers, row.heads, 51200, 2048),
                            "dgx-a100-80g", row.devices, 2048, row.batch, DType::kFp16);
    SearchOptions options = sc21_options();
    options.pins.tensor = row.tensor;
    options.pins.pipeline = row.pipeline;
    options.pins.microbatch = row.microbatch;
    options.pins.stages_per_rank = 1;
    options.memory_limit = 1.0;
    const SearchResult result = question.best_first(options);
    EXPECT_FALSE(result.plans.empty()) << row.hidden << " hidden on " << row.devices;
  }
}

/// The best step time of each tensor degree, fastest first.
std::vector<std::pair<Seconds, int>> best_by_tensor(const Question& question) {
  SearchOptions options = sc21_options();
  options.memory_limit = 1.0;
  options.top = 1;
  std::vector<std::pair<Seconds, int>> out;
  for (const int t : {1, 2, 4, 8}) {
    options.pins.tensor = t;
    const SearchResult result = question.best_first(options);
    if (!result.plans.empty()) out.emplace_back(result.plans[0].prediction.step_time, t);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(UnitPublishedPlans, TheTensorDegreeOfSc21IsAmongOurThreeBest) {
  // Known misses of the uncalibrated model: 18B on 256 and 39B on 512 devices ran with t = 8, which
  // comes last of the four here, within 25 % of the first. vTrain measured t = 8 fastest on the
  // former: tensor collectives without a calibration are taken too slow against small microbatches.
  const auto known_miss = [](const Sc21Row& row) {
    return row.hidden == 6144 || row.hidden == 8192;
  };
  constexpr double kKnownGap = 1.25;
  for (const Sc21Row& row : kSc21) {
    const Question question(testing::gpt2_config(row.hidden, row.layers, row.heads, 51200, 2048),
                            "dgx-a100-80g", row.devices, 2048, row.batch, DType::kFp16);
    const auto ranked = best_by_tensor(question);
    const auto chosen = std::find_if(ranked.begin(), ranked.end(),
                                     [&](const auto& p) { return p.second == row.tensor; });
    ASSERT_NE(chosen, ranked.end());
    if (known_miss(row)) {
      EXPECT_LT(chosen->first, kKnownGap * ranked[0].first) << row.hidden;
    } else {
      EXPECT_LT(chosen - ranked.begin(), 3) << row.hidden << " hidden on " << row.devices;
    }
  }
}

/// Llama-3 405B on 16,384 devices with sequences of 131,072 tokens: TP8 CP16 PP16.
Plan llama3_long(int data) {
  Plan plan;
  plan.tensor = 8;
  plan.context = 16;
  plan.pipeline = 16;
  plan.data = data;
  plan.schedule = ScheduleKind::kOneFOneB;
  plan.sequence_parallel = true;
  plan.sharding_stage = 1;
  return plan;
}

TEST(FaultPublishedPlans, TheMisprintedLlama3RowIsRefusedAndTheCorrectedOneTaken) {
  const Question question(testing::llama_405b(), "dgx-h100", 16384, 131072, 128);
  const auto check = [&](int data) {
    return check_plan(llama3_long(data), question.graph(), question.workload(),
                      question.problem().view);
  };
  const auto printed = check(4);  // as the paper prints it: 8 x 16 x 16 x 4 = 8,192
  ASSERT_EQ(printed.size(), 1U);
  EXPECT_EQ(printed[0].rule, "devices");
  EXPECT_NE(printed[0].problem.find("8,192"), std::string::npos) << printed[0].problem;
  EXPECT_TRUE(check(8).empty());
}

}  // namespace
}  // namespace towtank
