// SPDX-License-Identifier: Apache-2.0
// The worker: equal to the closed form without contention, and hand-computed cases of sharing.
#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/lower.h"
#include "sim/step_result.h"
#include "tests/sim/hand_made.h"
#include "tests/sim/random_plans.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kTwoEngines;
using testing::sim::Asked;
using testing::sim::HandMade;
using testing::sim::RandomPlans;

TEST(UnitSharing, TwoFlowsCappedAtHalfALinkDoNotSlowEachOther) {
  NEEDS_WORKER();
  HandMade h;
  const auto on = h.route({h.link(50e9)});
  h.flow(1e9, 25e9, on);
  h.flow(1e9, 25e9, on);
  const TaskTimes t = h.run();
  EXPECT_CLOSE(t.end[0], 1e9 / 25e9, kTwoEngines);
  EXPECT_CLOSE(t.end[1], 1e9 / 25e9, kTwoEngines);
}

TEST(UnitSharing, TwoFlowsAtFullRateTakeTwice) {
  NEEDS_WORKER();
  HandMade h;
  const auto on = h.route({h.link(50e9)});
  h.flow(1e9, 50e9, on);
  h.flow(2e9, 50e9, on);
  const TaskTimes t = h.run();
  EXPECT_CLOSE(t.end[0], 1e9 / 25e9, kTwoEngines);          // half the link each
  EXPECT_CLOSE(t.end[1], (1e9 + 2e9) / 50e9, kTwoEngines);  // then the rest alone
}

TEST(UnitSharing, ASlowerCapLeavesTheRestToTheOther) {
  NEEDS_WORKER();
  HandMade h;
  const auto on = h.route({h.link(50e9)});
  h.flow(1e9, 10e9, on);
  h.flow(4e9, 50e9, on);
  const TaskTimes t = h.run();
  EXPECT_CLOSE(t.end[0], 1e9 / 10e9, kTwoEngines);
  EXPECT_CLOSE(t.end[1], 4e9 / 40e9, kTwoEngines);
}

TEST(UnitSharing, PathsOfDifferentLengthShareEqually) {
  NEEDS_WORKER();
  HandMade h;
  const auto shared = h.link(50e9);
  const auto near = h.route({shared});
  const auto far = h.route({shared, h.link(50e9), h.link(50e9), h.link(50e9)});
  h.flow(1e9, 50e9, near, 1e-6);
  h.flow(1e9, 50e9, far, 1e-6);
  const TaskTimes t = h.run();
  EXPECT_CLOSE(t.end[0], 1e-6 + 2e9 / 50e9, kTwoEngines);
  EXPECT_CLOSE(t.end[1], 1e-6 + 2e9 / 50e9, kTwoEngines);
}

/// Two leaves of 2 nodes at 50 GB/s, an uplink of half their sum: a flow inside a leaf keeps its
/// rate, two that leave it share 50 GB/s.
TEST(UnitSharing, AnOversubscribedLeafSlowsOnlyWhatLeavesIt) {
  NEEDS_WORKER();
  HandMade h;
  const auto a = h.link(50e9), b = h.link(50e9), c = h.link(50e9);
  const auto uplink = h.link(50e9);
  h.flow(1e9, 50e9, h.route({a, uplink}));
  h.flow(1e9, 50e9, h.route({b, uplink}));
  h.flow(1e9, 50e9, h.route({c}));
  const TaskTimes t = h.run();
  EXPECT_CLOSE(t.end[0], 1e9 / 25e9, kTwoEngines);
  EXPECT_CLOSE(t.end[1], 1e9 / 25e9, kTwoEngines);
  EXPECT_CLOSE(t.end[2], 1e9 / 50e9, kTwoEngines);
}

TEST(UnitSharing, WithoutContentionEveryFlowIsAlone) {
  NEEDS_WORKER();
  HandMade h;
  const auto on = h.route({h.link(50e9)});
  for (int i = 0; i < 300; ++i) h.flow(1e9, 50e9, on);
  const TaskTimes t = h.run(false);
  for (const double end : t.end) EXPECT_CLOSE(end, 1e9 / 50e9, kTwoEngines);
}

/// More flows on one route than the worker makes room for at first.
TEST(UnitSharing, ManyFlowsOnOneRoute) {
  NEEDS_WORKER();
  HandMade h;
  const auto on = h.route({h.link(50e9)});
  for (int i = 0; i < 100; ++i) h.flow(1e9, 50e9, on);
  EXPECT_CLOSE(h.run().makespan(), 100 * 1e9 / 50e9, kTwoEngines);
}

struct Simulated {
  Asked asked;
  LoweredStep step;
  double closed = 0;
};
std::vector<Simulated> simulated_plans(std::uint64_t seed, int count) {
  RandomPlans plans(seed);
  std::vector<Simulated> out;
  for (int i = 0; i < count; ++i) {
    const Asked asked = plans.next();
    out.push_back({asked, lower(asked.question->problem(), asked.plan),
                   asked.question->predict(asked.plan).step_time.value});
  }
  return out;
}
std::vector<TaskTimes> times_of(const std::vector<Simulated>& all, bool contention,
                                int parallel = 1) {
  std::vector<SimulationJob> jobs;
  for (const Simulated& s : all) jobs.push_back({&s.step.tasks, &s.step.network});
  SimulateOptions options;
  options.contention = contention;
  options.parallel = parallel;
  std::vector<TaskTimes> out;
  for (const SimulationResult& result : simulate_all(jobs, options)) {
    if (const auto* fault = std::get_if<SimulationFault>(&result)) {
      ADD_FAILURE() << fault->problem;
      out.emplace_back();
    } else {
      out.push_back(std::get<TaskTimes>(result));
    }
  }
  return out;
}

TEST(DifferSimulate, WithoutContentionEqualsTheClosedFormOnRandomPlans) {
  NEEDS_WORKER();
  const auto all = simulated_plans(3, 200);
  const auto times = times_of(all, false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_CLOSE(times[i].makespan(), all[i].closed, kTwoEngines) << short_text(all[i].asked.plan);
  }
}

TEST(LawSimulate, ContentionOnlyDelaysAndNothingStartsBeforeItsPredecessors) {
  NEEDS_WORKER();
  const auto all = simulated_plans(4, 60);
  const auto times = times_of(all, true);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TaskGraph& graph = all[i].step.tasks;
    EXPECT_GE(times[i].makespan(), all[i].closed * (1 - kTwoEngines));
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const double took = times[i].end[t] - times[i].start[t];
      ASSERT_GE(took, graph.tasks[t].lone() - kTwoEngines * all[i].closed);
      for (const std::int32_t next : graph.after(t)) {
        ASSERT_GE(times[i].start[static_cast<std::size_t>(next)],
                  times[i].end[t] - kTwoEngines * all[i].closed);
      }
    }
  }
}

TEST(LawSimulate, ALinkSendsWhatItReceivesAndNoMoreThanItCarries) {
  NEEDS_WORKER();
  const auto all = simulated_plans(5, 60);
  const auto times = times_of(all, true);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StepResult result = step_result(all[i].step, times[i]);
    std::array<double, 8> up{}, down{};
    for (const LinkUse& use : result.links) {
      const SharedLink& link = all[i].step.network.links[static_cast<std::size_t>(use.link)];
      EXPECT_LE(use.utilisation, 1 + kTwoEngines) << link.name;
      (link.up ? up : down)[static_cast<std::size_t>(link.level)] += link.copies * use.bytes;
    }
    for (std::size_t l = 0; l < up.size(); ++l) EXPECT_CLOSE(up[l], down[l], kTwoEngines);
  }
}

TEST(LawSimulate, BusyAndIdleAndTheCriticalPathAddUp) {
  NEEDS_WORKER();
  const auto all = simulated_plans(6, 40);
  const auto times = times_of(all, true);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StepResult result = step_result(all[i].step, times[i]);
    const double step = result.step_time.value;
    EXPECT_CLOSE(std::accumulate(result.critical.begin(), result.critical.end(), 0.0), step,
                 kTwoEngines);
    // Tasks of a compute stream do not overlap: their sum is what they cover.
    std::vector<double> sum(all[i].step.tasks.actors.size(), 0.0);
    for (std::size_t t = 0; t < all[i].step.tasks.tasks.size(); ++t) {
      const Task& task = all[i].step.tasks.tasks[t];
      if (task.kind != TaskKind::kCompute) continue;
      sum[static_cast<std::size_t>(all[i].step.tasks.members_of(task)[0])] += task.duration;
    }
    for (std::size_t a = 0; a < sum.size(); ++a) {
      EXPECT_CLOSE(result.actors[a].busy, sum[a], kTwoEngines);
      EXPECT_CLOSE(result.actors[a].busy + result.actors[a].idle, step, kTwoEngines);
      EXPECT_GE(result.actors[a].idle, -kTwoEngines * step);
    }
  }
}

TEST(RepeatSimulate, TheSameTimesForAnyNumberOfWorkers) {
  NEEDS_WORKER();
  const auto all = simulated_plans(7, 20);
  const auto one = times_of(all, true, 1);
  const auto three = times_of(all, true, 3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(one[i].start, three[i].start);
    EXPECT_EQ(one[i].end, three[i].end);
  }
}

TEST(FaultSimulate, AMissingWorkerIsOneSentence) {
  HandMade h;
  h.flow(1, 1, h.route({}));
  h.graph = std::move(h.builder).build();
  SimulateOptions options;
  options.worker = "/nowhere/towtank-sim";
  const SimulationResult result = simulate(h.graph, h.network, options);
  ASSERT_TRUE(std::holds_alternative<SimulationFault>(result));
  EXPECT_EQ(std::get<SimulationFault>(result).problem,
            "towtank-sim, the program that simulates, is not here: install libsimgrid-dev and "
            "build again, or set TOWTANK_SIM to its path");
}

/// A cycle never becomes ready: that simulation fails, the next one runs.
TEST(FaultSimulate, ABrokenSimulationIsItsOwnFault) {
  NEEDS_WORKER();
  HandMade broken, good;
  const auto a = broken.flow(1e9, 1e9, broken.route({}));
  const auto b = broken.flow(1e9, 1e9, broken.route({}));
  broken.builder.depend(a, b);
  broken.builder.depend(b, a);
  broken.graph = std::move(broken.builder).build();
  good.flow(1e9, 1e9, good.route({}));
  good.graph = std::move(good.builder).build();
  const std::vector<SimulationJob> jobs{{&broken.graph, &broken.network},
                                        {&good.graph, &good.network}};
  const auto results = simulate_all(jobs);
  ASSERT_TRUE(std::holds_alternative<SimulationFault>(results[0]));
  EXPECT_EQ(std::get<SimulationFault>(results[0]).problem, "the simulation ended with exit code 1");
  ASSERT_TRUE(std::holds_alternative<TaskTimes>(results[1]));
  EXPECT_CLOSE(std::get<TaskTimes>(results[1]).makespan(), 1.0, kTwoEngines);
}

}  // namespace
}  // namespace towtank
