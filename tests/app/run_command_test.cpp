// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/app/run_towtank.h"
#include "validate/case_json.h"
#include "validate/run/launch.h"

namespace towtank {
namespace run_command_test {

using app_testing::Ran;
using app_testing::run;
using app_testing::ScratchFolder;
using app_testing::source_file;
using ::testing::HasSubstr;

#define SKIP_WITHOUT_RUNTIME() \
  if (find_runtime().empty()) GTEST_SKIP() << "towtank-runtime is not built: install libtorch-dev"

TEST(UnitRunCommand, MeasuresAndWritesACase) {
  SKIP_WITHOUT_RUNTIME();
  const ScratchFolder folder;
  const std::string case_file = folder.path() / "case.jsonl", trace = folder.path() / "trace.json";
  const Ran ran = run("run " + source_file("examples/plans/tiny-pipeline-2.json") +
                      " --steps 2 --warm-up 1 --json --case " + case_file + " --trace " + trace);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["ranks"].size(), 2U);
  EXPECT_EQ(json["losses"].size(), 2U);
  const std::vector<Case> cases = load_cases(case_file);
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].measured.step_time->value, json["step_time_s"].get<double>());
  EXPECT_EQ(cases[0].measured.peak_memory->value, json["peak_memory_bytes"].get<std::int64_t>());
  EXPECT_EQ(cases[0].body.plan.pipeline, 2);
  EXPECT_TRUE(nlohmann::json::parse(read_file(trace)).is_array());
}

TEST(UnitRunCommand, SaysWhereTheTimeWent) {
  SKIP_WITHOUT_RUNTIME();
  const Ran ran =
      run("run " + source_file("examples/plans/tiny-pipeline-2.json") + " --steps 1 --warm-up 0");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("measured step "));
  EXPECT_THAT(ran.out, HasSubstr("bubble"));
  EXPECT_THAT(ran.out, HasSubstr("peak memory"));
}

TEST(FaultRunCommand, PlansThatItCannotRun) {
  SKIP_WITHOUT_RUNTIME();
  EXPECT_EQ(run("run").code, 2);
  const Ran bf16 = run("run " + source_file("examples/plans/llama-3.1-70b-64xh100.json"));
  EXPECT_EQ(bf16.code, 2);
  EXPECT_THAT(bf16.err, HasSubstr("/workload/precision: is not fp32"));
  EXPECT_EQ(run("run " + source_file("examples/plans/tiny-pipeline-2.json") + " --port 0").code, 2);
}

}  // namespace run_command_test
}  // namespace towtank
