// SPDX-License-Identifier: Apache-2.0
#include "app/arguments.h"

#include <gtest/gtest.h>

#include "app/pins.h"
#include "tests/app/run_towtank.h"
#include "tests/support/expect_fault.h"

namespace towtank::app_testing {
namespace argument_cases {

Arguments parsed(const std::string& command, const std::string& line) {
  return parse_arguments(*find_command(command), words_of(line));
}

}  // namespace argument_cases

using argument_cases::parsed;

TEST(UnitArguments, ValuesFlagsAndPositionals) {
  const Arguments a = parsed("predict", "plan.json --json --no-sequence-parallel -o out.json");
  EXPECT_EQ(a.positionals, std::vector<std::string>{"plan.json"});
  EXPECT_TRUE(a.flags.at("--json"));
  EXPECT_FALSE(a.flags.at("--sequence-parallel"));
  EXPECT_EQ(a.values.at("--output"), "out.json");
  EXPECT_EQ(parsed("plan", "--top=3").values.at("--top"), "3");
}

TEST(UnitArguments, AValueEndsWhereTheNextWordStarts) {
  const Arguments a = parsed("predict", "--tensor 8 plan.json");
  EXPECT_EQ(a.values.at("--tensor"), "8");
  EXPECT_EQ(a.positionals, std::vector<std::string>{"plan.json"});
}

TEST(UnitArguments, HelpWinsOverEverythingElse) {
  EXPECT_TRUE(parsed("plan", "--nonsense --help").help);
  EXPECT_TRUE(parsed("plan", "-h").help);
}

TEST(FaultArguments, NegativeNumbersAreValues) {
  Faults faults;
  const Arguments a = parsed("plan", "--devices -5");
  const ArgumentReader reader(a, faults);
  EXPECT_EQ(reader.integer("--devices", 1, 10), std::nullopt);
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_EQ(to_text(faults.all()[0]), "--devices: -5 is out of range (it must lie in 1 to 10)");
}

TEST(FaultArguments, NumbersThatAreNone) {
  Faults faults;
  for (const char* text : {"", "x", "1x", "1.0", "1e3", "99999999999999999999", "+1", " 1"}) {
    EXPECT_EQ(whole_number(text, "--n", 0, 100, faults), std::nullopt) << text;
  }
  EXPECT_EQ(faults.all().size(), 8U);
  EXPECT_EQ(whole_number("0", "--n", 0, 100, faults), 0);
  EXPECT_EQ(whole_number("100", "--n", 0, 100, faults), 100);
}

TEST(UnitPins, LongAndShortNames) {
  Faults faults;
  const Pins pins = parse_pins(
      "tensor=8,pp=4,stages-per-rank=2,zero=0,sp=off,schedule=1f1b,recompute=full", faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_EQ(pins.tensor, 8);
  EXPECT_EQ(pins.pipeline, 4);
  EXPECT_EQ(pins.stages_per_rank, 2);
  EXPECT_EQ(pins.sharding_stage, 0);
  EXPECT_EQ(pins.sequence_parallel, false);
  EXPECT_EQ(pins.schedule, ScheduleKind::kOneFOneB);
  EXPECT_EQ(pins.recompute, RecomputeMode::kFull);
  EXPECT_EQ(pins.data, std::nullopt);
}

TEST(FaultPins, EachIsNamed) {
  Faults faults;
  static_cast<void>(parse_pins("tensor=8,tp=4,data=,=3,,sp=maybe", faults));
  std::vector<std::string> problems;
  for (const Fault& fault : faults.all()) problems.push_back(fault.where + ": " + fault.problem);
  EXPECT_EQ(problems, (std::vector<std::string>{
                          "--pin: tensor is given twice", "--pin: \"data=\" is not KEY=VALUE",
                          "--pin: \"=3\" is not KEY=VALUE", "--pin: \"\" is not KEY=VALUE",
                          "--pin: sequence_parallel: \"maybe\" is not known"}));
}

TEST(UnitPlanFlags, WhatIsNotStatedIsTakenAndTold) {
  Faults faults;
  const Arguments a = parsed("predict", "--tensor 8 --pipeline 4");
  std::vector<std::string> defaults;
  const Plan plan = plan_of_flags(ArgumentReader(a, faults), Framework::kMegatron, 64, defaults);
  EXPECT_EQ(plan.data, 64 / (8 * 4));
  EXPECT_EQ(plan.microbatch, 1);
  EXPECT_EQ(plan.schedule, ScheduleKind::kOneFOneB);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.sharding_stage, 1);
  EXPECT_EQ(defaults,
            (std::vector<std::string>{"microbatch 1", "data 2", "sharding stage 1",
                                      "sequence parallel", "recompute none", "schedule 1f1b"}));
}

TEST(UnitPlanFlags, InterleavedWithSeveralStagesARank) {
  Faults faults;
  const Arguments a = parsed("predict", "--pipeline 4 --stages-per-rank 2 --no-sequence-parallel");
  std::vector<std::string> defaults;
  const Plan plan = plan_of_flags(ArgumentReader(a, faults), Framework::kTorchtitan, 4, defaults);
  EXPECT_EQ(plan.schedule, ScheduleKind::kInterleaved);
  EXPECT_EQ(plan.recompute, default_recompute(Framework::kTorchtitan));
  EXPECT_EQ(plan.sharding_stage, 0);  // one replica: nothing to share
}

}  // namespace towtank::app_testing
