// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/units.h"

#include <algorithm>
#include <array>

#include "core/contracts.h"

namespace towtank::detail {
namespace {

/// Devices of one actor in one unit, and how many of them send out of it.
using Share = std::array<int, 4>;  // actor, devices, to next, to previous

}  // namespace

std::vector<UnitLevel> unit_levels(const PlanProblem& problem) {
  const NetworkView& view = problem.view;
  const NodeKind& node = problem.platform->node_kinds[view.node];
  std::vector<UnitLevel> out;
  for (std::size_t l = 0; l < view.levels.size(); ++l) {
    UnitLevel level{"device", 1, 1, 0};
    if (l > 0) level = {l == 1 ? "node" : view.levels[l - 1].name, view.levels[l - 1].group, 1, 0};
    if (l == 1 && node.nics > 1) {
      const int shared = node.nics >= node.devices ? 1 : node.devices / node.nics;
      const bool even = node.devices % node.nics == 0 || node.nics % node.devices == 0;
      if (even && level.size % shared == 0) {
        level.rails = level.size / shared;
        level.size = shared;
      }
    }
    level.capacity = level.size * view.levels[l].bandwidth.value;
    out.push_back(std::move(level));
  }
  return out;
}

std::string unit_name(const UnitLevel& level, int unit) {
  std::string out = level.name + " " + std::to_string(unit / level.rails);
  if (level.rails > 1) out += " rail " + std::to_string(unit % level.rails);
  return out;
}

Units::Units(const PlanProblem& problem, const RankLayout& layout, int actors, int ranks_per_flow,
             const UnitsApart& apart, Network& network)
    : network_(&network),
      ranks_per_flow_(ranks_per_flow),
      node_(problem.view.levels.empty() ? 1 : problem.view.levels[0].group) {
  const std::vector<UnitLevel> levels = unit_levels(problem);
  EXPECTS(levels.size() <= kMaxLevels && (apart.empty() || apart.size() == levels.size()));
  touched_.resize(levels.size());
  for (std::size_t l = 0; l < levels.size(); ++l) {
    add_level(layout, static_cast<int>(l), levels[l], apart.empty() ? std::set<int>{} : apart[l],
              actors);
  }
}

void Units::add_level(const RankLayout& layout, int level, const UnitLevel& what,
                      const std::set<int>& apart, int actors) {
  const std::size_t n = layout.device.size();
  std::vector<int> previous(n);
  for (std::size_t r = 0; r < n; ++r)
    previous[static_cast<std::size_t>(layout.next[r])] = static_cast<int>(r);
  // What leaves a rail leaves its node.
  const int border = level == 1 ? node_ : what.size;
  const auto passes = [&](std::size_t rank, int peer) {
    const int a = layout.device[rank];
    const int b = layout.device[static_cast<std::size_t>(peer)];
    return level == 0 ? a != b && a / node_ == b / node_ : a / border != b / border;
  };
  std::map<int, std::map<int, Share>> units;
  for (std::size_t r = 0; r < n; ++r) {
    const int actor = layout.actor[r];
    Share& share =
        units[layout.device[r] / what.size].try_emplace(actor, Share{actor, 0, 0, 0}).first->second;
    ++share[1];
    share[2] += passes(r, layout.next[r]) ? 1 : 0;
    share[3] += passes(r, previous[r]) ? 1 : 0;
  }
  std::map<std::vector<Share>, int> known;
  auto& touched = touched_[static_cast<std::size_t>(level)];
  touched.resize(static_cast<std::size_t>(actors));
  for (const auto& [unit, shares] : units) {
    std::vector<Share> key;
    for (const auto& [actor, share] : shares) key.push_back(share);
    if (apart.contains(unit)) key.push_back({-1, unit, 0, 0});
    const auto [at, added] = known.try_emplace(key, static_cast<int>(classes_.size()));
    if (!added) {
      const UnitClass& c = classes_[static_cast<std::size_t>(at->second)];
      ++network_->links[static_cast<std::size_t>(c.up)].copies;
      ++network_->links[static_cast<std::size_t>(c.down)].copies;
      continue;
    }
    const auto first = static_cast<std::int32_t>(network_->links.size());
    const std::string label = unit_name(what, unit);
    network_->links.push_back({label + " up", level, true, what.capacity, 1});
    network_->links.push_back({label + " down", level, false, what.capacity, 1});
    for (const auto& [actor, share] : shares) {
      touched[static_cast<std::size_t>(share[0])].push_back(
          {static_cast<int>(classes_.size()), share[1], share[2], share[3]});
    }
    classes_.push_back({first, first + 1});
  }
}

std::int32_t Units::route(std::vector<std::int32_t> links) {
  std::sort(links.begin(), links.end());
  const auto [at, added] =
      routes_.try_emplace(links, static_cast<std::int32_t>(network_->routes.size()));
  if (added) network_->routes.push_back(std::move(links));
  return at->second;
}

void Units::add_flows(int devices, double bytes, double transfer, std::int32_t route,
                      std::vector<Flow>& flows) const {
  constexpr int kMost = 64;  // beyond it the weights of large units are only nearly right
  const int ways = ranks_per_flow_ > 0 ? std::clamp(devices / ranks_per_flow_, 1, kMost) : 1;
  for (int i = 0; i < ways; ++i) flows.push_back({bytes / ways, bytes / ways / transfer, route});
}

namespace {

/// A communication that loads no shared link still takes its time.
void add_private(const Communication& c, std::int32_t route, std::vector<Flow>& flows) {
  constexpr double kNominalRate = 1e9;
  if (flows.empty()) flows.push_back({c.transfer * kNominalRate, kNominalRate, route});
}

}  // namespace

std::vector<Flow> Units::collective(const Communication& c, std::span<const std::int32_t> actors) {
  std::vector<Flow> flows;
  if (c.transfer <= 0) return flows;
  for (std::size_t l = 0; l < touched_.size(); ++l) {
    if (c.load[l] <= 0) continue;
    for (const std::int32_t actor : actors) {
      std::map<int, std::vector<std::int32_t>> by_load;
      for (const Touch& t : touched_[l][static_cast<std::size_t>(actor)]) {
        const UnitClass& u = classes_[static_cast<std::size_t>(t.unit)];
        by_load[t.devices].insert(by_load[t.devices].end(), {u.up, u.down});
      }
      for (auto& [count, links] : by_load) {
        add_flows(count, count * c.load[l], c.transfer, route(std::move(links)), flows);
      }
    }
  }
  if (flows.empty()) add_private(c, route({}), flows);
  return flows;
}

std::vector<Flow> Units::send(const Communication& c, std::int32_t from, std::int32_t to,
                              bool forward) {
  std::vector<Flow> flows;
  if (c.transfer <= 0) return flows;
  for (std::size_t l = 0; l < touched_.size(); ++l) {
    if (c.load[l] <= 0) continue;
    std::map<int, std::vector<std::int32_t>> by_load;
    for (const Touch& t : touched_[l][static_cast<std::size_t>(from)]) {
      by_load[forward ? t.to_next : t.to_previous].push_back(
          classes_[static_cast<std::size_t>(t.unit)].up);
    }
    for (const Touch& t : touched_[l][static_cast<std::size_t>(to)]) {
      by_load[forward ? t.to_previous : t.to_next].push_back(
          classes_[static_cast<std::size_t>(t.unit)].down);
    }
    for (auto& [count, links] : by_load) {
      if (count == 0) continue;
      add_flows(count, count * c.load[l], c.transfer, route(std::move(links)), flows);
    }
  }
  if (flows.empty()) add_private(c, route({}), flows);
  return flows;
}

}  // namespace towtank::detail
