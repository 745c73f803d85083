// SPDX-License-Identifier: Apache-2.0
// A plan changes who computes what, never what is computed: loss and gradients of every plan are
// those of one process. In fp64 they differ by the order of sums only, about 1e-16 an operation, so
// a wrong term of any size that matters is seen; fp32 is what runs otherwise.
#include <cmath>

#include "tests/runtime/tiny_plans.h"

namespace towtank {
namespace {

using runtime_testing::kGpt;
using runtime_testing::kLlama;
using runtime_testing::kMixtral;
using runtime_testing::kQwen;
using runtime_testing::plan_text;
using runtime_testing::train;
using runtime_testing::Trained;

struct PlanCase {
  const std::string* model;
  int ranks;
  std::string plan;
};

/// One process, whole batch in microbatches of one: once for each model.
const Trained& alone(const std::string& model, bool fp64) {
  static std::map<std::pair<std::string, bool>, Trained> known;
  const auto key = std::pair(model, fp64);
  if (!known.contains(key)) known[key] = train(plan_text(model, 1, ""), 1, fp64, 0);
  return known[key];
}

void expect_equal(const PlanCase& c, bool fp64, double loss_tolerance, double tolerance) {
  SCOPED_TRACE(c.plan);
  const Trained& reference = alone(*c.model, fp64);
  Trained other;
  ASSERT_NO_THROW(other = train(plan_text(*c.model, c.ranks, c.plan), c.ranks, fp64, tolerance));
  ASSERT_EQ(other.losses.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(other.losses[i], reference.losses[i], loss_tolerance * reference.losses[i]) << i;
  }
  const Difference worst = compare(reference.gradients, other.gradients);
  EXPECT_LT(worst.error, tolerance) << worst.name;
}

void expect_all_equal(const std::vector<PlanCase>& cases) {
  for (const PlanCase& c : cases) expect_equal(c, true, 1e-13, 1e-11);
}

TEST(DifferRuntime, DataParallelAtEverySharding) {
  expect_all_equal({{&kGpt, 1, R"("microbatch":4)"},
                    {&kGpt, 2, R"("data":2)"},
                    {&kGpt, 2, R"("data":2,"sharding_stage":1)"},
                    {&kGpt, 2, R"("data":2,"sharding_stage":2,"microbatch":2)"},
                    {&kGpt, 2, R"("data":2,"sharding_stage":3,"recompute":"full")"}});
}

TEST(DifferRuntime, TensorParallel) {
  expect_all_equal(
      {{&kGpt, 2, R"("tensor":2)"},
       {&kGpt, 2, R"("tensor":2,"sequence_parallel":true)"},
       {&kQwen, 4, R"("tensor":2,"data":2,"sequence_parallel":true,"sharding_stage":1)"}});
}

TEST(DifferRuntime, Schedules) {
  expect_all_equal(
      {{&kGpt, 2, R"("pipeline":2,"schedule":"gpipe","recompute":"selective")"},
       {&kGpt, 2, R"("pipeline":2,"schedule":"1f1b")"},
       {&kGpt, 2, R"("pipeline":2,"schedule":"zb-h1")"},
       {&kLlama, 2, R"("pipeline":2,"stages_per_rank":2,"schedule":"interleaved")"},
       {&kQwen, 4, R"("pipeline":2,"data":2,"schedule":"zb-h1","sharding_stage":3)"},
       {&kLlama, 4,
        R"("pipeline":2,"tensor":2,"schedule":"1f1b","sequence_parallel":true,"recompute":"full")"}});
}

TEST(DifferRuntime, Experts) {
  expect_all_equal(
      {{&kMixtral, 2, R"("data":2,"expert":2,"sharding_stage":1)"},
       {&kMixtral, 2, R"("tensor":2,"expert":2,"sequence_parallel":true,"recompute":"full")"},
       {&kMixtral, 4, R"("data":4,"expert":2,"sharding_stage":3)"}});
}

// fp32 rounds at 6e-8; sums over 128 tokens and three steps of Adam, which divides by the root of
// small numbers, lose up to three digits of it.
TEST(DifferRuntime, SinglePrecision) {
  expect_equal(
      {&kLlama, 4, R"("tensor":2,"pipeline":2,"schedule":"1f1b","sequence_parallel":true)"}, false,
      1e-5, 1e-3);
}

// What no plan may change, the seed does.
TEST(LawRuntime, StartsNearTheEntropyOfItsVocabulary) {
  const Trained& gpt = alone(kGpt, true);
  EXPECT_NEAR(gpt.losses.front(), std::log(64.0), 0.1);
}

// The parts of a step are all of it, on every rank.
TEST(LawRuntime, PartsSumToTheStep) {
  const Trained run =
      train(plan_text(kGpt, 2, R"("pipeline":2,"schedule":"1f1b")"), 2, false, 1e-5);
  for (std::size_t step = 0; step < 3; ++step) {
    for (const MeasuredStep& m : measure(run.record, step)) {
      EXPECT_NEAR(m.total().value, m.step.value, 1e-9);
      EXPECT_GT(m.compute.value, 0);
      EXPECT_GT(m.optimizer.value, 0);
    }
  }
  // Adam's two moments in fp32.
  for (const RankRecord& rank : run.record.ranks) {
    const auto bytes = [&](const std::string& name) {
      for (const auto& [kind, n] : rank.memory) {
        if (kind == name) return n;
      }
      return std::int64_t{-1};
    };
    EXPECT_EQ(bytes("optimizer"), 2 * bytes("parameters"));
    EXPECT_EQ(bytes("gradients"), bytes("parameters"));
    EXPECT_GT(bytes("activations"), 0);
  }
}

}  // namespace
}  // namespace towtank
