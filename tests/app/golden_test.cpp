// SPDX-License-Identifier: Apache-2.0
// What each command prints, whole. A change of a predicted number shows here; it is named in
// CHANGELOG.md under "Predictions changed".
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "app/command_spec.h"
#include "model/cost/cost_model.h"
#include "tests/app/run_towtank.h"
#include "tests/support/golden.h"
#include "validate/run/launch.h"

namespace towtank::app_testing {
namespace golden_commands {

constexpr const char* kLlama =
    " --model examples/models/llama-3.1-70b/config.json --platform dgx-h100 --devices 64"
    " --sequence 8192 --global-batch 128";
constexpr const char* kGpt2 =
    " --model examples/models/gpt2/config.json --platform dgx-h100 --devices 8 --sequence 1024"
    " --global-batch 512";

void expect_output(const std::string& name, const std::string& line, int code = kExitOk) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const Ran ran = run(line);
  EXPECT_EQ(ran.code, code) << ran.err;
  testing::expect_golden(name, ran.out + (ran.err.empty() ? "" : "--- stderr\n" + ran.err));
}

std::size_t widest_line(const std::string& text) {
  std::istringstream in(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(in, line);) widest = std::max(widest, line.size());
  return widest;
}

}  // namespace golden_commands

using namespace golden_commands;

TEST(GoldenCommands, Plan) {
  expect_output("plan-llama-3.1-70b.txt", "plan" + std::string(kLlama));
}

TEST(GoldenCommands, PlanExplained) {
  expect_output("plan-gpt2-explain.txt",
                "plan" + std::string(kGpt2) + " --top 2 --train-tokens 300e9 --explain");
}

TEST(GoldenCommands, PlanJson) {
  expect_output("plan-gpt2.json", "plan" + std::string(kGpt2) + " --top 1 --json");
}

TEST(GoldenCommands, PlanWithPriceAndExperts) {
  expect_output("plan-mixtral-p5.txt",
                "plan --model examples/models/mixtral-8x7b/config.json --platform aws-p5 --devices "
                "64 --sequence 4096 --global-batch 256 --top 3 --train-tokens 1e12 "
                "--expert-load 1.2");
}

TEST(GoldenCommands, PlanOfAGraphWithoutTokens) {
  expect_output("plan-resnet50.txt",
                "plan --model examples/graphs/resnet50.json --platform dgx-a100-80g --devices 16 "
                "--global-batch 2048 --top 3");
}

TEST(GoldenCommands, PlanNothingFits) {
  expect_output("plan-nothing-fits.txt",
                "plan --model examples/models/llama-3.1-70b/config.json --platform dgx-h100 "
                "--devices 8 --sequence 8192 --global-batch 128",
                kExitInfeasible);
}

TEST(GoldenCommands, Predict) {
  expect_output("predict-llama-3.1-70b.txt",
                "predict" + std::string(kLlama) + " --tensor 8 --pipeline 4");
}

TEST(GoldenCommands, PredictJson) {
  expect_output("predict-gpt2.json", "predict" + std::string(kGpt2) + " --microbatch 8 --json");
}

TEST(GoldenCommands, PredictDoesNotFit) {
  expect_output("predict-does-not-fit.txt",
                "predict" + std::string(kLlama) + " --tensor 8 --microbatch 4", kExitInfeasible);
}

TEST(GoldenCommands, Model) {
  expect_output("model-mixtral.txt",
                "model --model examples/models/mixtral-8x7b/config.json --sequence 4096");
}

TEST(GoldenCommands, ModelJson) {
  expect_output("model-gpt2.json",
                "model --model examples/models/gpt2/config.json --sequence 1024 --json");
}

TEST(GoldenCommands, ImportTraces) {
  const std::string traces = "import examples/traces/rank0.json examples/traces/rank1.json";
  expect_output("import-traces.txt", traces + " --platform dgx-h100");
  expect_output("import-traces.json", traces + " --json --device h100-sxm-80g --fabric nvlink4");
}

TEST(GoldenCommands, ReplayOfTraces) {
  expect_output("simulate-replay.txt",
                "simulate --replay examples/traces/rank0.json examples/traces/rank1.json "
                "--straggler rank=1,slowdown=0.8");
}

TEST(GoldenCommands, PlatformsShow) {
  expect_output("platforms-show-dgx-h100.txt", "platforms show dgx-h100");
}

TEST(GoldenCommands, Help) {
  expect_output("help.txt", "");
  for (const CommandSpec& spec : command_specs()) {
    const std::string name(spec.name);
    expect_output("help-" + name + ".txt", name + " --help");
  }
}

TEST(GoldenExamples, EveryExampleOfTheHelpRuns) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  for (const CommandSpec& spec : command_specs()) {
    EXPECT_FALSE(spec.examples.empty()) << spec.name;
    if (spec.name == "run" && find_runtime().empty()) continue;  // built without libtorch
    for (const ExampleSpec& example : spec.examples) {
      const Ran ran = run(std::string(example.arguments));
      EXPECT_EQ(ran.code, kExitOk) << example.arguments << "\n" << ran.err;
      EXPECT_FALSE(ran.out.empty()) << example.arguments;
    }
  }
}

TEST(GoldenExamples, NoLineIsWiderThanTheScreen) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  for (const CommandSpec& spec : command_specs()) {
    EXPECT_LE(widest_line(run(std::string(spec.name) + " --help").out), 100U) << spec.name;
    for (const ExampleSpec& example : spec.examples) {
      const std::string arguments(example.arguments);
      const bool data = arguments.find("--json") != std::string::npos ||
                        arguments.find("-xml") != std::string::npos || spec.name == "completion";
      if (data) continue;
      EXPECT_LE(widest_line(run(arguments).out), 100U) << arguments;
    }
  }
}

TEST(GoldenExamples, ThePlanFileIsWhatPlanWrites) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const ScratchFolder scratch;
  const std::string path = (scratch.path() / "plan.json").string();
  ASSERT_EQ(run("plan" + std::string(kLlama) + " -o " + path).code, kExitOk);
  testing::expect_same_as_file(source_file("examples/plans/llama-3.1-70b-64xh100.json"),
                               testing::content_of(path));
}

TEST(UnitCommands, ADashPrintsTheFileAlone) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const ScratchFolder scratch;
  const std::string path = (scratch.path() / "plan.json").string();
  ASSERT_EQ(run("plan" + std::string(kGpt2) + " -o " + path).code, kExitOk);
  EXPECT_EQ(run("plan" + std::string(kGpt2) + " -o -").out, testing::content_of(path));
}

/// README.md shows the first run between these two lines.
TEST(GoldenExamples, TheReadmeShowsWhatTheProgramPrints) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const std::string readme = testing::content_of("README.md");
  const std::string first = "<!-- what scripts/run prints -->\n```text\n";
  const std::size_t start = readme.find(first);
  ASSERT_NE(start, std::string::npos);
  const std::size_t end = readme.find("```", start + first.size());
  testing::expect_same_as_file(source_file("README.md"), readme.substr(0, start + first.size()) +
                                                             run("plan" + std::string(kLlama)).out +
                                                             readme.substr(end));
}

/// Keys of a result, but for those below `plan`, which are a plan file's.
void collect_keys(const nlohmann::json& value, std::set<std::string>& keys) {
  if (value.is_array()) {
    for (const auto& item : value) collect_keys(item, keys);
  }
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) {
    keys.insert(key);
    if (key != "plan") collect_keys(inner, keys);
  }
}

TEST(GoldenDocs, EveryKeyOfAResultIsDocumented) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const std::string page = testing::content_of("docs/formats.md");
  std::set<std::string> keys;
  for (const std::string& line :
       {"plan" + std::string(kLlama) + " --json --train-tokens 1e12",
        "predict" + std::string(kLlama) + " --tensor 8 --microbatch 4 --json",
        std::string("model --model examples/models/gpt2/config.json --sequence 1024 --json"),
        std::string("platforms --json"), std::string("doctor --json")}) {
    collect_keys(nlohmann::json::parse(run(line).out), keys);
  }
  // The names of op kinds, axes and bases are values that happen to be keys.
  for (const auto names : {std::span<const std::string_view>(kOpKindNames),
                           std::span<const std::string_view>(kBasisNames)}) {
    for (const std::string_view name : names) keys.erase(std::string(name));
  }
  for (const std::string& key : keys) {
    EXPECT_NE(page.find(key), std::string::npos) << key << " is not in docs/formats.md";
  }
}

TEST(RepeatCommands, SameBytesTwice) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const std::string line = "plan" + std::string(kLlama) + " --json";
  EXPECT_EQ(run(line).out, run(line).out);
}

TEST(DifferCommands, PredictOfAWrittenPlanIsThePlansOwnPrediction) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const ScratchFolder scratch;
  const std::string path = (scratch.path() / "plan.json").string();
  const Ran plans = run("plan" + std::string(kLlama) + " --top 1 --json -o " + path);
  const Ran one = run("predict --json " + path);
  ASSERT_EQ(plans.code, kExitOk);
  ASSERT_EQ(one.code, kExitOk) << one.err;
  const auto first = nlohmann::json::parse(plans.out)["plans"][0];
  const auto same = nlohmann::json::parse(one.out);
  EXPECT_EQ(first["prediction"], same["prediction"]);
  EXPECT_EQ(first["plan"], same["plan"]);
}

TEST(LawCommands, PartsOfTheJsonSumToTheStep) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const auto result = nlohmann::json::parse(run("plan" + std::string(kLlama) + " --json").out);
  for (const auto& item : result["plans"]) {
    const auto& step = item["prediction"]["step"];
    double sum = 0;
    for (const auto& part : step) {
      if (part.is_number()) sum += part.get<double>();
      if (part.is_object()) {
        for (const auto& inner : part) sum += inner.get<double>();
      }
    }
    const double whole = item["prediction"]["step_time_s"].get<double>();
    EXPECT_NEAR(sum, whole, 1e-9 * whole);
  }
}

TEST(UnitCommands, ColourOnlyOnATerminalWithoutNoColor) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const std::string line = "plan" + std::string(kGpt2);
  const char escape = '\033';
  EXPECT_EQ(run(line).out.find(escape), std::string::npos);
  EXPECT_NE(run(line, {.out_is_terminal = true}).out.find(escape), std::string::npos);
  const Terminal no_color{.out_is_terminal = true, .err_is_terminal = true, .no_color = true};
  EXPECT_EQ(run(line, no_color).out.find(escape), std::string::npos);
  EXPECT_NE(run("pln", {.err_is_terminal = true}).err.find(escape), std::string::npos);
  EXPECT_EQ(run("pln", no_color).err.find(escape), std::string::npos);
}

TEST(UnitCommands, DoctorAndVersion) {
  const Ran doctor = run("doctor");
  EXPECT_EQ(doctor.code, kExitOk) << doctor.err;
  for (const char* part : {"SimGrid", "libtorch", "CUPTI", "NCCL", "catalogue", "terminal"}) {
    EXPECT_NE(doctor.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(nlohmann::json::parse(run("doctor --json").out)["format"], "towtank-doctor");
  EXPECT_EQ(run("--version").out, run("version").out);
  const auto version = nlohmann::json::parse(run("version --json").out);
  EXPECT_TRUE(version["libraries"].contains("CLI11"));
}

TEST(UnitCommands, PlatformsJsonIsAFileThatCanBeUsed) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const ScratchFolder scratch;
  const auto path = scratch.path() / "mine.json";
  write_text(path, run("platforms show dgx-h100 --json").out);
  const std::string named = "plan" + std::string(kGpt2);
  std::string mine = named;
  mine.replace(mine.find("dgx-h100"), 8, path.string());
  // The last lines repeat the command, with the platform's name or path.
  const std::string out = run(named).out;
  const std::size_t same = out.find("\nLinks");
  ASSERT_NE(same, std::string::npos);
  EXPECT_EQ(run(mine).out.substr(0, same), out.substr(0, same));
  EXPECT_EQ(nlohmann::json::parse(run("platforms --json").out)["format"], "towtank-platforms");
}

TEST(UnitCommands, AModelWrittenAsAGraphIsPlannedAlike) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const ScratchFolder scratch;
  const std::string path = (scratch.path() / "gpt2.json").string();
  ASSERT_EQ(
      run("model --model examples/models/gpt2/config.json --sequence 1024 --graph " + path).code,
      kExitOk);
  std::string mine = "plan --json" + std::string(kGpt2);
  const auto hf = nlohmann::json::parse(run(mine).out);
  const std::string config = "examples/models/gpt2/config.json";
  mine.replace(mine.find(config), config.size(), path);
  const Ran ran = run(mine);
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto graph = nlohmann::json::parse(ran.out);
  EXPECT_EQ(graph["plans"][0]["plan"], hf["plans"][0]["plan"]);
  EXPECT_EQ(graph["plans"][0]["prediction"]["step_time_s"],
            hf["plans"][0]["prediction"]["step_time_s"]);
}

}  // namespace towtank::app_testing
