// SPDX-License-Identifier: Apache-2.0
// Searches whose best plans are simulated, and what is said before and after.
#include "app/confirm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/simulate.h"
#include "tests/app/run_towtank.h"

namespace towtank::app_testing {
namespace confirming {

const std::string kQuestion =
    "plan --model examples/models/llama-3-8b/config.json --sequence 8192 --global-batch 64 "
    "--platform perlmutter --devices 64";

#define CONFIRM_NEEDS_WORKER() \
  if (find_worker().empty()) GTEST_SKIP() << "towtank-sim is not built: install libsimgrid-dev"

/// Sets TOWTANK_SIM for as long as it lives.
class WorkerAt {
 public:
  explicit WorkerAt(const char* path) { ::setenv("TOWTANK_SIM", path, 1); }
  WorkerAt(const WorkerAt&) = delete;
  WorkerAt& operator=(const WorkerAt&) = delete;
  ~WorkerAt() { ::unsetenv("TOWTANK_SIM"); }
};

}  // namespace confirming

using namespace confirming;

TEST(UnitConfirm, JsonTellsSimulatedAgainstPredicted) {
  CONFIRM_NEEDS_WORKER();
  const InFolder root(TOWTANK_SOURCE_DIR);
  const Ran ran = run(kQuestion + " --top 6 --confirm 4 --json");
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto result = nlohmann::json::parse(ran.out);
  EXPECT_EQ(result["plans"].size(), 6U);
  const auto& confirmation = result["confirmation"];
  ASSERT_EQ(confirmation["simulated"].size(), 4U);
  EXPECT_TRUE(confirmation["failed"].empty());
  double last = 0;
  for (const auto& item : confirmation["simulated"]) {
    const double simulated = item["simulated_step_time_s"];
    const std::size_t rank = item["rank"];
    const double closed = result["plans"][rank - 1]["prediction"]["step_time_s"];
    EXPECT_GE(simulated, closed * (1 - 1e-9));
    EXPECT_NEAR(item["contention_s"], simulated - closed, 1e-12 * closed);
    EXPECT_GE(simulated, last);
    last = simulated;
  }
  EXPECT_EQ(confirmation["next_bound_s"], result["plans"][4]["prediction"]["step_time_s"]);
  EXPECT_TRUE(nlohmann::json::parse(run(kQuestion + " --json").out)["confirmation"].is_null());
}

TEST(UnitConfirm, WithoutItTheReportSaysHowManyAndHow) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const auto near = nlohmann::json::parse(run(kQuestion + " --json").out)["near_plans"];
  EXPECT_EQ(near["within"], kDisagreement);
  std::string text = run(kQuestion).out;
  std::string flat;
  for (const char c : text) {
    if (c == '\\') continue;
    if (c == '\n' || (c == ' ' && flat.ends_with(' '))) {
      if (!flat.ends_with(' ')) flat += ' ';
    } else {
      flat += c;
    }
  }
  if (near["count"] == 1) {
    EXPECT_NE(flat.find("no other plan lies within 3 % of the first"), std::string::npos) << flat;
    return;
  }
  const std::string command =
      "towtank plan --model examples/models/llama-3-8b/config.json "
      "--sequence 8192 --global-batch 64 --platform perlmutter --devices "
      "64 --confirm " +
      std::to_string(near["count"].get<int>());
  EXPECT_NE(flat.find(command), std::string::npos) << flat;
}

/// Nine of ten plans are lengthened by no more than kDisagreement.
TEST(ValidateConfirm, SharingOfLinksLengthensStepsByNoMoreThanIsSaid) {
  CONFIRM_NEEDS_WORKER();
  const InFolder root(TOWTANK_SOURCE_DIR);
  int plans = 0, within = 0;
  for (const char* machine : {"dgx-h100", "aws-p4d", "perlmutter", "frontier"}) {
    for (const char* model : {"llama-3-8b", "llama-3.1-70b", "mixtral-8x7b", "bloom-176b"}) {
      const Ran ran = run(std::string("plan --model examples/models/") + model +
                          "/config.json --sequence 2048 --global-batch 512 --devices 256 "
                          "--confirm 10 --json --platform " +
                          machine);
      if (ran.code != kExitOk) continue;
      const auto result = nlohmann::json::parse(ran.out);
      for (const auto& item : result["confirmation"]["simulated"]) {
        const double simulated = item["simulated_step_time_s"];
        const double contention = item["contention_s"];
        ++plans;
        within += contention <= kDisagreement * (simulated - contention) ? 1 : 0;
      }
    }
  }
  EXPECT_GE(plans, 100);
  EXPECT_GE(within, 0.9 * plans) << within << " of " << plans;
}

TEST(FaultConfirm, WithoutAWorkerThereIsOneSentence) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const WorkerAt nowhere("/nowhere/towtank-sim");
  const std::string sentence =
      "towtank: towtank-sim, the program that simulates, is not here: install libsimgrid-dev and "
      "build again, or set TOWTANK_SIM to its path.\n";
  const Ran plan = run(kQuestion + " --confirm 20");
  EXPECT_EQ(plan.code, kExitInternal);
  EXPECT_EQ(plan.err, sentence);
  EXPECT_EQ(plan.out, "");
  const Ran simulate =
      run("simulate --model examples/models/gpt2/config.json --sequence 1024 "
          "--global-batch 64 --platform dgx-h100 --devices 8");
  EXPECT_EQ(simulate.code, kExitInternal);
  EXPECT_EQ(simulate.err, sentence);
  EXPECT_EQ(simulate.out, "");
}

TEST(FaultSimulateOptions, EveryFaultOfBackgroundAndSeedIsTold) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  std::vector<std::string> words = words_of(
      "simulate --model examples/models/gpt2/config.json --sequence 1024 --global-batch 64 "
      "--platform dgx-h100 --devices 16");
  const auto said = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    const Ran ran = run_words(more);
    EXPECT_EQ(ran.code, kExitBadInput) << ran.out;
    return ran.err;
  };
  EXPECT_EQ(said({"--background", "node=lots; rail 1=10 GB/s,bursts=3"}),
            "towtank: --background: \"node=lots\" is no traffic on links. Write leaf=40%, or node "
            "3=10 GB/s, or node 3 up=40%,burst=64 MiB; several behind semicolons.\n"
            "towtank: --background: \"rail 1=10 GB/s,bursts=3\" is no traffic on links. Write "
            "leaf=40%, or node 3=10 GB/s, or node 3 up=40%,burst=64 MiB; several behind "
            "semicolons.\n");
  EXPECT_EQ(said({"--background", "leaf=40%"}),
            "towtank: --background: \"leaf\": no link is named so here. There are \"device\" "
            "(device 0 to device 15), \"node\" (node 0 rail 0 to node 1 rail 7)\n");
  EXPECT_EQ(said({"--seed", "3"}),
            "towtank: --seed: nothing here is random. It is for bursts of --background, as "
            "node=40%,burst=64MiB.\n");
  EXPECT_EQ(said({"--background", "node=40%", "--contention", "off"}),
            "towtank: --background: shares no link where --contention is off. Leave one out.\n");
  EXPECT_EQ(said({"--step", "3"}), "towtank: --step: is for --replay (no trace is read)\n");
}

// A burst is a flow of its own: bytes would be millions of them.
TEST(FaultSimulateOptions, BurstsWithoutNumberAreRefusedWithASizeThatPasses) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const std::string asked =
      "simulate --model examples/models/gpt2/config.json --sequence 1024 --global-batch 64 "
      "--platform dgx-h100 --devices 16 --background node=30%,burst=";
  const Ran ran = run_words(words_of(asked + "1B"));
  EXPECT_EQ(ran.code, kExitBadInput) << ran.out;
  const std::string marker = "Make a burst ";
  const std::size_t at = ran.err.find(marker);
  ASSERT_NE(at, std::string::npos) << ran.err;
  std::string size = ran.err.substr(at + marker.size());
  size.resize(size.find(" or more"));
  size.erase(std::remove(size.begin(), size.end(), ' '), size.end());
  EXPECT_EQ(run_words(words_of(asked + size)).code, 0) << size;
}

}  // namespace towtank::app_testing
