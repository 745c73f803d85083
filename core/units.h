// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Physical quantities: one tag per dimension, so only the products and quotients that mean
/// something compile. Stored in base units (second, byte, FLOP, watt, US dollar).
///
/// Rates use GB = 1e9 bytes; memory is counted in whole bytes (int64), because memory must add up.
/// Work is a double: a long training run (3e23 FLOP) exceeds int64.
#include <compare>
#include <cstdint>

namespace towtank {

template <class Tag>
struct Quantity {
  double value = 0.0;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {k * a.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {k * a.value}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return {a.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity b) {
    value += b.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value -= b.value;
    return *this;
  }
};

using Seconds = Quantity<struct SecondTag>;
using Flop = Quantity<struct FlopTag>;  ///< a count of floating-point operations
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag>;
using Watts = Quantity<struct WattTag>;
using Usd = Quantity<struct UsdTag>;

/// Exact bytes: memory must add up.
struct Bytes {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  friend constexpr Bytes operator*(std::int64_t k, Bytes a) { return {k * a.value}; }
  constexpr Bytes& operator+=(Bytes b) {
    value += b.value;
    return *this;
  }
};

/// A real number of bytes rounded up to whole ones (a shard of a tensor is padded, never cut).
[[nodiscard]] constexpr Bytes bytes_from(double real) {
  const auto whole = static_cast<std::int64_t>(real);
  return {static_cast<double>(whole) < real ? whole + 1 : whole};
}

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return {static_cast<double>(b.value) / r.value};
}
constexpr BytesPerSecond operator/(Bytes b, Seconds t) {
  return {static_cast<double>(b.value) / t.value};
}
constexpr Seconds operator/(Flop f, FlopPerSecond r) { return {f.value / r.value}; }
constexpr FlopPerSecond operator/(Flop f, Seconds t) { return {f.value / t.value}; }

}  // namespace towtank
