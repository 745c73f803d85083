// SPDX-License-Identifier: Apache-2.0
#include "placement/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/rng.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

double slowest(const std::vector<int>& bounds, const std::vector<Seconds>& times, double first,
               double last) {
  double worst = 0;
  const std::size_t stages = bounds.size() - 1;
  for (std::size_t s = 0; s < stages; ++s) {
    double sum = (s == 0 ? first : 0) + (s + 1 == stages ? last : 0);
    for (int i = bounds[s]; i < bounds[s + 1]; ++i) sum += times[static_cast<std::size_t>(i)].value;
    worst = std::max(worst, sum);
  }
  return worst;
}

double brute_force(const std::vector<Seconds>& times, double first, double last, int stages) {
  const int layers = static_cast<int>(times.size());
  double best = 1e300;
  std::vector<int> bounds{0};
  const std::function<void()> recurse = [&] {
    const int left = stages - static_cast<int>(bounds.size()) + 1;
    if (left == 1) {
      bounds.push_back(layers);
      best = std::min(best, slowest(bounds, times, first, last));
      bounds.pop_back();
      return;
    }
    for (int b = bounds.back() + 1; b <= layers - left + 1; ++b) {
      bounds.push_back(b);
      recurse();
      bounds.pop_back();
    }
  };
  recurse();
  return best;
}

TEST(DifferSplit, BalancedIsTheBestOfAllSplits) {
  Rng rng(11);
  for (int i = 0; i < 400; ++i) {
    const int layers = static_cast<int>(rng.integer(1, 9));
    const int stages = static_cast<int>(rng.integer(1, std::min(4, layers)));
    std::vector<Seconds> times;
    for (int k = 0; k < layers; ++k) times.push_back({rng.uniform(0.5, 3.0)});
    const double first = rng.uniform(0, 2), last = rng.uniform(0, 5);
    const auto bounds = balanced_split(times, Seconds{first}, Seconds{last}, stages);
    EXPECT_NEAR(slowest(bounds, times, first, last) / brute_force(times, first, last, stages), 1.0,
                1e-8);
  }
}

TEST(DifferSplit, EqualLayersGoTheSameWay) {
  Rng rng(13);
  for (int i = 0; i < 400; ++i) {
    const int layers = static_cast<int>(rng.integer(1, 10));
    const int stages = static_cast<int>(rng.integer(1, std::min(4, layers)));
    const double time = rng.uniform(0.1, 2.0);
    const double first = rng.integer(0, 1) == 0 ? 0.0 : rng.uniform(0, 4 * time);
    const double last = rng.integer(0, 1) == 0 ? 0.0 : rng.uniform(0, 4 * time);
    const std::vector<Seconds> times(static_cast<std::size_t>(layers), Seconds{time});
    const auto bounds =
        balanced_split(layers, Seconds{time}, Seconds{first}, Seconds{last}, stages);
    ASSERT_EQ(bounds.front(), 0);
    ASSERT_EQ(bounds.back(), layers);
    for (std::size_t s = 1; s < bounds.size(); ++s) EXPECT_LT(bounds[s - 1], bounds[s]);
    EXPECT_NEAR(slowest(bounds, times, first, last) / brute_force(times, first, last, stages), 1.0,
                1e-8)
        << layers << " layers, " << stages << " stages, first " << first / time << " last "
        << last / time;
  }
}

TEST(UnitSplit, EvenGivesTheRemainderToInnerStages) {
  EXPECT_EQ(even_split(8, 4), (std::vector<int>{0, 2, 4, 6, 8}));
  EXPECT_EQ(even_split(10, 4), (std::vector<int>{0, 2, 5, 8, 10}));
  EXPECT_EQ(even_split(126, 16).back(), 126);
}

TEST(UnitSplit, AHeadOfTwoLayersTakesTwoFromTheLastStage) {
  // 32 layers and a head of 2: 34 layers over 4 stages are 8.5, so 9, 9, 8 and 6 + 2.
  const auto bounds = balanced_split(32, Seconds{1}, Seconds{0}, Seconds{2}, 4);
  const std::vector<Seconds> times(32, Seconds{1});
  EXPECT_EQ(slowest(bounds, times, 0, 2), 9.0);
  EXPECT_LE(bounds[4] - bounds[3], 7);
}

}  // namespace
}  // namespace towtank
