// SPDX-License-Identifier: Apache-2.0
#include "validate/run/launch.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "validate/run/recorder.h"

namespace towtank {
namespace launch_test {

using ::testing::ElementsAre;

/// Ranks that run a line of shell.
LaunchResult run_shell(const std::string& line, int ranks, double limit = 20) {
  LaunchOptions options;
  options.program = "/bin/sh";
  options.words = {"-c", line};
  options.ranks = ranks;
  options.limit = Seconds{limit};
  return launch(options);
}

TEST(UnitLaunch, RanksKnowWhoTheyAre) {
  const LaunchResult r = run_shell(
      "[ $RANK = 0 ] && echo \"$RANK of $WORLD_SIZE at $MASTER_ADDR, $OPENBLAS_NUM_THREADS\"; "
      "[ $MASTER_PORT -gt 0 ]",
      3);
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.out, "0 of 3 at 127.0.0.1, 1\n");
  EXPECT_TRUE(r.messages.empty());
}

TEST(UnitLaunch, TheCauseIsTold) {
  // Rank 1 fails; the others say that they lost somebody, and say it first.
  LaunchResult r = run_shell(
      "[ $RANK = 1 ] || { echo lost >&2; exit 5; }; sleep 0.5; "
      "echo 'towtank-runtime: no more room' >&2; echo noise >&2; exit 3",
      3);
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.rank, 1);
  EXPECT_THAT(r.messages, ElementsAre("no more room"));
  r = run_shell("[ $RANK = 1 ] || exit 5; sleep 0.5; kill -9 $$", 2);
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.messages, ElementsAre("rank 1 was ended by signal 9 (Killed)"));
  r = run_shell("[ $RANK = 1 ] && exit 4; exit 0", 2);
  EXPECT_THAT(r.messages, ElementsAre("rank 1 ended with exit code 4"));
}

TEST(UnitLaunch, TheOthersAreEnded) {
  const double begin = monotonic_seconds();
  const LaunchResult r = run_shell("[ $RANK = 0 ] && exit 7; exec sleep 60", 3);
  EXPECT_EQ(r.exit_code, 7);
  EXPECT_LT(monotonic_seconds() - begin, 15);
}

TEST(UnitLaunch, ALimitHolds) {
  const double begin = monotonic_seconds();
  const LaunchResult r = run_shell("exec sleep 60", 2, 0.5);
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.messages,
              ElementsAre("the run did not end within its limit; its ranks were ended"));
  EXPECT_LT(monotonic_seconds() - begin, 15);
}

TEST(FaultLaunch, NoProgram) {
  LaunchOptions options;
  options.program = "/nowhere/towtank-runtime";
  EXPECT_THROW(static_cast<void>(launch(options)), std::runtime_error);
}

}  // namespace launch_test
}  // namespace towtank
