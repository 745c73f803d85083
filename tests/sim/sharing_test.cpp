// SPDX-License-Identifier: Apache-2.0
// The worker against max-min sharing worked out here, and traffic of others on links.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/rng.h"
#include "sim/lower.h"
#include "sim/step_result.h"
#include "tests/sim/hand_made.h"
#include "tests/sim/random_plans.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kTwoEngines;
using testing::sim::HandMade;

/// One flow of the hand-worked solver.
struct FluidFlow {
  double start = 0, left = 0, cap = 0, end = -1;
  std::vector<std::size_t> links;
  double rate = 0;
};

/// Water filling: all rates rise together; a flow stops at its cap, or when one of its links is
/// full.
void fill(std::vector<FluidFlow*>& active, std::vector<double> room) {
  std::vector<FluidFlow*> rising = active;
  for (FluidFlow* f : rising) f->rate = 0;
  while (!rising.empty()) {
    double step = HUGE_VAL;
    std::vector<int> users(room.size(), 0);
    for (const FluidFlow* f : rising) {
      step = std::min(step, f->cap - f->rate);
      for (const std::size_t l : f->links) ++users[l];
    }
    for (std::size_t l = 0; l < room.size(); ++l) {
      if (users[l] > 0) step = std::min(step, room[l] / users[l]);
    }
    for (FluidFlow* f : rising) {
      f->rate += step;
      for (const std::size_t l : f->links) room[l] -= step;
    }
    constexpr double kFull = 1;  // byte/s
    std::erase_if(rising, [&](const FluidFlow* f) {
      return f->rate >= f->cap - kFull ||
             std::any_of(f->links.begin(), f->links.end(),
                         [&](std::size_t l) { return room[l] <= kFull; });
    });
  }
}

/// When each flow ends; work-conserving on every link by construction.
void run_fluid(std::vector<FluidFlow>& flows, const std::vector<double>& capacity) {
  double now = 0;
  while (true) {
    std::vector<FluidFlow*> active;
    double next = HUGE_VAL;
    for (FluidFlow& f : flows) {
      if (f.end >= 0) continue;
      if (f.start > now) {
        next = std::min(next, f.start);
      } else {
        active.push_back(&f);
      }
    }
    if (active.empty() && std::isinf(next)) return;
    fill(active, capacity);
    for (const FluidFlow* f : active) next = std::min(next, now + f->left / f->rate);
    for (FluidFlow* f : active) {
      f->left -= f->rate * (next - now);
      if (f->left <= 1e-2) f->end = next;  // bytes
    }
    now = next;
  }
}

TEST(DifferSharing, SimGridSharesLinksMaxMinFairly) {
  NEEDS_WORKER();
  Rng rng(21);
  for (int round = 0; round < 20; ++round) {
    HandMade h;
    std::vector<double> capacity;
    for (int l = 0; l < 5; ++l) {
      capacity.push_back(rng.uniform(10e9, 100e9));
      h.link(capacity.back());
    }
    std::vector<FluidFlow> flows;
    for (int f = 0; f < 12; ++f) {
      std::set<std::int32_t> links;
      const auto count = rng.integer(1, 3);
      for (std::int64_t i = 0; i < count; ++i) {
        links.insert(static_cast<std::int32_t>(rng.integer(0, 4)));
      }
      FluidFlow& flow = flows.emplace_back();
      flow.start = rng.uniform(0, 0.2);
      flow.left = rng.uniform(1e8, 5e9);
      flow.cap = rng.uniform(5e9, 120e9);
      for (const std::int32_t l : links) flow.links.push_back(static_cast<std::size_t>(l));
      h.flow(flow.left, flow.cap, h.route({links.begin(), links.end()}), flow.start);
    }
    run_fluid(flows, capacity);
    const TaskTimes t = h.run();
    constexpr double kFluid = 1e-7;  // bytes left over in the solver above
    for (std::size_t f = 0; f < flows.size(); ++f) EXPECT_CLOSE(t.end[f], flows[f].end, kFluid);
  }
}

/// Half of a link taken: a flow that wants all of it takes twice as long; one that wants less than
/// the other half is not slowed.
TEST(UnitBackground, TakesWhatItIsFairlyGiven) {
  NEEDS_WORKER();
  for (const double cap : {50e9, 25e9, 10e9}) {
    HandMade h;
    const auto link = h.link(50e9);
    h.flow(1e9, cap, h.route({link}));
    h.network.background.push_back({link, 1e6, 25e9, 0, 0});
    EXPECT_CLOSE(h.run().makespan(), 1e9 / std::min(cap, 25e9), kTwoEngines) << cap;
  }
  // Three flows that want everything: four share alike, and the background gets its quarter.
  HandMade h;
  const auto link = h.link(50e9);
  for (int i = 0; i < 3; ++i) h.flow(1e9, 50e9, h.route({link}));
  h.network.background.push_back({link, 1e6, 25e9, 0, 0});
  EXPECT_CLOSE(h.run().makespan(), 4 * 1e9 / 50e9, kTwoEngines);
}

TEST(UnitBackground, CountsForNothingWithoutContention) {
  NEEDS_WORKER();
  HandMade h;
  const auto link = h.link(50e9);
  h.flow(1e9, 50e9, h.route({link}));
  h.network.background.push_back({link, 1e6, 25e9, 0, 0});
  EXPECT_CLOSE(h.run(false).makespan(), 1e9 / 50e9, kTwoEngines);
}

/// Bursts at random times: many of them average out, and a seed says when they come.
TEST(LawBackground, BurstsCarryTheirMeanRate) {
  NEEDS_WORKER();
  const auto took = [](std::uint64_t seed) {
    HandMade h;
    const auto link = h.link(50e9);
    h.flow(100e9, 50e9, h.route({link}));  // 2 s alone
    const double bytes = 10e6, rate = 10e9;
    h.network.background.push_back({link, bytes, 50e9, bytes / rate - bytes / 50e9, seed});
    return h.run().makespan();
  };
  // In a gap the flow has the link alone, in a burst half of it, and a burst then takes twice its
  // lone time: of a period gap + 2 lone the flow gets gap + lone.
  const double lone = 10e6 / 50e9, gap = 10e6 / 10e9 - lone;
  const double expected = 2 * (gap + 2 * lone) / (gap + lone);
  for (const std::uint64_t seed : {1U, 2U, 3U}) EXPECT_CLOSE(took(seed), expected, 0.02);
  EXPECT_EQ(took(1), took(1));
  EXPECT_NE(took(1), took(2));
}

std::shared_ptr<testing::Question> two_racks() {
  return std::make_shared<testing::Question>(testing::llama_config(4096, 32, 32, 8, 14336, 128256),
                                             "dgx-h100", 32, 4096, 128);
}
Plan replicas_of_four() {
  Plan plan;
  plan.tensor = 4;
  plan.data = 4;
  plan.pipeline = 2;
  plan.schedule = ScheduleKind::kOneFOneB;
  plan.sequence_parallel = true;
  plan.sharding_stage = 1;
  return plan;
}
double simulated(const testing::Question& q, const Plan& plan, const LowerOptions& options) {
  const LoweredStep step = lower(q.problem(), plan, options);
  const SimulationResult result = simulate(step.tasks, step.network);
  if (const auto* fault = std::get_if<SimulationFault>(&result)) {
    ADD_FAILURE() << fault->problem;
    return 0;
  }
  return std::get<TaskTimes>(result).makespan();
}

/// A named link is simulated apart from its likes, with the replicas behind it; nothing else is
/// unfolded, and unfolding everything changes nothing.
TEST(DifferBackground, FoldedEqualsUnfolded) {
  NEEDS_WORKER();
  const auto q = two_racks();
  Plan plan = replicas_of_four();
  expand_stages(plan, q->graph().free_layers());
  for (const char* links : {"node", "node 1", "node 2 rail 5", "device 9"}) {
    LowerOptions folded;
    folded.background = {{links, std::nullopt, 0.7, {}, {}}};
    LowerOptions unfolded = folded;
    unfolded.fold_replicas = false;
    const double quiet = simulated(*q, plan, {});
    const double loaded = simulated(*q, plan, folded);
    EXPECT_GE(loaded, quiet * (1 - kTwoEngines)) << links;
    EXPECT_CLOSE(loaded, simulated(*q, plan, unfolded), kTwoEngines) << links;
  }
  LowerOptions level;
  level.background = {{"node", std::nullopt, 0.7, {}, {}}};
  EXPECT_EQ(lower(q->problem(), plan, level).tasks.actors.size(), 2U);
  LowerOptions one;
  one.background = {{"node 2 rail 5", std::nullopt, 0.7, {}, {}}};
  EXPECT_EQ(lower(q->problem(), plan, one).tasks.actors.size(), 4U);
}

TEST(FaultBackground, AnUnknownLinkIsToldWithThoseThatThereAre) {
  const auto q = two_racks();
  EXPECT_EQ(link_names_fault(q->problem(), "node"), "");
  EXPECT_EQ(link_names_fault(q->problem(), "node 3"), "");
  EXPECT_EQ(link_names_fault(q->problem(), "node 3 rail 7"), "");
  for (const char* name : {"node 4", "rail", "leaf", "nod", "node 3 rail 8", ""}) {
    EXPECT_EQ(link_names_fault(q->problem(), name),
              "no link is named so here. There are \"device\" (device 0 to device 31), \"node\" "
              "(node 0 rail 0 to node 3 rail 7)")
        << name;
  }
}

/// Tensor groups of 4 on nodes of 8 ports: a replica has its own four rails, however idle the other
/// four are. Its sends and reductions of one rank share them.
TEST(UnitRails, AGroupHasThePortsOfItsOwnDevices) {
  const auto q = two_racks();
  Plan plan = replicas_of_four();
  expand_stages(plan, q->graph().free_layers());
  const LoweredStep step = lower(q->problem(), plan);
  int rails = 0;
  for (const SharedLink& link : step.network.links) {
    if (link.level != 1) continue;
    EXPECT_EQ(link.capacity, 50e9) << link.name;
    rails += link.copies;
  }
  EXPECT_EQ(rails, 2 * 32);  // one up and one down a device
}

}  // namespace
}  // namespace towtank
