// SPDX-License-Identifier: Apache-2.0
// Bad input, each with its whole message in tests/golden/faults/. Nothing crashes, nothing is
// written, standard output stays empty.
#include <gtest/gtest.h>

#include <regex>

#include "tests/app/run_towtank.h"
#include "tests/support/golden.h"

namespace towtank::app_testing {
namespace faults {

std::string llama_config() {
  return testing::content_of(source_file("examples/models/llama-3.1-70b/config.json"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Runs in an empty folder, so that messages name files alone.
class FaultInput : public ::testing::Test {
 protected:
  /// Files first, then a command line; its message goes to faults/<name>.txt.
  void expect_message(const std::string& name, const std::string& line, int code) {
    const Ran ran = run(line + " -o out.json");
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(std::filesystem::exists("out.json"));
    for (const auto& entry : std::filesystem::directory_iterator(".")) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
    testing::expect_golden("faults/" + name + ".txt",
                           ran.err + "exit code " + std::to_string(ran.code) + "\n");
  }
  void expect_model_fault(const std::string& name, const std::string& config) {
    write_text("config.json", config);
    expect_message(name,
                   "plan --model config.json --platform dgx-h100 --devices 64 --sequence 8192 "
                   "--global-batch 128",
                   kExitBadInput);
  }
  void expect_platform_fault(const std::string& name, const std::string& from,
                             const std::string& to) {
    write_text("config.json", llama_config());
    write_text("machine.json", replaced(run("platforms show dgx-h100 --json").out, from, to));
    expect_message(name,
                   "plan --model config.json --platform machine.json --devices 64 --sequence 8192 "
                   "--global-batch 128",
                   kExitBadInput);
  }
  void expect_question_fault(const std::string& name, const std::string& options, int code) {
    write_text("config.json", llama_config());
    expect_message(name, "plan --model config.json --platform dgx-h100 " + options, code);
  }

 private:
  ScratchFolder scratch_;
  InFolder folder_{scratch_.path()};
};

}  // namespace faults

using faults::FaultInput;
using faults::llama_config;
using faults::replaced;

TEST_F(FaultInput, TruncatedConfig) {
  const std::string config = llama_config();
  expect_model_fault("truncated-config", config.substr(0, config.size() / 2));
}
TEST_F(FaultInput, MisspeltKey) {
  expect_model_fault("misspelt-key",
                     replaced(llama_config(), "num_hidden_layers", "num_hiden_layers"));
}
TEST_F(FaultInput, UnknownModelType) {
  expect_model_fault("unknown-model-type", replaced(llama_config(), "\"model_type\": \"llama\"",
                                                    "\"model_type\": \"lama\""));
}
TEST_F(FaultInput, WrongTypeAndRange) {
  std::string config =
      replaced(llama_config(), "\"hidden_size\": 8192", "\"hidden_size\": \"8192\"");
  config = replaced(config, "\"num_hidden_layers\": 80", "\"num_hidden_layers\": -80");
  expect_model_fault("wrong-type-and-range", config);
}
TEST_F(FaultInput, DirectoryInPlaceOfAFile) {
  std::filesystem::create_directory("folder");
  expect_message("directory",
                 "plan --model folder --platform dgx-h100 --devices 64 --sequence 8192 "
                 "--global-batch 128",
                 kExitBadInput);
}
TEST_F(FaultInput, NoSuchFile) {
  expect_message("no-such-file",
                 "plan --model nothing.json --platform none.json --devices 64 --sequence 8192 "
                 "--global-batch 128",
                 kExitBadInput);
}
TEST_F(FaultInput, ThreeGigabytesOfZeros) {
  write_text("config.json", "");
  std::filesystem::resize_file("config.json", 3'000'000'000U);  // sparse
  expect_message("zeros-3-gb",
                 "plan --model config.json --platform dgx-h100 --devices 64 --sequence 8192 "
                 "--global-batch 128",
                 kExitBadInput);
}
TEST_F(FaultInput, DeepNest) {
  expect_model_fault("deep-nest", std::string(100'000, '[') + std::string(100'000, ']'));
}
TEST_F(FaultInput, EmptyFile) { expect_model_fault("empty-file", ""); }
TEST_F(FaultInput, BinaryFile) {
  expect_model_fault("binary-file", std::string("\x7f"
                                                "ELF\x01\x02\0\0\xff\xfe",
                                                10));
}

TEST_F(FaultInput, PlatformWithAmbiguousUnit) {
  expect_platform_fault("platform-ambiguous-unit", "\"50 GB/s\"", "\"400 Gb/s\"");
}
TEST_F(FaultInput, PlatformWithNegativeMemory) {
  const std::string text = run("platforms show dgx-h100 --json").out;
  std::smatch memory;
  ASSERT_TRUE(std::regex_search(text, memory, std::regex("\"memory\": \"[^\"]*\"")));
  expect_platform_fault("platform-negative-memory", memory.str(), "\"memory\": \"-80 GiB\"");
}
TEST_F(FaultInput, PlatformWithoutUnit) {
  expect_platform_fault("platform-without-unit", "\"50 GB/s\"", "50");
}
TEST_F(FaultInput, UnknownPlatform) {
  write_text("config.json", llama_config());
  expect_message("unknown-platform",
                 "plan --model config.json --platform dgx-h101 --devices 64 --sequence 8192 "
                 "--global-batch 128",
                 kExitBadInput);
}

TEST_F(FaultInput, SevenDevicesForTensorEight) {
  expect_question_fault("seven-devices",
                        "--devices 7 --sequence 8192 --global-batch 128 --pin tensor=8",
                        kExitInfeasible);
}
TEST_F(FaultInput, BatchThatNoDataDegreeDivides) {
  expect_question_fault("batch-undivided",
                        "--devices 64 --sequence 8192 --global-batch 127 --pin "
                        "tensor=8,pipeline=1,context=1",
                        kExitInfeasible);
}
TEST_F(FaultInput, TooManyDevices) {
  write_text("config.json", llama_config());
  expect_message("too-many-devices",
                 "plan --model config.json --platform longhorn --devices 100000 --sequence 8192 "
                 "--global-batch 128",
                 kExitInfeasible);
}
TEST_F(FaultInput, MissingOptions) { expect_question_fault("missing-options", "", kExitBadInput); }
TEST_F(FaultInput, MissingSequence) {
  expect_question_fault("missing-sequence", "--devices 64 --global-batch 128", kExitBadInput);
}
TEST_F(FaultInput, SequenceOfAModelThatHasNone) {
  write_text("net.json", testing::content_of(source_file("examples/graphs/resnet50.json")));
  expect_message("sequence-of-a-graph",
                 "plan --model net.json --platform dgx-h100 --devices 8 --sequence 77 "
                 "--global-batch 128",
                 kExitBadInput);
}
TEST_F(FaultInput, BadValues) {
  expect_question_fault("bad-values",
                        "--devices 0 --global-batch 1.5 --sequence 8,192 --framework megatorn "
                        "--precision bf61 --pin tensr=8,foo,data=x,data=2 --top 99999999999999 "
                        "--memory-limit 2 --train-tokens many",
                        kExitBadInput);
}
TEST_F(FaultInput, UnknownOption) {
  expect_question_fault("unknown-option", "--devices 64 --globl-batch 128 --foo=1", kExitBadInput);
}
TEST_F(FaultInput, MissingValue) {
  expect_message("missing-value", "plan --model --platform dgx-h100", kExitBadInput);
}
TEST_F(FaultInput, GivenTwice) {
  expect_message("given-twice", "plan --top 3 --top 4 --json --json", kExitBadInput);
}
TEST_F(FaultInput, SuperfluousWord) {
  expect_message("superfluous-word", "plan config.json", kExitBadInput);
}
TEST_F(FaultInput, PlanThatBreaksRules) {
  write_text("config.json", llama_config());
  expect_message("plan-breaks-rules",
                 "predict --model config.json --platform dgx-h100 --devices 64 --sequence 8192 "
                 "--global-batch 128 --tensor 7 --pipeline 5 --schedule gpipe --microbatch 3 "
                 "--expert 2",
                 kExitInfeasible);
}
TEST_F(FaultInput, PlanFileWithFaults) {
  std::string plan = testing::content_of(source_file("examples/plans/llama-3.1-70b-64xh100.json"));
  plan = replaced(plan, "\"global_batch\"", "\"globl_batch\"");
  plan = replaced(plan, "\"tensor\": ", "\"tensr\": ");
  plan = replaced(plan, "\"hidden_size\": 8192", "\"hidden_sise\": 8192");
  write_text("plan.json", plan);
  expect_message("plan-file", "predict plan.json", kExitBadInput);
}
TEST_F(FaultInput, PlanFileBesideOptions) {
  expect_message("plan-file-and-options", "predict plan.json --tensor 8 --devices 4",
                 kExitBadInput);
}

TEST_F(FaultInput, OutputThatCannotBeWritten) {
  write_text("config.json", llama_config());
  const Ran ran = run(
      "plan --model config.json --platform dgx-h100 --devices 64 --sequence 8192 --global-batch "
      "128 -o missing/plan.json");
  EXPECT_EQ(ran.code, kExitBadInput);
  EXPECT_EQ(ran.out, "");  // the result is not shown as if all were well
  testing::expect_golden("faults/output-folder.txt", ran.err + "exit code 2\n");
}

TEST(FaultCommand, Unknown) {
  const auto message = [](const std::string& line) {
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, kExitBadInput) << line;
    EXPECT_EQ(ran.out, "") << line;
    return ran.err;
  };
  EXPECT_EQ(message("pln"), "towtank: \"pln\" is not a command. Did you mean plan?\n");
  EXPECT_EQ(message("xyz"),
            "towtank: \"xyz\" is not a command. towtank alone lists the commands.\n");
  EXPECT_EQ(message("--json plan"),
            "towtank: --json: stands before a command. Options stand behind a command: towtank "
            "COMMAND --help lists them.\n");
  EXPECT_EQ(message("completion powershell"),
            "towtank: shell: \"powershell\" is not known (it must be one of bash, zsh, fish)\n");
  EXPECT_EQ(message("platforms show"),
            "towtank: towtank platforms show: needs a name. towtank platforms lists the "
            "machines.\n");
}

}  // namespace towtank::app_testing
