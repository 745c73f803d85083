// SPDX-License-Identifier: Apache-2.0
#include "placement/split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/contracts.h"

namespace towtank {
namespace {

/// Fills stages from the back, each as full as the cap allows while leaving a layer for every
/// earlier stage; nullopt if layers are left over. Filling from the back gives the last stage,
/// which holds the head, no more than it can take and leaves slack to the first.
std::optional<std::vector<int>> fill(const std::vector<double>& prefix, double first, double last,
                                     int stages, double cap) {
  const int layers = static_cast<int>(prefix.size()) - 1;
  std::vector<int> bounds(static_cast<std::size_t>(stages) + 1);
  bounds.back() = layers;
  int end = layers;
  for (int s = stages - 1; s >= 0; --s) {
    const double extra = (s == stages - 1 ? last : 0) + (s == 0 ? first : 0);
    int begin = end;
    while (begin > s && prefix[static_cast<std::size_t>(end)] -
                                prefix[static_cast<std::size_t>(begin - 1)] + extra <=
                            cap) {
      --begin;
    }
    if (begin == end) return std::nullopt;
    bounds[static_cast<std::size_t>(s)] = begin;
    end = begin;
  }
  if (end != 0) return std::nullopt;
  return bounds;
}

double slowest(const std::vector<double>& prefix, double first, double last,
               const std::vector<int>& bounds) {
  double worst = 0;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    const double extra = (s + 2 == bounds.size() ? last : 0) + (s == 0 ? first : 0);
    worst = std::max(worst, prefix[static_cast<std::size_t>(bounds[s + 1])] -
                                prefix[static_cast<std::size_t>(bounds[s])] + extra);
  }
  return worst;
}

/// Every value that the slowest stage of equal layers can take near the balanced one.
double uniform_bottleneck(int layers, double time, double first, double last, int stages) {
  const auto feasible = [&](double cap) {
    const auto fits = [&](double extra) { return std::floor((cap - extra) / time * (1 + 1e-12)); };
    if (stages == 1) return fits(first + last) >= layers;
    const double f = fits(first), l = fits(last), m = fits(0);
    if (f < 1 || l < 1 || (stages > 2 && m < 1)) return false;
    return f + l + (stages - 2) * m >= layers;
  };
  double best = std::numeric_limits<double>::infinity();
  for (const double extra : {0.0, first, last, first + last}) {
    const double ideal = (layers * time + first + last) / stages;
    const double k = std::floor((ideal - extra) / time);
    for (int step = 0; step <= layers; ++step) {
      const double cap = extra + std::max(1.0, k + step) * time;
      if (cap >= best) break;
      if (feasible(cap)) {
        best = cap;
        break;
      }
    }
  }
  return best;
}

}  // namespace

std::vector<int> even_split(int layers, int stages) {
  EXPECTS(stages >= 1 && layers >= stages);
  const int base = layers / stages;
  int rest = layers % stages;
  std::vector<int> size(static_cast<std::size_t>(stages), base);
  for (int s = 1; s < stages - 1 && rest > 0; ++s, --rest) size[static_cast<std::size_t>(s)] += 1;
  if (rest > 0) {
    size.front() += 1;
    --rest;
  }
  if (rest > 0) size.back() += 1;
  std::vector<int> bounds{0};
  for (const int n : size) bounds.push_back(bounds.back() + n);
  return bounds;
}

std::vector<int> balanced_split(std::span<const Seconds> times, Seconds first, Seconds last,
                                int stages) {
  EXPECTS(stages >= 1 && static_cast<std::size_t>(stages) <= times.size());
  std::vector<double> prefix{0};
  double heaviest = 0;
  for (const Seconds t : times) {
    prefix.push_back(prefix.back() + t.value);
    heaviest = std::max(heaviest, t.value);
  }
  // Fill sums in another order: without the margin everything on one stage may not seem to fit.
  const double total = (prefix.back() + first.value + last.value) * (1 + 1e-12);
  double low = std::max(total / stages, heaviest), high = total;
  std::vector<int> best = *fill(prefix, first.value, last.value, stages, total);
  for (int i = 0; i < 60 && high - low > 1e-9 * total; ++i) {
    const double cap = 0.5 * (low + high);
    if (auto bounds = fill(prefix, first.value, last.value, stages, cap)) {
      best = std::move(*bounds);
      // No split lies between what this one needs and the cap that it was found under.
      high = std::min(cap, slowest(prefix, first.value, last.value, best));
    } else {
      low = cap;
    }
  }
  return best;
}

std::vector<int> balanced_split(int layers, Seconds layer_time, Seconds first, Seconds last,
                                int stages) {
  EXPECTS(stages >= 1 && layers >= stages);
  const double time = layer_time.value;
  if (time <= 0) return even_split(layers, stages);
  const double cap =
      uniform_bottleneck(layers, time, first.value, last.value, stages) * (1 + 1e-12);
  const auto fits = [&](double extra) {
    return static_cast<int>(std::floor((cap - extra) / time));
  };
  std::vector<int> size(static_cast<std::size_t>(stages), std::max(1, fits(0)));
  size.front() = std::max(1, fits(stages == 1 ? first.value + last.value : first.value));
  if (stages > 1) size.back() = std::max(1, fits(last.value));
  int surplus = -layers;
  for (const int n : size) surplus += n;
  // Take the surplus from the last and the first stage as far as the inner ones can spare less,
  // then one by one from the later inner stages: they hold fewer activations.
  const auto take = [&](std::size_t s, int floor) {
    const int n = std::clamp(size[s] - floor, 0, surplus);
    size[s] -= n;
    surplus -= n;
  };
  const int inner = std::max(1, fits(0) - 1);
  if (stages > 1) take(size.size() - 1, std::min(size.back(), std::max(1, inner)));
  take(0, std::min(size.front(), std::max(1, inner)));
  while (surplus > 0) {
    for (std::size_t s = size.size(); s-- > 0 && surplus > 0;) {
      if (size[s] > 1) {
        --size[s];
        --surplus;
      }
    }
  }
  std::vector<int> bounds{0};
  for (const int n : size) bounds.push_back(bounds.back() + n);
  return bounds;
}

}  // namespace towtank
