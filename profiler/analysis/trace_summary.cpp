// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_summary.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/analysis/collective_times.h"

namespace towtank {
namespace {

Seconds seconds(std::int64_t ns) { return {static_cast<double>(ns) * 1e-9}; }

template <class T>
Seconds mean(T total_ns, int count) {
  return {static_cast<double>(total_ns) * 1e-9 / std::max(count, 1)};
}

/// First begin to last end of each step over all ranks, if all have as many.
std::optional<Seconds> job_step(const JobTrace& job) {
  const std::size_t steps = job.ranks.front().steps.steps.size();
  if (job.ranks.size() < 2 || steps == 0 || job.skew.collectives.empty()) return std::nullopt;
  double total = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    std::int64_t begin = 0, end = 0;
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
      const auto& own = job.ranks[r].steps.steps;
      if (own.size() != steps) return std::nullopt;
      const std::int64_t from = own[s].begin_ns - job.skew.offset_ns[r];
      const std::int64_t to = own[s].end_ns - job.skew.offset_ns[r];
      begin = r == 0 ? from : std::min(begin, from);
      end = r == 0 ? to : std::max(end, to);
    }
    total += static_cast<double>(end - begin) * 1e-9;
  }
  return Seconds{total / static_cast<double>(steps)};
}

StepSummary step_summary(const JobTrace& job) {
  StepSummary out;
  out.source = job.ranks.front().steps.source;
  std::vector<Seconds> lengths;
  StepTimes sum;
  for (const RankTrace& rank : job.ranks) {
    for (const TraceStep& step : rank.steps.steps) {
      lengths.push_back(seconds(step.length_ns()));
      sum.compute_ns += step.times.compute_ns;
      sum.exposed_comm_ns += step.times.exposed_comm_ns;
      sum.exposed_copy_ns += step.times.exposed_copy_ns;
      sum.idle_ns += step.times.idle_ns;
      sum.comm_ns += step.times.comm_ns;
    }
  }
  out.steps = static_cast<int>(lengths.size());
  if (lengths.empty()) return out;
  out.length = duration_of(lengths);
  out.compute = mean(sum.compute_ns, out.steps);
  out.exposed_comm = mean(sum.exposed_comm_ns, out.steps);
  out.exposed_copy = mean(sum.exposed_copy_ns, out.steps);
  out.idle = mean(sum.idle_ns, out.steps);
  out.comm = mean(sum.comm_ns, out.steps);
  out.job = job_step(job);
  return out;
}

std::string pass_text(const OpSignature& s) {
  switch (s.pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kInputGrad:
    case Pass::kWeightGrad:
      return "backward";
  }
  return "";  // not reached: the switch is exhaustive
}

std::string class_name(const OpRuns& runs) {
  if (runs.label.starts_with("Optimizer.step#")) return "optimizer";
  if (!runs.signature) return "unknown: " + runs.label;
  return std::string(to_text(runs.signature->kind)) + " " + pass_text(*runs.signature) + " " +
         std::string(to_text(runs.signature->dtype));
}

struct ClassSum {
  long runs = 0;
  std::int64_t ns = 0;
  double work = 0, traffic = 0;
};

std::vector<OpClassTime> op_classes(const JobTrace& job, int steps) {
  std::map<std::string, ClassSum> sums;
  std::int64_t all = 0;
  for (const RankTrace& rank : job.ranks) {
    for (const OpRuns& runs : op_runs(rank.trace, rank.joins, rank.steps, rank.is_collective)) {
      ClassSum& sum = sums[class_name(runs)];
      const auto n = static_cast<double>(runs.ns.size());
      sum.runs += static_cast<long>(runs.ns.size());
      sum.ns += runs.total_ns();
      all += runs.total_ns();
      if (!runs.signature) continue;
      sum.work += n * runs.signature->work.value;
      sum.traffic += n * static_cast<double>(runs.signature->traffic.value);
    }
  }
  std::vector<OpClassTime> out;
  for (const auto& [name, sum] : sums) {
    OpClassTime& one = out.emplace_back();
    one.name = name;
    one.runs = sum.runs;
    one.time = mean(sum.ns, steps);
    one.share = all > 0 ? static_cast<double>(sum.ns) / static_cast<double>(all) : 0;
    if (sum.ns <= 0) continue;
    if (sum.work > 0) one.flops = FlopPerSecond{sum.work / seconds(sum.ns).value};
    if (sum.traffic > 0) one.bandwidth = BytesPerSecond{sum.traffic / seconds(sum.ns).value};
  }
  std::stable_sort(out.begin(), out.end(), [](const OpClassTime& a, const OpClassTime& b) {
    return a.time.value > b.time.value;
  });
  return out;
}

std::vector<CollectiveClassTime> collective_classes(const JobTrace& job) {
  std::vector<CollectiveClassTime> out;
  for (CollectiveTimes& times : collective_times(job)) {
    CollectiveClassTime& one = out.emplace_back();
    one.name = times.name;
    one.op = times.op;
    one.ranks = times.ranks;
    one.payload = times.payload;
    one.calls = static_cast<long>(times.wire.size());
    one.in_kernel = mean(times.in_kernel_ns, static_cast<int>(times.kernels));
    one.several_ranks = times.several_ranks;
    one.wire = times.wire_time().median;
    if (one.op && one.payload && one.ranks > 1 && one.wire.value > 0) {
      one.bus = BytesPerSecond{bus_factor(*one.op, one.ranks) * (*one.payload / one.wire).value};
    }
  }
  return out;
}

std::vector<RankRow> rank_rows(const JobTrace& job) {
  std::vector<RankRow> out;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    const RankTrace& rank = job.ranks[r];
    RankRow& row = out.emplace_back();
    row.name = rank_name(rank);
    const int steps = static_cast<int>(rank.steps.steps.size());
    std::vector<Seconds> lengths;
    StepTimes sum;
    for (const TraceStep& step : rank.steps.steps) {
      lengths.push_back(seconds(step.length_ns()));
      sum.compute_ns += step.times.compute_ns;
      sum.exposed_comm_ns += step.times.exposed_comm_ns;
      sum.idle_ns += step.times.idle_ns;
    }
    if (!lengths.empty()) row.step = duration_of(lengths).median;
    row.compute = mean(sum.compute_ns, steps);
    row.exposed_comm = mean(sum.exposed_comm_ns, steps);
    row.idle = mean(sum.idle_ns, steps);
    const RankWaits& waits = job.skew.ranks[r];
    row.last = waits.last;
    row.waited = seconds(waits.waited_ns);
    row.held_up = seconds(waits.held_up_ns);
    row.clock_ahead = seconds(job.skew.offset_ns[r]);
  }
  return out;
}

}  // namespace

double bus_factor(Collective op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kSendRecv:
    case Collective::kBroadcast:
      return 1;
  }
  return 1;  // not reached: the switch is exhaustive
}

TraceSummary summarise(const JobTrace& job) {
  TraceSummary out;
  out.step = step_summary(job);
  out.ops = op_classes(job, out.step.steps);
  const RankTrace& first = job.ranks.front();
  out.layers = layer_times(first.trace, first.joins, first.steps);
  out.layer_steps = static_cast<int>(first.steps.steps.size());
  out.collectives = collective_classes(job);
  out.ranks = rank_rows(job);
  out.straggler = job.skew.straggler();
  for (const RankTrace& rank : job.ranks) out.device_events += rank.joins.device_events;
  return out;
}

}  // namespace towtank
