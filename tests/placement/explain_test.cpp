// SPDX-License-Identifier: Apache-2.0
#include "placement/explain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/unit_text.h"
#include "tests/support/near.h"
#include "tests/support/planning.h"

namespace towtank {
namespace explain_cases {

using testing::Question;

constexpr std::size_t at(auto e) { return static_cast<std::size_t>(e); }

/// Every field another value: 1, 2, 3, ...
StepBreakdown numbered_step() {
  StepBreakdown step;
  double next = 1;
  for (Seconds& t : step.compute) t = Seconds{next++};
  step.recompute = Seconds{next++};
  for (Seconds& t : step.exposed) t = Seconds{next++};
  step.bubble = Seconds{next++};
  step.optimizer = Seconds{next++};
  step.host_gaps = Seconds{next++};
  step.input = Seconds{next++};
  return step;
}

Prediction of(double products, double bubble, double data) {
  Prediction p;
  p.step.compute[at(OpKind::kMatmul)] = Seconds{products};
  p.step.bubble = Seconds{bubble};
  p.step.exposed[at(Axis::kData)] = Seconds{data};
  p.step_time = p.step.total();
  return p;
}

Plan data_parallel(int devices, int layers, int microbatch) {
  Plan plan;
  plan.data = devices;
  plan.microbatch = microbatch;
  expand_stages(plan, layers);
  return plan;
}

/// The catalogue's machine with another network between the nodes.
Platform with_network(const std::string& name, double factor) {
  Platform platform = load_platform(name);
  for (NetworkLevel& level : platform.levels) {
    if (level.fabric.bandwidth) level.fabric.bandwidth = factor * *level.fabric.bandwidth;
  }
  for (NodeKind& node : platform.node_kinds) {
    if (node.nic_bandwidth) node.nic_bandwidth = factor * *node.nic_bandwidth;
  }
  return platform;
}

constexpr const char* kSlowNetwork = "rtx4090x8-25gbe";
std::string small_gpt() { return testing::gpt2_config(1024, 12, 16, 32000, 1024); }

double data_share(const Prediction& p) { return p.step.exposed[at(Axis::kData)] / p.step_time; }

}  // namespace explain_cases

using namespace explain_cases;

TEST(UnitExplain, TermsAreAllPartsOfTheStep) {
  const StepBreakdown step = numbered_step();
  const auto terms = step_terms(step);
  const double sum = std::accumulate(terms.begin(), terms.end(), 0.0,
                                     [](double s, const StepTerm& t) { return s + t.time.value; });
  EXPECT_EQ(sum, step.total().value);
  const auto fields = kOpKindCount + kAxisCount + 5;
  EXPECT_EQ(terms.size(), fields);
  EXPECT_EQ(terms.front().name, "matrix products");
  EXPECT_EQ(terms.back().name, "input loading");
}

TEST(UnitExplain, MemoryTermsSumToTheTotal) {
  MemoryBreakdown m;
  m.parameters = {1};
  m.gradients = {2};
  m.optimizer = {4};
  m.activations = {8};
  m.logits = {16};
  m.working = {32};
  m.buffers = {64};
  m.context = {128};
  m.reserve = {256};
  Bytes sum;
  for (const MemoryTerm& term : memory_terms(m)) sum += term.bytes;
  EXPECT_EQ(sum.value, 511);
  EXPECT_EQ(sum, m.total());
}

TEST(UnitExplain, ALoserIsToldThePartThatGrewMost) {
  const Prediction best = of(8, 1, 1);       // 10 s
  const Prediction loser = of(8, 2.5, 0.5);  // 11 s: bubble + 1.5 s, data - 0.5 s
  const Difference d = difference(loser, best);
  EXPECT_NEAR(d.slower, 11.0 / 10.0 - 1, testing::kSameArithmetic);
  EXPECT_EQ(d.term, "bubble");
  EXPECT_NEAR(d.share, 2.5 / 10, testing::kSameArithmetic);
  EXPECT_NEAR(d.best_share, 1.0 / 10, testing::kSameArithmetic);
  EXPECT_EQ(to_text(d), "+10 %: bubble 25 vs 10 %");
  EXPECT_EQ(to_text(difference(best, best)), "as fast");
  EXPECT_EQ(to_text(difference(of(8, 0.5, 0.5), best)), "-10 %");  // a faster one has no reason
}

TEST(LawExplain, GrowthOfThePartsIsTheDifference) {
  const Prediction best = of(8, 1, 1);
  const Prediction loser = of(9, 0.25, 3);
  double growth = 0;
  const auto a = step_terms(loser.step);
  const auto b = step_terms(best.step);
  for (std::size_t i = 0; i < a.size(); ++i) growth += (a[i].time - b[i].time) / best.step_time;
  EXPECT_NEAR(growth, difference(loser, best).slower, testing::kSameArithmetic);
}

TEST(UnitExplain, ShortPercent) {
  EXPECT_EQ(short_percent(0.4132), "41");
  EXPECT_EQ(short_percent(0.0994), "9.9");
  EXPECT_EQ(short_percent(0.0996), "10");
  EXPECT_EQ(short_percent(0.032), "3.2");
  EXPECT_EQ(short_percent(0.03), "3");
  EXPECT_EQ(short_percent(0.004), "0.4");
  EXPECT_EQ(short_percent(0.0004), "0");
  EXPECT_EQ(short_percent(1.5), "150");
  EXPECT_EQ(short_percent(-0.032), "-3.2");
  EXPECT_EQ(short_percent(-0.003), "-0.3");
}

TEST(UnitExplain, RemediesThatHideAreJoined) {
  EXPECT_EQ(to_text(std::vector<Remedy>{}), "");
  EXPECT_EQ(
      to_text({{"2.3x the bandwidth", "hides it", true}, {"a doubled batch", "hides it", true}}),
      "2.3x the bandwidth or a doubled batch hides it");
  EXPECT_EQ(to_text({{"2.3x the bandwidth", "hides it", true}, {"a doubled batch", "leaves 9 %"}}),
            "2.3x the bandwidth hides it, a doubled batch leaves 9 %");
}

TEST(UnitExplain, AGradientReductionOverASlowNetworkBinds) {
  const Question q(small_gpt(), kSlowNetwork, 16, 1024, 64);
  const Plan plan = data_parallel(16, 12, 4);
  const Prediction now = q.predict(plan);
  const Explanation e = explain(q.problem(), plan, now);
  EXPECT_EQ(e.binding.kind, StepTerm::Kind::kExposed);
  EXPECT_EQ(e.binding.index, at(Axis::kData));
  EXPECT_NEAR(e.share, data_share(now), testing::kSameArithmetic);
  EXPECT_FALSE(e.largest_loss);
  EXPECT_EQ(e.sentence.find("inter-node gradient reduction, "), 0U) << e.sentence;
  EXPECT_EQ(e.sentence.back(), '.');
}

TEST(DifferExplain, TheFactorIsThatOfAMachineWithAFasterNetwork) {
  // A sixteenth of this machine's network binds; up to 16 times that, links inside a node do not.
  const auto question = [](double factor) {
    return std::make_unique<Question>(small_gpt(), with_network("dgx-a100-80g", factor / 16), 16,
                                      1024, 1024);
  };
  const auto slow = question(1);
  const Plan plan = data_parallel(16, 12, 8);
  const Explanation e = explain(slow->problem(), plan, slow->predict(plan));
  const StepTerm& term = e.largest_loss ? *e.largest_loss : e.binding;
  ASSERT_EQ(term.kind, StepTerm::Kind::kExposed) << e.sentence;
  ASSERT_EQ(term.index, at(Axis::kData)) << e.sentence;
  ASSERT_TRUE(e.remedies.at(0).hides) << e.sentence;
  const double factor = std::stod(e.remedies.front().change);
  ASSERT_GT(factor, 1.0);
  EXPECT_LT(data_share(question(factor)->predict(plan)), 0.01);
  EXPECT_GE(data_share(question(factor - 0.1)->predict(plan)), 0.01);
}

TEST(DifferExplain, LinksInsideTheNodeLimitWhatAFasterNetworkGives) {
  const Question slow(small_gpt(), kSlowNetwork, 16, 1024, 1024);
  const Plan plan = data_parallel(16, 12, 8);
  const Explanation e = explain(slow.problem(), plan, slow.predict(plan));
  ASSERT_EQ((e.largest_loss ? *e.largest_loss : e.binding).index, at(Axis::kData)) << e.sentence;
  // PCIe inside the box is not 16 times as fast: no network hides the reduction.
  EXPECT_GE(
      data_share(
          Question(small_gpt(), with_network(kSlowNetwork, 16), 16, 1024, 1024).predict(plan)),
      0.01);
  EXPECT_FALSE(e.remedies.at(0).hides) << e.sentence;
}

TEST(DifferExplain, ADoubledBatchIsThatOfTheWorkload) {
  const Question q(small_gpt(), kSlowNetwork, 16, 1024, 64);
  const Plan plan = data_parallel(16, 12, 4);
  const Explanation e = explain(q.problem(), plan, q.predict(plan));
  ASSERT_EQ(e.remedies.size(), 2U);
  const Question doubled(small_gpt(), kSlowNetwork, 16, 1024, 128);
  EXPECT_EQ(e.remedies[1].change, "a doubled batch");
  EXPECT_EQ(e.remedies[1].effect,
            "leaves " + short_percent(data_share(doubled.predict(plan))) + " %");
}

TEST(UnitExplain, RecomputationNamesTheMemoryThatItSaves) {
  const Question q(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  Plan plan;
  plan.tensor = 8;
  plan.pipeline = 4;
  plan.data = 2;
  plan.microbatch = 4;
  plan.sharding_stage = 1;
  plan.sequence_parallel = true;
  plan.schedule = ScheduleKind::kOneFOneB;
  plan.recompute = RecomputeMode::kFull;
  Plan without = plan;
  without.recompute = RecomputeMode::kNone;
  expand_stages(plan, 80);
  expand_stages(without, 80);
  const Explanation e = explain(q.problem(), plan, q.predict(plan));
  ASSERT_TRUE(e.largest_loss);
  ASSERT_EQ(e.largest_loss->kind, StepTerm::Kind::kRecompute) << e.sentence;
  const Bytes more = q.predict(without).peak_memory().total() - q.problem().capacity;
  ASSERT_GT(more.value, 0);
  EXPECT_EQ(e.remedies.at(0).change, to_text(more) + " more memory a device");
}

TEST(LawExplain, TheBindingTermIsTheLargest) {
  const Question q(testing::llama_70b(), "dgx-h100", 64, 8192, 128);
  for (const RankedPlan& ranked : q.best_first().plans) {
    const Explanation e = explain(q.problem(), ranked.plan, ranked.prediction);
    for (const StepTerm& term : step_terms(ranked.prediction.step)) {
      EXPECT_LE(term.time, e.binding.time);
      if (e.largest_loss && term.is_loss()) {
        EXPECT_LE(term.time, e.largest_loss->time);
      }
    }
  }
}

}  // namespace towtank
