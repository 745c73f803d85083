// SPDX-License-Identifier: Apache-2.0
#include "core/units.h"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>

#include "core/id.h"

namespace towtank {
namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanMultiply = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};

TEST(UnitUnits, OnlySumsOfOneDimensionCompile) {
  static_assert(CanAdd<Seconds, Seconds>);
  static_assert(CanAdd<Bytes, Bytes>);
  static_assert(!CanAdd<Seconds, Bytes>);
  static_assert(!CanAdd<Seconds, Flop>);
  static_assert(!CanAdd<BytesPerSecond, FlopPerSecond>);
  static_assert(!CanAdd<Seconds, double>);
  static_assert(!CanMultiply<Seconds, Seconds>);
  static_assert(!CanCompare<Seconds, Watts>);
  static_assert(!std::is_convertible_v<double, Seconds>);
  static_assert(!std::is_convertible_v<Seconds, double>);
}

TEST(UnitUnits, QuotientsOfAmountAndRateAreTimes) {
  const Bytes payload{450'000'000'000};
  const BytesPerSecond rate{450e9};
  EXPECT_EQ(payload / rate, Seconds{1.0});
  EXPECT_EQ(payload / Seconds{2.0}, BytesPerSecond{450e9 / 2});
  EXPECT_EQ(Flop{3e12} / FlopPerSecond{1.5e12}, Seconds{3.0 / 1.5});
  EXPECT_EQ(Flop{3e12} / Seconds{2.0}, FlopPerSecond{3e12 / 2});
  EXPECT_EQ(Seconds{3.0} / Seconds{2.0}, 1.5);
}

TEST(UnitUnits, SumsAndMultiples) {
  Seconds t = 2.0 * Seconds{1.5} + Seconds{0.5} * 4.0 - Seconds{1.0};
  EXPECT_EQ(t, Seconds{3.0 + 2.0 - 1.0});
  t += Seconds{1.0};
  t -= Seconds{2.0};
  EXPECT_EQ(t, Seconds{4.0 + 1.0 - 2.0});
  EXPECT_EQ(t / 2.0, Seconds{1.5});
  EXPECT_LT(Seconds{1.0}, Seconds{1.0 + 1e-15});
  Bytes memory = 3 * Bytes{7} + Bytes{1} - Bytes{2};
  memory += Bytes{5};
  EXPECT_EQ(memory, Bytes{21 + 1 - 2 + 5});
}

TEST(UnitUnits, BytesAddUpWhereDoublesDoNot) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ((Bytes{odd} + Bytes{1}).value, odd + 1);
  EXPECT_NE(static_cast<std::int64_t>(static_cast<double>(odd)), odd);
}

TEST(UnitUnits, PartsOfATensorArePadded) {
  EXPECT_EQ(bytes_from(10.0 / 4), Bytes{3});
  EXPECT_EQ(bytes_from(8.0 / 4), Bytes{2});
  EXPECT_EQ(bytes_from(0.0), Bytes{0});
  EXPECT_EQ(bytes_from(1e-9), Bytes{1});
}

TEST(UnitId, IdsOfTwoKindsDoNotMix) {
  using RankId = Id<struct UnitIdRankTag>;
  using StageId = Id<struct UnitIdStageTag>;
  static_assert(!std::is_convertible_v<RankId, StageId>);
  static_assert(!std::equality_comparable_with<RankId, StageId>);
  static_assert(
      !std::is_invocable_v<decltype([](auto& v, auto i) -> decltype(v[i]) { return v[i]; }),
                           IdVector<RankId, int>&, StageId>);
  IdVector<RankId, int> items(2, 7);
  const RankId third = items.push_back(9);
  EXPECT_EQ(third, RankId{2});
  EXPECT_EQ(items[third], 9);
  items[RankId{0}] = 5;
  int sum = 0;
  for (const int item : items) sum += item;
  EXPECT_EQ(sum, 5 + 7 + 9);
  EXPECT_EQ(items.size(), 3U);
  EXPECT_FALSE(items.empty());
  EXPECT_LT(RankId{1}, third);
}

}  // namespace
}  // namespace towtank
