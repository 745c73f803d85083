// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/background.h"

#include <algorithm>

#include "core/contracts.h"
#include "core/rng.h"

namespace towtank::detail {
namespace {

/// "node" names every unit of its level, "node 3" one node or all of its rails.
bool names(const Background& b, const std::string& unit) {
  return unit == b.links || unit.starts_with(b.links + " ");
}

bool names_level(const Background& b, const UnitLevel& level) { return b.links == level.name; }

}  // namespace

UnitsApart apart_by(std::span<const Background> backgrounds, std::span<const UnitLevel> levels,
                    int devices) {
  UnitsApart out(levels.size());
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const int units = (devices + levels[l].size - 1) / levels[l].size;
    for (const Background& b : backgrounds) {
      if (names_level(b, levels[l]) && b.burst.value == 0) continue;
      for (int unit = 0; unit < units; ++unit) {
        if (names(b, unit_name(levels[l], unit))) out[l].insert(unit);
      }
    }
  }
  return out;
}

void add_background(std::span<const Background> backgrounds, std::uint64_t seed, Seconds piece,
                    Network& network) {
  for (const Background& b : backgrounds) {
    EXPECTS((b.share > 0 && b.share <= 1) != (b.rate.value > 0) && b.burst.value >= 0);
    for (std::size_t l = 0; l < network.links.size(); ++l) {
      const SharedLink& link = network.links[l];
      const std::string unit = link.name.substr(0, link.name.rfind(' '));
      if (!names(b, unit) || (b.up && *b.up != link.up)) continue;
      const double rate =
          std::min(link.capacity, b.share > 0 ? b.share * link.capacity : b.rate.value);
      LinkTraffic traffic;
      traffic.link = static_cast<std::int32_t>(l);
      traffic.seed = Rng(seed).next() + network.background.size();
      traffic.bytes = rate * piece.value;
      traffic.rate = rate;
      if (b.burst.value > 0) {
        traffic.bytes = static_cast<double>(b.burst.value);
        traffic.rate = link.capacity;
        traffic.mean_gap = traffic.bytes / rate - traffic.bytes / link.capacity;
      }
      if (traffic.bytes > 0) network.background.push_back(traffic);
    }
  }
}

}  // namespace towtank::detail
