// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Named tolerances, and the relative difference that they bound.
#include <algorithm>
#include <cmath>

namespace towtank::testing {

/// The same arithmetic in the same order, or integers: no difference at all.
inline constexpr double kExact = 0.0;
/// The same formula, summed or grouped otherwise: a few hundred roundings of 1.1e-16.
inline constexpr double kSameArithmetic = 1e-12;
/// Two programs for the same model (closed form and SimGrid without contention).
inline constexpr double kTwoEngines = 1e-9;
/// Printed with three significant digits: half a unit of the third is at most 0.5 %.
inline constexpr double kThreeDigits = 5e-3 + 1e-9;

/// |a - b| over the larger magnitude; 0 for two zeros, infinite if one is not a number.
[[nodiscard]] inline double relative_difference(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return HUGE_VAL;
  if (a == b) return 0.0;
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

}  // namespace towtank::testing

/// For files that include Google Test.
#define EXPECT_CLOSE(actual, expected, tolerance)                                       \
  EXPECT_LE(::towtank::testing::relative_difference((actual), (expected)), (tolerance)) \
      << #actual " = " << (actual) << ", expected " #expected " = " << (expected)
