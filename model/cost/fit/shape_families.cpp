// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/shape_families.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>

namespace towtank {
namespace {

constexpr std::int64_t kTile = 128;

using Knot = ShapeFamily::Knot;
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How far knot i lies off the line from a to b.
double off_line(const std::vector<Knot>& knots, std::size_t a, std::size_t b, std::size_t i) {
  const auto x = [&](std::size_t j) { return std::log(static_cast<double>(knots[j].m)); };
  const double share = (x(i) - x(a)) / (x(b) - x(a));
  const double line = knots[a].log_ratio + share * (knots[b].log_ratio - knots[a].log_ratio);
  return std::abs(knots[i].log_ratio - line);
}

struct Worst {
  std::size_t index = 0;
  double off = 0.0;
};

Worst worst_between(const std::vector<Knot>& knots, std::size_t a, std::size_t b) {
  Worst worst;
  for (std::size_t i = a + 1; i < b; ++i) {
    const double off = off_line(knots, a, b, i);
    if (off > worst.off) worst = {i, off};
  }
  return worst;
}

/// Where a sweep is dense, whole tiles alone: between them times climb in steps.
std::vector<Knot> whole_tiles(const std::vector<Knot>& knots, int most) {
  if (static_cast<int>(knots.size()) <= most) return knots;
  std::vector<Knot> out;
  std::copy_if(knots.begin(), knots.end(), std::back_inserter(out),
               [](const Knot& knot) { return knot.m % kTile == 0; });
  return out.size() < 2 ? knots : out;
}

/// Takes in the knot that is furthest off, again and again.
std::vector<Knot> thinned(const std::vector<Knot>& all, double tolerance, int most) {
  std::vector<Knot> knots = whole_tiles(all, most);
  if (knots.size() < 3) return knots;
  std::vector<std::size_t> kept{0, knots.size() - 1};
  while (static_cast<int>(kept.size()) < most) {
    Worst worst;
    for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
      const Worst here = worst_between(knots, kept[i], kept[i + 1]);
      if (here.off > worst.off) worst = here;
    }
    if (worst.off <= tolerance) break;
    kept.insert(std::upper_bound(kept.begin(), kept.end(), worst.index), worst.index);
  }
  std::vector<Knot> out;
  for (const std::size_t i : kept) out.push_back(knots[i]);
  return out;
}

}  // namespace

std::vector<ShapeFamily> shape_families(const std::vector<MeasuredProduct>& products,
                                        double tolerance, int most_knots) {
  std::map<Key, std::map<std::int64_t, std::vector<double>>> ratios;
  for (const MeasuredProduct& p : products) ratios[{p.batch, p.n, p.k}][p.m].push_back(p.log_ratio);
  std::vector<ShapeFamily> out;
  for (const auto& [key, by_m] : ratios) {
    std::vector<Knot> knots;
    for (const auto& [m, values] : by_m) knots.push_back({m, median(values)});
    const auto [batch, n, k] = key;
    out.push_back({batch, n, k, thinned(knots, tolerance, most_knots)});
  }
  return out;
}

}  // namespace towtank
