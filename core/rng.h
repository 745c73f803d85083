// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A seeded generator that gives the same numbers on every machine and standard library
/// (std distributions do not). SplitMix64: Steele, Lea, Flood, OOPSLA 2014.
/// Not for cryptography.
#include <cstdint>

namespace towtank {

class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [low, high]. Pre: low <= high.
  constexpr std::int64_t integer(std::int64_t low, std::int64_t high) {
    // Unsigned, where a difference and a sum may wrap.
    const auto first = static_cast<std::uint64_t>(low);
    const std::uint64_t range = static_cast<std::uint64_t>(high) - first + 1U;
    return static_cast<std::int64_t>(range == 0 ? next() : first + next() % range);
  }

 private:
  std::uint64_t state_;
};

}  // namespace towtank
