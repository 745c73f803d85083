// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace towtank {
namespace {

TEST(UnitRng, FollowsSplitMix64) {
  // The first outputs of the reference implementation (Vigna, splitmix64.c) for seed 1234567.
  Rng rng(1234567);
  EXPECT_EQ(rng.next(), 6457827717110365317ULL);
  EXPECT_EQ(rng.next(), 3203168211198807973ULL);
  EXPECT_EQ(rng.next(), 9817491932198370423ULL);
  EXPECT_EQ(rng.next(), 4593380528125082431ULL);
  EXPECT_EQ(rng.next(), 16408922859458223821ULL);
}

TEST(LawRng, OneSeedOneSequence) {
  Rng a(7);
  Rng b(7);
  Rng c(8);
  int equal_to_other_seed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.next();
    EXPECT_EQ(value, b.next());
    equal_to_other_seed += value == c.next() ? 1 : 0;
  }
  EXPECT_EQ(equal_to_other_seed, 0);
}

TEST(LawRng, UniformFillsItsRange) {
  Rng rng(1);
  constexpr int kDraws = 100'000;
  constexpr int kBins = 10;
  std::array<int, kBins> bins{};
  double sum = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  // Standard deviations: mean 1/sqrt(12 n) = 9.1e-4, bin sqrt(n/10 * 9/10) = 95; five of each.
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 9.2e-4);
  for (const int bin : bins) EXPECT_NEAR(bin, kDraws / kBins, 5 * 95);
}

TEST(LawRng, IntegersReachBothEndsAndNoFarther) {
  Rng rng(2);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = rng.integer(-3, 4);
    ASSERT_GE(value, -3);
    ASSERT_LE(value, 4);
    low = low || value == -3;
    high = high || value == 4;
  }
  EXPECT_TRUE(low);
  EXPECT_TRUE(high);
  EXPECT_EQ(rng.integer(5, 5), 5);
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(rng.integer(kMin, kMax), rng.integer(kMin, kMax));
}

TEST(LawRng, IntervalsScale) {
  Rng unit(3);
  Rng scaled(3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(scaled.uniform(2.0, 6.0), 2.0 + 4.0 * unit.uniform());
}

}  // namespace
}  // namespace towtank
