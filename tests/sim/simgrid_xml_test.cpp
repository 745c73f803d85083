// SPDX-License-Identifier: Apache-2.0
// Platform files read by a stock SimGrid: hosts, routes, latencies, and how long a message takes.
#include "sim/export/simgrid_xml.h"

#include <gtest/gtest.h>

#include "tests/support/near.h"
#include "tests/support/planning.h"

#ifdef TOWTANK_SIMGRID
#include <sys/wait.h>
#include <unistd.h>

#include <xbt/log.h>
#include <fstream>
#include <simgrid/s4u.hpp>

namespace towtank {
namespace {

using testing::kTwoEngines;

struct XmlPair {
  int from = 0, to = 0;
};
struct XmlRoute {
  double hosts = 0, latency = 0, bandwidth = 0, took = 0;
};
constexpr double kXmlMessage = 1e9;

XmlRoute route_in_simgrid(const std::string& path, XmlPair pair) {
  namespace s4u = simgrid::s4u;
  int argc = 1;
  std::string name = "test";
  char* arguments[] = {name.data(), nullptr};
  xbt_log_control_set("root.threshold:error");
  s4u::Engine engine(&argc, arguments);
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"}) {
    s4u::Engine::set_config(setting);
  }
  engine.load_platform(path);
  engine.seal_platform();
  auto* from = engine.host_by_name("device-" + std::to_string(pair.from));
  auto* to = engine.host_by_name("device-" + std::to_string(pair.to));
  XmlRoute out;
  out.hosts = static_cast<double>(engine.get_host_count());
  std::vector<s4u::Link*> links;
  from->route_to(to, links, &out.latency);
  out.bandwidth = 1e300;
  for (const s4u::Link* link : links)
    out.bandwidth = std::min(out.bandwidth, link->get_bandwidth());
  const s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
  comm->set_payload_size(static_cast<std::uint64_t>(kXmlMessage));
  comm->vetoable_start();
  engine.run();
  out.took = s4u::Engine::get_clock();
  return out;
}

/// In a process of its own: SimGrid's engine is global, and its errors abort.
XmlRoute route_of(const std::string& path, XmlPair pair) {
  int ends[2];
  XmlRoute out;
  if (pipe(ends) != 0) return out;
  const pid_t child = fork();
  if (child == 0) {
    const XmlRoute found = route_in_simgrid(path, pair);
    _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
  }
  close(ends[1]);
  const bool whole = read(ends[0], &out, sizeof out) == sizeof out;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(whole) << "SimGrid did not read " << path;
  return out;
}

/// Level at which two devices meet, worked out from the groups alone.
std::size_t meeting(const NetworkView& view, XmlPair pair) {
  std::size_t level = 0;
  while (pair.from / view.levels[level].group != pair.to / view.levels[level].group) ++level;
  return level;
}

TEST(DifferSimgridXml, AStockSimGridFindsTheLinksAndLatenciesOfTheView) {
  struct Case {
    const char* machine;
    int devices;
    std::vector<XmlPair> pairs;
  };
  for (const Case& c :
       {Case{"dgx-h100", 16, {{0, 7}, {3, 12}, {8, 9}}}, Case{"aws-p4d", 32, {{0, 1}, {1, 30}}},
        Case{"perlmutter", 64, {{0, 3}, {5, 60}}},
        Case{"two-site-h100", 256, {{0, 1}, {2, 20}, {1, 250}}}}) {
    const Platform platform = load_platform(c.machine);
    const ModelGraph graph;
    const Workload workload;
    const auto made = make_problem(graph, workload, platform, c.devices);
    ASSERT_TRUE(std::holds_alternative<PlanProblem>(made)) << c.machine;
    const auto& problem = std::get<PlanProblem>(made);
    const std::string path =
        ::testing::TempDir() + "towtank-" + std::to_string(getpid()) + "-" + c.machine + ".xml";
    std::ofstream(path) << simgrid_xml(problem, "a test");
    for (const XmlPair pair : c.pairs) {
      const XmlRoute found = route_of(path, pair);
      const std::size_t level = meeting(problem.view, pair);
      const auto& meets = problem.view.levels[level];
      EXPECT_EQ(found.hosts, c.devices);
      EXPECT_CLOSE(found.latency, meets.latency.value, kTwoEngines) << c.machine;
      // A device alone is held up by its own link or port; what is above carries many of them.
      const int sharing =
          level == 0 || problem.platform->node_kinds[problem.view.node].nics == 0
              ? 1
              : std::max(1, problem.platform->node_kinds[problem.view.node].devices /
                                problem.platform->node_kinds[problem.view.node].nics);
      const double port =
          level == 0 ? meets.bandwidth.value : sharing * problem.view.levels[1].bandwidth.value;
      EXPECT_CLOSE(found.bandwidth, port, kTwoEngines) << c.machine << " " << pair.to;
      EXPECT_CLOSE(found.took, found.latency + kXmlMessage / found.bandwidth, kTwoEngines)
          << c.machine;
    }
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace towtank
#endif
