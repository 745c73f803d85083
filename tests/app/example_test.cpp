// SPDX-License-Identifier: Apache-2.0
// Examples that newcomers run, as they run them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/simulate.h"
#include "tests/app/run_towtank.h"
#include "tests/support/golden.h"

#ifdef TOWTANK_EXE
namespace towtank::app_testing {

TEST(GoldenExamples, WhenLinksAreSharedAnotherPlanWins) {
  if (find_worker().empty()) GTEST_SKIP() << "towtank-sim is not built: install libsimgrid-dev";
  const ScratchFolder scratch;
  const std::string folder = scratch.path().string();
  const std::string command = "TOWTANK='" TOWTANK_EXE "' '" TOWTANK_SOURCE_DIR
                              "/examples/contention/run' '" +
                              folder + "' > '" + folder + "/out.txt' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << testing::content_of(folder + "/out.txt");
  testing::expect_same_as_file(source_file("examples/contention/expected.txt"),
                               testing::content_of(folder + "/out.txt"));
  // The story that its README tells.
  const auto plan = [&](const char* name) {
    return nlohmann::json::parse(testing::content_of(folder + "/" + name + ".json"))["plan"];
  };
  EXPECT_NE(plan("first"), plan("best"));
  const auto simulated = [&](const char* name) {
    return nlohmann::json::parse(run("simulate --json " + folder + "/" + name + ".json").out);
  };
  const auto first = simulated("first"), best = simulated("best");
  EXPECT_LT(first["closed_form_s"], best["closed_form_s"]);
  EXPECT_GT(first["step_time_s"].get<double>(), 1.1 * best["step_time_s"].get<double>());
  for (const char* name : {"first", "best"}) {
    EXPECT_TRUE(testing::content_of(folder + "/" + name + ".svg").ends_with("</svg>\n"));
    EXPECT_TRUE(nlohmann::json::accept(testing::content_of(folder + "/" + name + "-trace.json")));
  }
}

TEST(GoldenPlatforms, ASimGridFile) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  const Ran ran = run("platforms show dgx-h100 --devices 2 --simgrid-xml -");
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  testing::expect_golden("platforms-simgrid.xml", ran.out);
  const Ran open = run("platforms show dgx-h100 --simgrid-xml -");
  EXPECT_EQ(open.code, kExitBadInput);
  EXPECT_EQ(open.err,
            "towtank: --devices: is needed beside --simgrid-xml (dgx-h100 has as many nodes as are "
            "asked for). Write --devices 64, for instance.\n");
}

}  // namespace towtank::app_testing
#endif
