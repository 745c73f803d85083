// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/rank_skew.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace towtank {
namespace {

/// Group, name, sequence or turn; the group's ranks, since two groups may share a name.
using Key = std::tuple<std::string, std::string, std::int64_t, std::vector<int>>;

std::vector<int> stated_ranks(const Trace& trace, const TraceCollectiveCall& call) {
  const TraceEvent& kernel = trace.events[static_cast<std::size_t>(call.event)];
  if (kernel.collective < 0) return {};
  return trace.collectives[static_cast<std::size_t>(kernel.collective)].ranks;
}

std::map<Key, MatchedCollective> matched(const std::vector<SkewRank>& ranks) {
  std::map<Key, MatchedCollective> out;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::map<Key, std::int64_t> turns;
    for (std::size_t c = 0; c < ranks[r].calls->size(); ++c) {
      const TraceCollectiveCall& call = (*ranks[r].calls)[c];
      // Streams of two ranks need not have the same numbers.
      const std::string group = call.group.starts_with("stream ") ? std::string() : call.group;
      Key key{group, call.sequence >= 0 ? std::string() : call.name, call.sequence,
              stated_ranks(*ranks[r].trace, call)};
      if (call.sequence < 0) std::get<2>(key) = turns[key]++;
      const TraceEvent& e = ranks[r].trace->events[static_cast<std::size_t>(call.event)];
      MatchedCollective& one = out[key];
      if (!one.parts.empty() && one.parts.back().rank == r) continue;  // the same one again
      one.parts.push_back({r, c, e.start_ns, e.duration_ns});
    }
  }
  return out;
}

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_waits(MatchedCollective& one, std::vector<RankWaits>& ranks) {
  one.last = static_cast<std::size_t>(
      std::min_element(one.parts.begin(), one.parts.end(),
                       [](const auto& a, const auto& b) { return a.duration_ns < b.duration_ns; }) -
      one.parts.begin());
  one.wire_ns = one.parts[one.last].duration_ns;
  std::int64_t waited = 0;
  for (const auto& part : one.parts) {
    ranks[part.rank].waited_ns += part.duration_ns - one.wire_ns;
    waited += part.duration_ns - one.wire_ns;
  }
  RankWaits& last = ranks[one.parts[one.last].rank];
  ++last.last;
  last.held_up_ns += waited / static_cast<std::int64_t>(one.parts.size() - 1);
}

std::vector<std::int64_t> offsets(const std::vector<MatchedCollective>& collectives,
                                  std::size_t ranks) {
  std::vector<std::vector<std::int64_t>> ahead(ranks);
  for (const MatchedCollective& one : collectives) {
    std::vector<std::int64_t> ends;
    for (const auto& part : one.parts) ends.push_back(part.start_ns + part.duration_ns);
    const std::int64_t middle = median(ends);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      ahead[one.parts[i].rank].push_back(ends[i] - middle);
    }
  }
  std::vector<std::int64_t> out(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (!ahead[r].empty()) out[r] = median(ahead[r]);
  }
  return out;
}

}  // namespace

int RankSkew::straggler() const {
  const auto most = std::max_element(
      ranks.begin(), ranks.end(),
      [](const RankWaits& a, const RankWaits& b) { return a.held_up_ns < b.held_up_ns; });
  return collectives.empty() ? -1 : static_cast<int>(most - ranks.begin());
}

RankSkew rank_skew(const std::vector<SkewRank>& ranks) {
  RankSkew out;
  out.ranks.resize(ranks.size());
  for (auto& [key, one] : matched(ranks)) {
    if (one.parts.size() < 2) {
      ++out.unmatched;
      continue;
    }
    add_waits(one, out.ranks);
    out.collectives.push_back(std::move(one));
  }
  std::stable_sort(out.collectives.begin(), out.collectives.end(),
                   [](const auto& a, const auto& b) {
                     return a.parts.front().start_ns < b.parts.front().start_ns;
                   });
  out.offset_ns = offsets(out.collectives, ranks.size());
  return out;
}

}  // namespace towtank
