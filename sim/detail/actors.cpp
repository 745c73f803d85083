// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/actors.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/contracts.h"

namespace towtank::detail {
namespace {

/// Slowdown by replica and pipeline rank.
std::vector<std::vector<double>> slowdowns(const Plan& plan, const LowerOptions& options) {
  const auto pipeline = static_cast<std::size_t>(plan.pipeline);
  std::vector<std::vector<double>> out(static_cast<std::size_t>(plan.data),
                                       std::vector<double>(pipeline, 1.0));
  const int replica_ranks = plan.tensor * plan.context;
  const int expert_ranks = std::max(replica_ranks, plan.expert * plan.expert_tensor);
  for (const Straggler& s : options.stragglers) {
    EXPECTS(s.rank >= 0 && s.rank < plan.devices() && s.slowdown > 0);
    const int stage_ranks = replica_ranks * plan.data;
    const int first = s.rank % stage_ranks / expert_ranks * expert_ranks / replica_ranks;
    const int count = std::max(1, expert_ranks / replica_ranks);
    for (int d = first; d < std::min(first + count, plan.data); ++d) {
      double& slow =
          out[static_cast<std::size_t>(d)][static_cast<std::size_t>(s.rank / stage_ranks)];
      slow = std::max(slow, s.slowdown);
    }
  }
  return out;
}

int device_of(const Plan& plan, int rank) {
  return plan.rank_map.empty() ? rank : plan.rank_map[static_cast<std::size_t>(rank)];
}

/// How many ranks of a replica are behind which unit that stands apart: level, unit, pipeline rank.
using Behind = std::map<std::array<int, 3>, int>;
std::vector<Behind> behind_units(const Plan& plan, std::span<const UnitLevel> levels,
                                 const UnitsApart& apart) {
  std::vector<Behind> out(static_cast<std::size_t>(plan.data));
  const int replica_ranks = plan.tensor * plan.context;
  const int stage_ranks = replica_ranks * plan.data;
  for (std::size_t l = 0; l < apart.size(); ++l) {
    if (apart[l].empty()) continue;
    for (int r = 0; r < plan.devices(); ++r) {
      const int unit = device_of(plan, r) / levels[l].size;
      if (!apart[l].contains(unit)) continue;
      ++out[static_cast<std::size_t>(r % stage_ranks / replica_ranks)]
           [{static_cast<int>(l), unit, r / stage_ranks}];
    }
  }
  return out;
}

}  // namespace

Cast cast_of(const Plan& plan, const LowerOptions& options, std::span<const UnitLevel> levels,
             const UnitsApart& apart) {
  const auto slow = slowdowns(plan, options);
  const auto behind = behind_units(plan, levels, apart);
  std::map<std::pair<std::vector<double>, Behind>, int> known;
  std::vector<int> class_of;
  std::vector<int> first, count;
  for (int d = 0; d < plan.data; ++d) {
    const auto next = static_cast<int>(first.size());
    const int at = options.fold_replicas ? known
                                               .try_emplace({slow[static_cast<std::size_t>(d)],
                                                             behind[static_cast<std::size_t>(d)]},
                                                            next)
                                               .first->second
                                         : next;
    if (at == next) {
      first.push_back(d);
      count.push_back(0);
    }
    ++count[static_cast<std::size_t>(at)];
    class_of.push_back(at);
  }
  Cast cast;
  cast.classes = static_cast<int>(first.size());
  const int replica_ranks = plan.tensor * plan.context;
  for (int p = 0; p < plan.pipeline; ++p) {
    for (std::size_t c = 0; c < first.size(); ++c) {
      cast.actors.push_back(
          {p, first[c], count[c], count[c] * replica_ranks,
           replica_ranks * (first[c] + plan.data * p),
           slow[static_cast<std::size_t>(first[c])][static_cast<std::size_t>(p)]});
    }
  }
  const int stage_ranks = replica_ranks * plan.data;
  for (int r = 0; r < plan.devices(); ++r) {
    const int replica = r % stage_ranks / replica_ranks;
    cast.layout.device.push_back(device_of(plan, r));
    cast.layout.actor.push_back(
        cast.actor(r / stage_ranks, class_of[static_cast<std::size_t>(replica)]));
    cast.layout.next.push_back((r + stage_ranks) % plan.devices());
  }
  return cast;
}

}  // namespace towtank::detail
