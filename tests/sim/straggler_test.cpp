// SPDX-License-Identifier: Apache-2.0
// Folding against unfolded steps, and slow ranks against what theory says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/export/chrome_trace.h"
#include "sim/export/gantt.h"
#include "sim/longest_path.h"
#include "sim/lower.h"
#include "sim/simulate.h"
#include "sim/step_result.h"
#include "tests/sim/random_plans.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kTwoEngines;
using testing::sim::Asked;
using testing::sim::RandomPlans;
using StragglerQuestion = testing::Question;

double simulated_makespan(const LoweredStep& step) {
  const SimulationResult result = simulate(step.tasks, step.network);
  if (const auto* fault = std::get_if<SimulationFault>(&result)) {
    ADD_FAILURE() << fault->problem;
    return 0;
  }
  return std::get<TaskTimes>(result).makespan();
}

Asked random_replicated_plan(RandomPlans& plans) {
  while (true) {
    Asked asked = plans.next();
    if (asked.plan.data > 1) return asked;
  }
}

TEST(DifferFolding, FoldedEqualsUnfoldedWithContention) {
  if (find_worker().empty()) GTEST_SKIP() << "towtank-sim is not built";
  RandomPlans plans(11);
  for (int i = 0; i < 25; ++i) {
    const Asked asked = random_replicated_plan(plans);
    LowerOptions unfolded;
    unfolded.fold_replicas = false;
    const LoweredStep whole = lower(asked.question->problem(), asked.plan, unfolded);
    const LoweredStep folded = lower(asked.question->problem(), asked.plan);
    EXPECT_EQ(whole.tasks.actors.size(),
              folded.tasks.actors.size() * static_cast<std::size_t>(asked.plan.data));
    EXPECT_CLOSE(simulated_makespan(whole), simulated_makespan(folded), kTwoEngines)
        << short_text(asked.plan);
  }
}

/// The replica with a slow rank stands alone; the others are folded, and that changes nothing.
TEST(DifferFolding, ASlowReplicaIsNeverFolded) {
  if (find_worker().empty()) GTEST_SKIP() << "towtank-sim is not built";
  RandomPlans plans(12);
  for (int i = 0; i < 25; ++i) {
    const Asked asked = random_replicated_plan(plans);
    LowerOptions folded, unfolded;
    folded.stragglers = unfolded.stragglers = {{asked.plan.devices() - 1, 1.3}};
    unfolded.fold_replicas = false;
    const LoweredStep some = lower(asked.question->problem(), asked.plan, folded);
    for (const Actor& actor : some.tasks.actors) {
      const bool slow = actor.first_replica + actor.replicas > asked.plan.data - 1;
      EXPECT_TRUE(actor.slowdown <= 1 || slow || asked.plan.expert > 1);
    }
    EXPECT_CLOSE(simulated_makespan(lower(asked.question->problem(), asked.plan, unfolded)),
                 simulated_makespan(some), kTwoEngines)
        << short_text(asked.plan);
  }
}

/// One slow rank of a data-parallel job holds up all: the step grows by 0.3 of its computation,
/// since whatever hides behind the slow backward hid behind the others'.
TEST(UnitStraggler, DataParallelWaitsForTheSlowest) {
  const StragglerQuestion q(testing::llama_config(4096, 32, 32, 8, 14336, 128256), "dgx-h100", 32,
                            4096, 128);
  Plan plan;
  plan.tensor = 8;
  plan.data = 4;
  plan.sequence_parallel = true;
  plan.sharding_stage = 1;
  expand_stages(plan, q.graph().free_layers());
  const LoweredStep even = lower(q.problem(), plan);
  double work = 0;
  for (const Task& t : even.tasks.tasks) {
    if (t.kind != TaskKind::kCompute) continue;
    std::array<double, kComponentCount> parts{};
    add_components(even.tasks, t, t.duration, parts);
    work += parts[static_cast<std::size_t>(TimeComponent::kCompute)] +
            parts[static_cast<std::size_t>(TimeComponent::kRecompute)] +
            parts[static_cast<std::size_t>(TimeComponent::kOptimizer)];
  }
  LowerOptions options;
  options.stragglers = {{12, 1.3}};
  const double slow = longest_path(lower(q.problem(), plan, options).tasks).makespan();
  // Buckets overlap the last backward; they may hide a little more behind a slower one.
  const double grown = slow - longest_path(even.tasks).makespan();
  EXPECT_LE(grown, 0.3 * work * (1 + kTwoEngines));
  EXPECT_GE(grown, 0.29 * work);
}

/// Where the framework reduces after the last backward, nothing hides behind the slow rank: exactly
/// 0.3 of its computation, whichever rank it is.
TEST(UnitStraggler, DataParallelWithoutOverlapIsExact) {
  int frameworks = 0;
  for (std::size_t f = 0; f < kFrameworkCount; ++f) {
    const auto framework = static_cast<Framework>(f);
    const FrameworkRules& rules = rules_of(framework);
    if (rules.overlap_grad_reduce.value || rules.overlap_param_gather.value) continue;
    ++frameworks;
    const StragglerQuestion q(testing::llama_config(4096, 32, 32, 8, 14336, 128256), "dgx-h100", 32,
                              4096, 32);
    Plan plan;
    plan.framework = framework;
    plan.data = 32;
    expand_stages(plan, q.graph().free_layers());
    const LoweredStep even = lower(q.problem(), plan);
    double work = 0;
    for (const Task& t : even.tasks.tasks) {
      if (t.kind != TaskKind::kCompute) continue;
      std::array<double, kComponentCount> parts{};
      add_components(even.tasks, t, t.duration, parts);
      for (const TimeComponent c :
           {TimeComponent::kCompute, TimeComponent::kRecompute, TimeComponent::kOptimizer}) {
        work += parts[static_cast<std::size_t>(c)];
      }
    }
    for (const int rank : {0, 13, 31}) {
      LowerOptions options;
      options.stragglers = {{rank, 1.3}};
      const double slow = longest_path(lower(q.problem(), plan, options).tasks).makespan();
      EXPECT_CLOSE(slow, longest_path(even.tasks).makespan() + 0.3 * work, kTwoEngines)
          << kFrameworkNames[f] << " rank " << rank;
    }
  }
  EXPECT_GE(frameworks, 1);
}

/// The steady state of 1F1B goes at the pace of its slowest stage: with stage s 30 % slow each
/// further microbatch takes the slow stage's forward and backward, sends that hold it included.
TEST(UnitStraggler, EachStageSetsThePaceOfItsPipeline) {
  const auto question = [](int microbatches) {
    return std::make_unique<StragglerQuestion>(testing::llama_config(4096, 32, 32, 8, 14336, 32000),
                                               "dgx-h100", 4, 4096, microbatches);
  };
  const auto few = question(16), more = question(17);
  Plan plan;
  plan.pipeline = 4;
  plan.schedule = ScheduleKind::kOneFOneB;
  expand_stages(plan, few->graph().free_layers());
  for (int s = 0; s < plan.pipeline; ++s) {
    LowerOptions options;
    options.stragglers = {{s, 1.3}};
    const LoweredStep step = lower(few->problem(), plan, options);
    const LoweredStep longer = lower(more->problem(), plan, options);
    double pace = 0;  // of the slow stage, one microbatch
    for (const Task& t : step.tasks.tasks) {
      if (t.microbatch != 0 || t.stage != s) continue;
      if (t.kind == TaskKind::kCompute || t.label == Label::kSend) pace += t.lone();
    }
    const FrameworkRules& rules = rules_of(plan.framework);
    ASSERT_FALSE(rules.async_p2p.value);
    EXPECT_CLOSE(longest_path(longer.tasks).makespan() - longest_path(step.tasks).makespan(), pace,
                 1e-8)
        << "stage " << s;
  }
}

/// A slow stage s of 1F1B: the recurrence over stage times of which one is 1.3 times as long.
TEST(UnitStraggler, EachStageOfAPipeline) {
  const StragglerQuestion q(testing::llama_config(4096, 32, 32, 8, 14336, 128256), "dgx-h100", 4,
                            4096, 16);
  Plan plan;
  plan.pipeline = 4;
  plan.schedule = ScheduleKind::kOneFOneB;
  expand_stages(plan, q.graph().free_layers());
  const detail::Mesh mesh(q.problem(), detail::degrees_of(plan), plan.framework);
  const detail::Layout layout = detail::layout_from(plan, q.workload());
  const detail::StepModel model(q.problem(), mesh, layout);
  const double rest = model.times().total.value - model.times().makespan.value;
  for (int s = 0; s < plan.pipeline; ++s) {
    std::vector<StageTime> stages = model.stage_times();
    // What a slow device does not stretch: sends that hold the sender, and its host's gaps.
    const Seconds sent = model.sends(s);
    const int directions = (s > 0 ? 1 : 0) + (s + 1 < plan.pipeline ? 1 : 0);
    Seconds forward_kept = s + 1 < plan.pipeline ? sent / directions : Seconds{};
    Seconds backward_kept = s > 0 ? sent / directions : Seconds{};
    forward_kept += mesh.runtime().per_microbatch / 2;
    backward_kept += mesh.runtime().per_microbatch / 2;
    mesh.for_each_kind(layout.stages[static_cast<std::size_t>(s)], [&](std::size_t k, int n) {
      forward_kept += n * mesh.cost(k).host_gap_forward;
      backward_kept += n * mesh.cost(k).host_gap_backward;
    });
    StageTime& slow = stages[static_cast<std::size_t>(s)];
    slow.forward = 1.3 * (slow.forward - forward_kept) + forward_kept;
    slow.input_grad = 1.3 * (slow.input_grad - backward_kept) + backward_kept;
    slow.weight_grad = 1.3 * slow.weight_grad;
    const PipelineShape shape{plan.pipeline, layout.microbatches, 1};
    const double makespan =
        schedule_times(plan.schedule, shape, stages, model.hops()).makespan.value;
    LowerOptions options;
    options.stragglers = {{s, 1.3}};
    const LoweredStep step = lower(q.problem(), plan, options);
    // Only the slow rank's optimizer is longer than the closed form's.
    double optimizer = 0, even_optimizer = 0;
    for (const Task& t : step.tasks.tasks) {
      if (t.label != Label::kOptimizer) continue;
      const auto actor = static_cast<std::size_t>(step.tasks.members_of(t)[0]);
      optimizer = std::max(optimizer, t.duration);
      even_optimizer = std::max(even_optimizer, t.duration / step.tasks.actors[actor].slowdown);
    }
    EXPECT_CLOSE(longest_path(step.tasks).makespan(), makespan + rest - even_optimizer + optimizer,
                 kTwoEngines)
        << "stage " << s;
  }
}

StepResult uncontended(const LoweredStep& step) {
  return step_result(step, longest_path(step.tasks));
}

struct TraceSlice {
  double start = 0, end = 0;
};
constexpr double kTraceRounding = 1e-3;  // us

bool nests(std::vector<TraceSlice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const TraceSlice& a, const TraceSlice& b) { return a.start < b.start; });
  std::vector<double> open;
  for (const TraceSlice& s : slices) {
    while (!open.empty() && open.back() <= s.start + kTraceRounding) open.pop_back();
    if (!open.empty() && s.end > open.back() + kTraceRounding) return false;
    open.push_back(s.end);
  }
  return true;
}

/// What Perfetto asks of a JSON trace: slices of a track nest; a flow begins and ends on slices,
/// once each, and goes forward in time; every track and process is named; counters are never
/// negative and end at zero.
TEST(LawTrace, SlicesNestFlowsBindCountersEnd) {
  RandomPlans plans(13);
  for (int i = 0; i < 12; ++i) {
    const Asked asked = plans.next();
    const LoweredStep step = lower(asked.question->problem(), asked.plan);
    const Json trace = Json::parse(chrome_trace(step, uncontended(step)));
    using Track = std::pair<int, int>;
    std::map<Track, std::vector<TraceSlice>> tracks;
    std::set<int> processes;
    std::set<Track> threads;
    std::map<int, std::vector<std::pair<Track, double>>> begins, ends;
    std::map<std::string, double> counters;
    std::map<std::string, double> counter_times;
    for (const Json& e : trace) {
      const std::string phase = e.at("ph");
      if (phase == "M") {
        ASSERT_FALSE(e.at("args").at("name").get<std::string>().empty());
        if (e.at("name") == "process_name") processes.insert(e.at("pid").get<int>());
        if (e.at("name") == "thread_name")
          threads.insert(Track(e.at("pid").get<int>(), e.at("tid").get<int>()));
        continue;
      }
      const double ts = e.at("ts");
      ASSERT_GE(ts, 0);
      if (phase == "C") {
        const double value = e.at("args").at("GB/s");
        const std::string name = e.at("name");
        ASSERT_GE(value, 0);
        ASSERT_GE(ts, counter_times[name]);
        counter_times[name] = ts;
        counters[name] = value;
        continue;
      }
      const Track track(e.at("pid").get<int>(), e.at("tid").get<int>());
      if (phase == "X") {
        ASSERT_GE(e.at("dur").get<double>(), 0);
        ASSERT_FALSE(e.at("name").get<std::string>().empty());
        tracks[track].push_back({ts, ts + e.at("dur").get<double>()});
      } else {
        ASSERT_TRUE(phase == "s" || phase == "f") << phase;
        (phase == "s" ? begins : ends)[e.at("id").get<int>()].emplace_back(track, ts);
        if (phase == "f") {
          ASSERT_EQ(e.at("bp"), "e");
        }
      }
    }
    const auto on_slice = [&](const std::pair<Track, double>& point) {
      const auto& slices = tracks[point.first];
      return std::any_of(slices.begin(), slices.end(), [&](const TraceSlice& s) {
        return s.start <= point.second + kTraceRounding && point.second <= s.end + kTraceRounding;
      });
    };
    for (const auto& [track, slices] : tracks) {
      EXPECT_TRUE(nests(slices));
      EXPECT_TRUE(threads.contains(track) && processes.contains(track.first));
    }
    ASSERT_EQ(begins.size(), ends.size());
    for (const auto& [id, from] : begins) {
      ASSERT_EQ(from.size(), 1U);
      ASSERT_EQ(ends[id].size(), 1U);
      EXPECT_TRUE(on_slice(from[0]) && on_slice(ends[id][0]));
      EXPECT_LE(from[0].second, ends[id][0].second);
    }
    for (const auto& [name, value] : counters) EXPECT_NEAR(value, 0, 1e-6) << name;
    if (asked.plan.data > 1) {
      EXPECT_NE(trace.dump().find(std::to_string(asked.plan.data) + " replicas folded"),
                std::string::npos);
    }
  }
}

/// One device never waits: every column up to the optimizer has a letter; a host gap ends the step.
TEST(UnitGantt, OneDeviceIsNeverIdle) {
  const StragglerQuestion q(testing::llama_config(4096, 8, 32, 8, 14336, 32000), "dgx-h100", 1,
                            4096, 4);
  Plan plan;
  expand_stages(plan, q.graph().free_layers());
  const LoweredStep step = lower(q.problem(), plan);
  for (const int columns : {40, 60, 77, 100}) {
    const std::string text = gantt(step, uncontended(step), {columns, 16});
    EXPECT_GE(text.find('.'), text.find_last_of('O')) << text;
    EXPECT_NE(text.find('O'), std::string::npos) << text;
    EXPECT_EQ(text.size(), static_cast<std::size_t>(columns) + 1);
  }
}

TEST(UnitGantt, APipelineOfTwo) {
  const StragglerQuestion q(testing::llama_config(4096, 8, 32, 8, 14336, 32000), "dgx-h100", 2,
                            4096, 2);
  Plan plan;
  plan.pipeline = 2;
  plan.schedule = ScheduleKind::kGpipe;
  expand_stages(plan, q.graph().free_layers());
  const LoweredStep step = lower(q.problem(), plan);
  const std::string text = gantt(step, uncontended(step), {60, 16});
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    EXPECT_LE(line.size(), 60U);
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].substr(0, 12), "rank 0      ");
  // The first rank begins with forwards while the second waits, and ends with backwards.
  EXPECT_EQ(lines[0][12], 'F');
  EXPECT_EQ(lines[1][12], '.');
  EXPECT_LT(lines[0].find('F'), lines[1].find('F'));
  EXPECT_LT(lines[1].find('B'), lines[0].find('B'));
}

}  // namespace
}  // namespace towtank
