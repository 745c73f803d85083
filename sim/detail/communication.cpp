// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/communication.h"

#include <algorithm>

#include "core/contracts.h"
#include "model/cost/collective_cost.h"

namespace towtank::detail {
namespace {

/// Bytes that one device sends through a level, per byte of payload.
double load_share(Collective op, const GroupShape& group, std::size_t level) {
  int units = 1;  // of the level below, in the whole group
  bool crossed = false;
  for (std::size_t i = group.per_level.size(); i-- > level;) {
    units *= group.per_level[i];
    crossed = crossed || (level == 0 ? i == 0 && group.per_level[0] > 1 : group.per_level[i] > 1);
  }
  if (!crossed) return 0;
  const double n = group.size;
  const double below = std::max(1, group.size / units);
  switch (op) {
    case Collective::kSendRecv:
      return 1;
    case Collective::kAllToAll:
      return level == 0 ? (group.per_level[0] - 1) / n : (n - below) / n;
    case Collective::kAllReduce:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kBroadcast:
      return wire_factor(op, group.size) / below;
  }
  contract_violated("EXPECTS", "op is a Collective", __FILE__, __LINE__);
}

}  // namespace

void Communication::add(const Communication& other, double times) {
  latency += times * other.latency;
  transfer += times * other.transfer;
  for (std::size_t i = 0; i < load.size(); ++i) load[i] += times * other.load[i];
}

Communication scaled(const Communication& c, double factor) {
  Communication out;
  out.add(c, factor);
  return out;
}

Communication collective_of(const PlanProblem& problem, Collective op, Bytes payload,
                            const GroupShape& group) {
  Communication out;
  if (group.size <= 1 || payload.value <= 0) return out;
  EXPECTS(group.per_level.size() <= kMaxLevels);
  const CollectiveCost cost = problem.costs->collective({op, payload, group});
  out.latency = (cost.launch + cost.latency).value;
  out.transfer = cost.transfer.value;
  for (std::size_t l = 0; l < group.per_level.size(); ++l) {
    out.load[l] = std::min(static_cast<double>(payload.value) * load_share(op, group, l),
                           out.transfer * problem.view.levels[l].bandwidth.value);
  }
  return out;
}

Communication collective_in_calls(const PlanProblem& problem, Collective op, double bytes,
                                  const GroupShape& group, int calls) {
  return scaled(collective_of(problem, op, bytes_from(bytes / calls), group), calls);
}

Communication send_of(const PlanProblem& problem, Bytes payload, const GroupShape& pair) {
  Communication out = collective_of(problem, Collective::kSendRecv, payload, pair);
  for (std::size_t l = 0; l < problem.view.levels.size(); ++l) {
    out.load[l] = std::min(static_cast<double>(payload.value),
                           out.transfer * problem.view.levels[l].bandwidth.value);
  }
  return out;
}

bool leaves_node(const GroupShape& group) {
  return std::any_of(group.per_level.begin() + (group.per_level.empty() ? 0 : 1),
                     group.per_level.end(), [](int ranks) { return ranks > 1; });
}

}  // namespace towtank::detail
