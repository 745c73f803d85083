// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/collective_times.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace towtank {
namespace {

Seconds seconds(std::int64_t ns) { return {static_cast<double>(ns) * 1e-9}; }

class Gathering {
 public:
  explicit Gathering(const JobTrace& job) : job_(job) {}

  std::vector<CollectiveTimes> run() {
    std::vector<std::set<std::size_t>> matched(job_.ranks.size());
    for (const MatchedCollective& one : job_.skew.collectives) {
      CollectiveTimes& times = of(call(one.parts.front()), true);
      times.wire.push_back(seconds(one.wire_ns));
      for (const auto& part : one.parts) {
        matched[part.rank].insert(part.call);
        times.in_kernel_ns += part.duration_ns;
        ++times.kernels;
      }
    }
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      const RankTrace& rank = job_.ranks[r];
      for (std::size_t c = 0; c < rank.calls.size(); ++c) {
        if (matched[r].count(c) > 0) continue;
        const auto event = static_cast<std::size_t>(rank.calls[c].event);
        const std::int64_t duration = rank.trace.events[event].duration_ns;
        CollectiveTimes& times = of(rank.calls[c], false);
        times.wire.push_back(seconds(duration));
        times.in_kernel_ns += duration;
        ++times.kernels;
      }
    }
    std::vector<CollectiveTimes> out;
    for (auto& [key, times] : times_) out.push_back(std::move(times));
    return out;
  }

 private:
  [[nodiscard]] const TraceCollectiveCall& call(const MatchedCollective::Part& part) const {
    return job_.ranks[part.rank].calls[part.call];
  }

  CollectiveTimes& of(const TraceCollectiveCall& call, bool several) {
    CollectiveTimes& out =
        times_[{call.name, call.ranks, call.payload.value_or(Bytes{-1}).value, several}];
    out.name = call.name;
    out.op = call.op;
    out.payload = call.payload;
    out.ranks = call.ranks;
    out.ranks_assumed = out.ranks_assumed || call.ranks_assumed;
    out.several_ranks = several;
    return out;
  }

  const JobTrace& job_;
  std::map<std::tuple<std::string, int, std::int64_t, bool>, CollectiveTimes> times_;
};

}  // namespace

Duration CollectiveTimes::wire_time() const {
  Duration out = duration_of(wire);
  if (!several_ranks) out.median = *out.low;
  return out;
}

std::vector<CollectiveTimes> collective_times(const JobTrace& job) { return Gathering(job).run(); }

}  // namespace towtank
