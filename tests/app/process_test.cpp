// SPDX-License-Identifier: Apache-2.0
// The executable itself: streams, exit codes, shells.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "tests/app/run_towtank.h"

#ifdef TOWTANK_EXE
namespace towtank::app_testing {
namespace processes {

/// Standard output of a shell command and its exit code.
Ran shell(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {127, "", "popen failed"};
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    ran.out.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

std::string exe(const std::string& arguments) {
  return "cd '" TOWTANK_SOURCE_DIR "' && '" TOWTANK_EXE "' " + arguments;
}

constexpr const char* kPlan =
    "plan --model examples/models/gpt2/config.json --platform dgx-h100 --devices 8 --sequence 1024 "
    "--global-batch 512 --top 1";

}  // namespace processes

using processes::exe;
using processes::kPlan;
using processes::shell;

TEST(UnitProcess, PrintsWhatTheLibraryPrints) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const Ran process = shell(exe(kPlan));
  EXPECT_EQ(process.code, kExitOk);
  EXPECT_EQ(process.out, run(kPlan).out);
}

TEST(UnitProcess, ExitCodesReachTheShell) {
  EXPECT_EQ(shell(exe("")).code, kExitOk);
  EXPECT_EQ(shell(exe("pln 2>/dev/null")).code, kExitBadInput);
  EXPECT_EQ(shell(exe(std::string(kPlan) + " --pin tensor=3 2>/dev/null")).code, kExitInfeasible);
}

TEST(UnitProcess, DiagnosticsStayOffStandardOutput) {
  EXPECT_EQ(shell(exe("pln 2>/dev/null")).out, "");
  EXPECT_NE(shell(exe("pln 2>&1 >/dev/null")).out, "");
}

TEST(FaultProcess, AFullDiskIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(shell(exe("version > /dev/full 2>/dev/null")).code, kExitInternal);
}

TEST(UnitProcess, ReadsAConfigFromStandardInput) {
  const Ran ran = shell(exe("model --model - --sequence 1024 < examples/models/gpt2/config.json"));
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_NE(ran.out.find("124,439,808 parameters"), std::string::npos) << ran.out;
}

TEST(UnitCompletion, BashCompletes) {
  const auto complete = [](const std::string& words, int at) {
    return shell("bash -c 'eval \"$(" TOWTANK_EXE " completion bash)\"; COMP_WORDS=(" + words +
                 "); COMP_CWORD=" + std::to_string(at) + "; _towtank; echo ${COMPREPLY[@]}'");
  };
  EXPECT_EQ(complete("towtank pl", 1).out, "plan platforms\n");
  EXPECT_EQ(complete("towtank plan --fram", 2).out, "--framework\n");
  EXPECT_EQ(complete("towtank plan --framework torch", 3).out, "torchtitan\n");
  EXPECT_EQ(complete("towtank platforms show dgx-h", 3).out, "dgx-h100 dgx-h200\n");
}

TEST(UnitCompletion, EveryShellsScriptParses) {
  EXPECT_EQ(shell(exe("completion bash") + " | bash -n").code, 0);
  for (const char* name : {"zsh", "fish"}) {
    if (shell("command -v " + std::string(name)).code != 0) continue;
    EXPECT_EQ(shell(exe("completion " + std::string(name)) + " | " + name + " -n").code, 0) << name;
  }
}

}  // namespace towtank::app_testing
#endif
