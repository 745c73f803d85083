// SPDX-License-Identifier: Apache-2.0
#include "validate/fit_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/validate/small_case.h"
#include "validate/fit_memory.h"

namespace towtank::fit_runtime_test {

using validate_testing::case_of;
using validate_testing::small_case;

// Means and widths of the priors (fit_runtime.cpp): what no case tells stays there.
constexpr double kPriorHost = 15e-6, kPriorMicrobatch = 1e-3, kPriorStep = 10e-3;
// A group of cases against the prior of a factor: precisions 1 and (0.15 / 0.25)^2.
constexpr double kFactorPrior = 0.15 * 0.15 / (0.25 * 0.25);

RuntimeCosts at_prior() {
  RuntimeCosts c;
  c.host_per_kernel = {kPriorHost};
  c.per_microbatch = {kPriorMicrobatch};
  c.per_step = {kPriorStep};
  return c;
}

/// Rooflines with given costs of every framework.
class KnownCosts final : public CostModel {
 public:
  KnownCosts(std::unique_ptr<CostModel> inner, RuntimeCosts costs)
      : inner_(std::move(inner)), costs_(std::move(costs)) {}
  [[nodiscard]] OpCost op(const OpSignature& s) const override { return inner_->op(s); }
  [[nodiscard]] CollectiveCost collective(const CollectiveCall& c) const override {
    return inner_->collective(c);
  }
  [[nodiscard]] RuntimeCosts runtime(Framework) const override { return costs_; }
  [[nodiscard]] std::string description() const override { return "known costs"; }

 private:
  std::unique_ptr<CostModel> inner_;
  RuntimeCosts costs_;
};
CostModelMaker known(const RuntimeCosts& costs) {
  return [costs](const Platform& platform, const DeviceKind& device, const NetworkView& view) {
    return std::make_unique<KnownCosts>(analytic_costs()(platform, device, view), costs);
  };
}

struct Shape {
  int width = 256, layers = 8;
};
/// Wide models are bound by the device, narrow ones by the host.
Json case_json(const std::string& id, const Shape& shape, int microbatch,
               const std::string& framework) {
  Json json = small_case();
  json["id"] = id;
  json["workload"]["model"]["n_embd"] = shape.width;
  json["workload"]["model"]["n_layer"] = shape.layers;
  json["measured"]["peak_memory_bytes"] = nullptr;
  json["workload"]["global_batch"] = 16 * microbatch;
  json["plan"]["microbatch"] = microbatch;
  json["plan"]["framework"] = framework;
  return json;
}

/// Each shape is a fold, with two cases. Their times are those that `costs` predict.
std::vector<Case> cases_of(const std::vector<Shape>& shapes, const RuntimeCosts& costs,
                           const std::string& framework = "megatron",
                           const std::string& set = "mine") {
  CasePredictor predictor(known(costs));
  std::vector<Case> out;
  for (const Shape& shape : shapes) {
    for (const int microbatch : {4, 8}) {
      Json json =
          case_json(set + "-" + std::to_string(1001 + out.size()), shape, microbatch, framework);
      json["measured"]["step_time_s"] = predictor.predict(case_of(json)).step_time.value;
      out.push_back(case_of(json));
    }
  }
  return out;
}
const std::vector<Shape> kWide{{6144}, {7168}, {8192}, {9216}, {10240}, {12288}};
// Depths that differ tell a launch from what a microbatch and a step cost beside.
const std::vector<Shape> kNarrow{{256, 4}, {256, 8}, {256, 16}, {256, 32}, {256, 48}, {256, 64}};
std::vector<Shape> both() {
  std::vector<Shape> out = kWide;
  out.insert(out.end(), kNarrow.begin(), kNarrow.end());
  return out;
}

const FittedConstant& constant(const RuntimeFit& fit, const std::string& name) {
  const auto at = std::find_if(fit.constants.begin(), fit.constants.end(),
                               [&](const FittedConstant& c) { return c.name == name; });
  EXPECT_NE(at, fit.constants.end()) << name;
  return *at;
}
double worst_error(const RuntimeFit& fit) {
  double worst = 0.0;
  for (const FoldError& e : fit.errors) worst = std::max(worst, std::abs(e.log_ratio));
  return worst;
}

// --- what cases tell ---

// Six folds tell each: the prior of the factor pulls by 0.36 / 6.36 of log 1.2, 1 %; that of the
// host's time, far wider, by less.
TEST(UnitFitRuntime, KnownConstantsAreFoundAndSaidToBeIdentified) {
  RuntimeCosts truth = at_prior();
  truth.compute_factor = 1.2;
  truth.host_per_kernel = {40e-6};
  const std::vector<RuntimeFit> fits = fit_runtime(cases_of(both(), truth), analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  const RuntimeFit& fit = fits[0];
  EXPECT_NEAR(constant(fit, "compute_factor").value / 1.2, 1.0, 0.02);
  EXPECT_NEAR(constant(fit, "host_per_kernel").value / 40e-6, 1.0, 0.02);
  EXPECT_TRUE(constant(fit, "compute_factor").identified);
  EXPECT_TRUE(constant(fit, "host_per_kernel").identified);
  EXPECT_EQ(fit.record.framework, Framework::kMegatron);
  EXPECT_EQ(fit.record.generation, "ampere");
  EXPECT_EQ(fit.record.device_kind, "");
  EXPECT_EQ(fit.record.costs.compute_factor, constant(fit, "compute_factor").value);
  EXPECT_EQ(fit.record.costs.host_per_kernel.value, constant(fit, "host_per_kernel").value);
  EXPECT_EQ(fit.record.rows, 24);
  EXPECT_EQ(fit.record.folds, 12);
  EXPECT_EQ(fit.record.sets, std::vector<std::string>{"mine"});
  EXPECT_LT(worst_error(fit), 0.03);
  EXPECT_EQ(fit.errors.size(), 24U);
}

// Wide models tell nothing of the host: every layer takes longer than its launches.
TEST(UnitFitRuntime, AConstantThatNoCaseTellsStaysAtItsPrior) {
  RuntimeCosts truth = at_prior();
  truth.compute_factor = 1.2;
  const std::vector<RuntimeFit> fits = fit_runtime(cases_of(kWide, truth), analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_TRUE(constant(fits[0], "compute_factor").identified);
  const FittedConstant& host = constant(fits[0], "host_per_kernel");
  EXPECT_FALSE(host.identified);
  EXPECT_NEAR(host.value / kPriorHost, 1.0, 0.01);
  EXPECT_NEAR(host.log_error, 1.0, 0.01);  // the prior's own width
  EXPECT_FALSE(constant(fits[0], "per_step").identified);
  const auto& identified = fits[0].record.identified;
  EXPECT_EQ(std::count(identified.begin(), identified.end(), "compute_factor"), 1);
  EXPECT_EQ(std::count(identified.begin(), identified.end(), "host_per_kernel"), 0);
}

// --- out of fold ---

std::map<std::string, double> error_by_fold(const RuntimeFit& fit) {
  std::map<std::string, double> out;
  for (const FoldError& e : fit.errors) out[e.fold] = e.log_ratio;
  return out;
}

// Times of the second fold are 1.5 times those of the first, which lie at the prior. The fit to the
// first alone is the prior, so the second shows the whole factor; the fit to the second alone is
// drawn back by the prior and misses the first by the rest. A fit to both would show 0.17 and 0.23.
TEST(UnitFitRuntime, EachFoldIsPredictedByAFitThatNeverSawIt) {
  std::vector<Case> cases = cases_of({{8192}, {12288}}, at_prior());
  const double factor = std::log(1.5);
  for (std::size_t i = 2; i < 4; ++i) cases[i].measured.step_time->value *= 1.5;
  const std::vector<RuntimeFit> fits = fit_runtime(cases, analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  const auto errors = error_by_fold(fits[0]);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_NEAR(errors.at(fold_of(cases[2])), factor, 0.01);
  EXPECT_NEAR(errors.at(fold_of(cases[0])), -factor / (1.0 + kFactorPrior), 0.05);
}

// Of five folds one is off: it shows that, and pulls the others' fits by no more than Huber's loss
// lets it, 0.15 of its weight against three good folds and the prior.
TEST(UnitFitRuntime, AFoldThatIsOffShowsItAndTheOthersHold) {
  std::vector<Case> cases = cases_of({{6144}, {7168}, {8192}, {10240}, {12288}}, at_prior());
  for (std::size_t i = 4; i < 6; ++i) cases[i].measured.step_time->value *= 1.5;
  const std::vector<RuntimeFit> fits = fit_runtime(cases, analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  for (const auto& [fold, error] : error_by_fold(fits[0])) {
    const bool off = fold == fold_of(cases[4]);
    EXPECT_NEAR(error, off ? std::log(1.5) : 0.0, off ? 0.01 : 0.15 / (3.0 + kFactorPrior) + 0.01)
        << fold;
  }
  const RuntimeCosts& c = fits[0].record.costs;
  EXPECT_LE(c.low90, c.low50);
  EXPECT_LE(c.low50, c.high50);
  EXPECT_LE(c.high50, c.high90);
  // One fold of five is beyond 80 %: the interval of nine tenths reaches it, and sqrt(1 + 1/5)
  // more.
  EXPECT_GT(c.high90, 1.5);
}

TEST(UnitFitRuntime, FoldsAreSetModelAndLength) {
  Json json = small_case();
  const std::string fold = fold_of(case_of(json));
  json["id"] = "mine-0002";
  json["plan"]["microbatch"] = 2;
  EXPECT_EQ(fold_of(case_of(json)), fold);
  Json longer = json, wider = json, other = json;
  longer["workload"]["sequence_length"] = 64;
  wider["workload"]["model"]["n_embd"] = 512;
  other["id"] = "theirs-0002";
  for (const Json& changed : {longer, wider, other}) EXPECT_NE(fold_of(case_of(changed)), fold);
}

// --- which cases ---

TEST(UnitFitRuntime, CasesWithoutATimeAndOnSeveralKindsAreLeftOut) {
  Json untimed = small_case();
  untimed["measured"]["step_time_s"] = nullptr;
  Json mixed = small_case();
  mixed["id"] = "mine-0002";
  mixed["platform"] = "mit-rtx";
  mixed["devices"] = 4;
  mixed["plan"]["data"] = 1;
  mixed["notes"] = R"(stages=[{"layers":3,"replicas":[["RTX-3090",2]]},)"
                   R"({"layers":5,"replicas":[["Titan-RTX",2]]}])";
  ASSERT_EQ(case_of(mixed).tokens.stages.size(), 2U);
  EXPECT_TRUE(fit_runtime(std::vector{case_of(untimed), case_of(mixed)}, analytic_costs()).empty());
}

TEST(UnitFitRuntime, OneFitForEachFrameworkAndGeneration) {
  std::vector<Case> cases = cases_of({{256}}, at_prior(), "nemo");
  Json hopper = case_json("mine-0009", {}, 4, "nemo");
  hopper["platform"] = "dgx-h100";
  Json megatron = case_json("mine-0010", {}, 4, "megatron");
  for (const Json& json : {hopper, megatron}) cases.push_back(case_of(json));
  const std::vector<RuntimeFit> fits = fit_runtime(cases, analytic_costs());
  ASSERT_EQ(fits.size(), 3U);
  EXPECT_EQ(fits[0].record.framework, Framework::kMegatron);
  EXPECT_EQ(fits[1].record.framework, Framework::kNemo);
  EXPECT_EQ(fits[1].record.generation, "ampere");
  EXPECT_EQ(fits[1].record.rows, 2);
  EXPECT_EQ(fits[2].record.generation, "hopper");
}

TEST(FaultFitRuntime, EachCaseThatMustStayUnseenIsRefused) {
  std::vector<Case> cases;
  std::string told;
  for (const char* id : {"verdict-0001", "mlperf-gpt3-0001", "mlperf-405b-0001", "mlperf-new-0001",
                         "megatron-sc21-0001", "korthikanti-0001"}) {
    Json json = small_case();
    json["id"] = id;
    cases.push_back(case_of(json));
    EXPECT_TRUE(never_fitted(cases.back())) << id;
    told += std::string(told.empty() ? "" : "\n") + "cases.jsonl:7: case " + id +
            " must stay unseen (its set is kept for validation). Leave its set out of the fit.";
  }
  cases.push_back(case_of(small_case()));
  EXPECT_FALSE(never_fitted(cases.back()));
  EXPECT_FAULT(fit_runtime(cases, analytic_costs()), told);
  EXPECT_FAULT(fit_memory(cases, analytic_costs()), told);
  EXPECT_FAULT(fit_calibration(cases, analytic_costs()), told);
}

// --- a kindred prior ---

// Narrow models of Megatron-LM of 2021 tell its launches; wide ones of Megatron-DeepSpeed, which
// runs its code, tell none and take them.
TEST(UnitFitRuntime, MegatronDeepSpeedLaunchesAsMegatronOf2021Does) {
  RuntimeCosts truth = at_prior();
  truth.host_per_kernel = {40e-6};
  const std::vector<Case> deepspeed =
      cases_of({{8192}, {10240}, {12288}}, truth, "megatron-deepspeed", "theirs");
  const auto alone = fit_runtime(deepspeed, analytic_costs());
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].record.framework, Framework::kMegatronDeepSpeed);
  EXPECT_NEAR(constant(alone[0], "host_per_kernel").value / kPriorHost, 1.0, 0.01);
  std::vector<Case> all = cases_of(kNarrow, truth, "megatron-2021");
  all.insert(all.end(), deepspeed.begin(), deepspeed.end());
  const auto fits = fit_runtime(all, analytic_costs());
  ASSERT_EQ(fits.size(), 2U);
  const FittedConstant& told = constant(fits[0], "host_per_kernel");
  EXPECT_EQ(fits[0].record.framework, Framework::kMegatron2021);
  EXPECT_TRUE(told.identified);
  EXPECT_NEAR(told.value / 40e-6, 1.0, 0.02);
  const FittedConstant& taken = constant(fits[1], "host_per_kernel");
  EXPECT_FALSE(taken.identified);
  EXPECT_NEAR(taken.value / told.value, 1.0, 0.01);
}

// --- memory ---

/// Peaks as nvidia-smi shows them: 1.2 times what is allocated and 2 GiB.
std::vector<Case> cases_with_memory(const std::string& set) {
  CasePredictor predictor(analytic_costs());
  std::vector<Case> out;
  for (const int width : {2048, 3072, 4096, 5120, 6144, 7168, 8192}) {
    const std::string id = set + "-" + std::to_string(1001 + out.size());
    Json json = case_json(id, {width, 8}, 4, "megatron");
    const auto allocated =
        static_cast<double>(predictor.predict(case_of(json)).whole.peak_memory().allocated().value);
    json["measured"]["peak_memory_bytes"] =
        static_cast<std::int64_t>(1.2 * allocated + 2.0 * 1024 * 1024 * 1024);
    out.push_back(case_of(json));
  }
  return out;
}

TEST(UnitFitMemory, WhatTheAllocatorAndTheProcessTakeAreFound) {
  const std::vector<MemoryFit> fits = fit_memory(cases_with_memory("mine"), analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_EQ(fits[0].framework, Framework::kMegatron);
  EXPECT_EQ(fits[0].generation, "ampere");
  EXPECT_EQ(fits[0].rows, 7);
  EXPECT_NEAR(fits[0].reserved_factor, 1.2, 0.02);
  ASSERT_TRUE(fits[0].context.has_value());
  EXPECT_NEAR(static_cast<double>(fits[0].context->value) / (2.0 * 1024 * 1024 * 1024), 1.0, 0.05);
  for (const FoldError& e : fits[0].errors) EXPECT_NEAR(e.log_ratio, 0.0, 0.02) << e.case_id;
}

// One peak is twice as large: its own error shows it, and what the others are predicted with holds.
TEST(UnitFitMemory, EachFoldIsPredictedByAFitThatNeverSawIt) {
  std::vector<Case> cases = cases_with_memory("mine");
  cases[3].measured.peak_memory->value *= 2;
  const std::vector<MemoryFit> fits = fit_memory(cases, analytic_costs());
  ASSERT_EQ(fits.size(), 1U);
  for (const FoldError& e : fits[0].errors) {
    const bool off = e.case_id == cases[3].id;
    EXPECT_NEAR(e.log_ratio, off ? std::log(2.0) : 0.0, off ? 0.02 : 0.05) << e.case_id;
  }
}

// Sailor's peaks count tensors alone.
TEST(UnitFitMemory, PeaksOfTensorsTellNeither) {
  EXPECT_TRUE(fit_memory(cases_with_memory("sailor"), analytic_costs()).empty());
}

// --- a calibration of both ---

TEST(UnitFitCalibration, KeepsWhatCanBeCheckedAndTells) {
  RuntimeCosts truth = at_prior();
  truth.compute_factor = 1.2;
  std::vector<Case> cases = cases_of(kWide, truth);
  for (const Case& c : cases_with_memory("memory")) {
    cases.push_back(c);
    cases.back().measured.step_time.reset();
  }
  // One fold of another framework cannot be checked on a second.
  for (const Case& c : cases_of({{12288}}, truth, "nemo", "alone")) cases.push_back(c);
  const RuntimeCalibration c = fit_calibration(cases, analytic_costs());
  ASSERT_EQ(c.records.size(), 1U);
  EXPECT_EQ(c.records[0].framework, Framework::kMegatron);
  EXPECT_NEAR(c.records[0].costs.compute_factor / 1.2, 1.0, 0.02);
  ASSERT_TRUE(c.records[0].costs.reserved_factor.has_value());
  EXPECT_NEAR(*c.records[0].costs.reserved_factor, 1.2, 0.02);
  EXPECT_TRUE(c.records[0].costs.context_bytes.has_value());
}

TEST(RepeatFitRuntime, SameBytesTwice) {
  RuntimeCosts truth = at_prior();
  truth.compute_factor = 1.2;
  const std::vector<Case> cases = cases_of({{128}, {8192}}, truth);
  const auto text = [&] { return to_text(to_json(fit_calibration(cases, analytic_costs()))); };
  EXPECT_EQ(text(), text());
}

}  // namespace towtank::fit_runtime_test
