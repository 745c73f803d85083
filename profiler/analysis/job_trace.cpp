// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/job_trace.h"

#include <algorithm>
#include <limits>

#include "core/contracts.h"
#include "profiler/import/source_text.h"

namespace towtank {
namespace {

using Severity = ImportStats::Severity;

RankTrace analysed(Trace trace, const std::string& marker) {
  RankTrace out;
  out.trace = std::move(trace);
  out.joins = join_events(out.trace);
  out.calls = find_collectives(out.trace, out.joins);
  out.is_collective.assign(out.trace.events.size(), false);
  for (const TraceCollectiveCall& call : out.calls) {
    out.is_collective[static_cast<std::size_t>(call.event)] = true;
  }
  out.steps = find_steps(out.trace, out.joins, out.is_collective, marker);
  return out;
}

int order_of(const RankTrace& rank) {
  return rank.trace.rank.value_or(std::numeric_limits<int>::max());
}

}  // namespace

JobTrace analyse_traces(std::vector<Trace> traces, const JobTraceOptions& options) {
  EXPECTS(!traces.empty());
  JobTrace out;
  for (Trace& trace : traces) out.ranks.push_back(analysed(std::move(trace), options.step_marker));
  std::stable_sort(out.ranks.begin(), out.ranks.end(), [](const RankTrace& a, const RankTrace& b) {
    return order_of(a) < order_of(b);
  });
  const auto same = std::adjacent_find(out.ranks.begin(), out.ranks.end(),
                                       [](const RankTrace& a, const RankTrace& b) {
                                         return a.trace.rank && a.trace.rank == b.trace.rank;
                                       });
  out.ranks_repeat = same != out.ranks.end();
  std::vector<SkewRank> ranks;
  if (!out.ranks_repeat) {
    for (const RankTrace& rank : out.ranks) ranks.push_back({&rank.trace, &rank.calls});
  }
  out.skew = rank_skew(ranks);
  out.skew.ranks.resize(out.ranks.size());
  out.skew.offset_ns.resize(out.ranks.size(), 0);
  return out;
}

std::string rank_name(const RankTrace& rank) {
  if (rank.trace.rank) return "rank " + std::to_string(*rank.trace.rank);
  return base_name(rank.trace.name);
}

ImportStats trace_stats(const JobTrace& job) {
  ImportStats out;
  long launches = 0, ops = 0, outside = 0, kernels = 0;
  for (const RankTrace& rank : job.ranks) {
    out.rows_read += rank.trace.stats.rows_read;
    out.rows_kept += rank.trace.stats.rows_kept;
    for (const ImportStats::Count& count : rank.trace.stats.counts) {
      out.add(count.what, count.severity, count.rows, count.first);
    }
    kernels += rank.joins.device_events;
    launches += rank.joins.without_launch;
    ops += rank.joins.without_op;
    outside += rank.steps.events_outside;
  }
  out.add("device events without a launch by the host", Severity::kInfo, launches);
  out.add("device events without an op", Severity::kInfo, ops);
  out.add("device events outside of every step", Severity::kLoss, outside);
  if (job.ranks_repeat) out.add("ranks that several files state", Severity::kLoss);
  if (job.ranks.size() > 1) {
    out.add("collectives that no other rank has", Severity::kInfo, job.skew.unmatched);
  }
  if (kernels == 0) out.add("traces without device events", Severity::kInfo);
  return out;
}

}  // namespace towtank
