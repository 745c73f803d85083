// SPDX-License-Identifier: Apache-2.0
// What ends a run: one clear message, within seconds, and no process left.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/runtime/tiny_plans.h"

namespace towtank {
namespace {

using runtime_testing::kGpt;
using runtime_testing::kMixtral;
using runtime_testing::plan_text;
using runtime_testing::RunFolder;
using runtime_testing::tiny_launch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Processes that this one started, whose environment has `setting`.
std::vector<pid_t> children_with(const std::string& setting) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream environment(entry.path() / "environ", std::ios::binary);
    std::stringstream text;
    text << environment.rdbuf();
    const std::string all = '\0' + text.str();
    if (all.find("TOWTANK_PARENT=" + std::to_string(getpid())) == std::string::npos) continue;
    if (all.find('\0' + setting + '\0') != std::string::npos) out.push_back(std::stoi(name));
  }
  return out;
}

TEST(FaultRuntime, ARankThatIsKilledEndsTheRun) {
  const RunFolder folder;
  LaunchOptions options =
      tiny_launch(folder, plan_text(kGpt, 2, R"("pipeline":2,"schedule":"1f1b")"), 2);
  options.words.insert(options.words.end(), {"--steps", "1000000"});
  LaunchResult result;
  double killed_at = 0;
  std::thread killer([&] {
    while (children_with("RANK=1").empty()) usleep(50'000);
    usleep(2'000'000);  // within the steps
    for (const pid_t process : children_with("RANK=1")) kill(process, SIGKILL);
    killed_at = monotonic_seconds();
  });
  result = launch(options);
  const double ended_at = monotonic_seconds();
  killer.join();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.rank, 1);
  EXPECT_THAT(result.messages, ElementsAre("rank 1 was ended by signal 9 (Killed)"));
  EXPECT_LT(ended_at - killed_at, 10);
  EXPECT_TRUE(children_with("RANK=0").empty());
}

TEST(FaultRuntime, PortInUse) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const RunFolder folder;
  LaunchOptions options = tiny_launch(folder, plan_text(kGpt, 2, R"("data":2)"), 2);
  options.port = ntohs(address.sin_port);
  const LaunchResult result = launch(options);
  close(listener);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.messages, ElementsAre("port " + std::to_string(options.port) +
                                           " is in use: set MASTER_PORT to a free one"));
}

/// One rank of two, with a short timeout; its message.
std::string lonely(int rank) {
  const RunFolder folder;
  write_file(folder.file("plan.json"), plan_text(kGpt, 2, R"("data":2)"));
  LaunchOptions options;
  options.program = "/usr/bin/env";
  options.ranks = 1;
  // The launcher's own names come first: env sets them anew.
  options.words = {"RANK=" + std::to_string(rank),
                   "WORLD_SIZE=2",
                   TOWTANK_RUNTIME_EXE,
                   "run",
                   folder.file("plan.json"),
                   "--timeout",
                   "2"};
  const LaunchResult result = launch(options);
  EXPECT_NE(result.exit_code, 0);
  return result.messages.empty() ? "" : result.messages.back();
}

TEST(FaultRuntime, APeerThatNeverComes) {
  EXPECT_EQ(lonely(0), "of 2 ranks only 1 came to start within 2 s");
  EXPECT_THAT(lonely(1), HasSubstr("rank 1 found nobody at 127.0.0.1:"));
}

TEST(FaultRuntime, AFileThatCannotBeWritten) {
  const RunFolder folder;
  LaunchOptions options = tiny_launch(folder, plan_text(kGpt, 1, ""), 1);
  options.words.insert(options.words.end(), {"--record", folder.file("no/such/record.json")});
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.exit_code, 2);
  ASSERT_EQ(result.messages.size(), 1U);
  EXPECT_THAT(result.messages.front(), HasSubstr("no/such/record.json"));
}

TEST(FaultRuntime, APlanThatCannotRun) {
  const RunFolder folder;
  const LaunchResult bf16 = launch(tiny_launch(folder, plan_text(kGpt, 1, "", "bf16"), 1));
  EXPECT_EQ(bf16.exit_code, 2);
  EXPECT_THAT(bf16.messages,
              ElementsAre(HasSubstr(": /workload/precision: is not fp32 (the runtime computes in "
                                    "fp32 on a CPU)")));
  const LaunchResult context = launch(tiny_launch(folder, plan_text(kGpt, 2, R"("context":2)"), 2));
  EXPECT_EQ(context.exit_code, 2);
  EXPECT_THAT(context.messages, ElementsAre(HasSubstr(": /plan/context: is 2")));
  const LaunchResult alone = launch(tiny_launch(folder, plan_text(kGpt, 2, R"("data":2)"), 1));
  EXPECT_THAT(alone.messages, ElementsAre(HasSubstr("the plan has 2 ranks (WORLD_SIZE is 1)")));
}

}  // namespace
}  // namespace towtank
