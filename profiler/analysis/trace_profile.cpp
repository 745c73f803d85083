// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/trace_profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/text.h"
#include "profiler/analysis/collective_times.h"
#include "profiler/analysis/trace_ops.h"

namespace towtank {
namespace {

using Severity = ImportStats::Severity;

struct DeviceName {
  std::string_view part, kind;
};
/// What drivers call the devices of the catalogue; longer parts first. PG509 is the board of
/// 40 GB A100 (NVIDIA product names in public traces).
constexpr std::array kDevices{
    DeviceName{"V100-SXM2-16GB", "v100-sxm2-16g"},
    DeviceName{"V100-SXM2-32GB", "v100-sxm2-32g"},
    DeviceName{"V100-DGXS-32GB", "v100-sxm2-32g"},
    DeviceName{"A100-SXM4-40GB", "a100-sxm-40g"},
    DeviceName{"A100-PG509", "a100-sxm-40g"},
    DeviceName{"A100-PCIE-40GB", "a100-pcie-40g"},
    DeviceName{"A100-SXM4-80GB", "a100-sxm-80g"},
    DeviceName{"A100-SXM-80GB", "a100-sxm-80g"},
    DeviceName{"H100 80GB HBM3", "h100-sxm-80g"},
    DeviceName{"H800", "h800-sxm-80g"},
    DeviceName{"GH200", "gh200-96g"},
    DeviceName{"H200", "h200-sxm-141g"},
    DeviceName{"B200", "b200-sxm-180g"},
    DeviceName{"Tesla T4", "t4"},
    DeviceName{"RTX 3090", "rtx-3090"},
    DeviceName{"RTX 4090", "rtx-4090"},
    DeviceName{"TITAN RTX", "titan-rtx"},
    DeviceName{"MI300X", "mi300x"},
    DeviceName{"MI250", "mi250x-gcd"},
};

/// Groups of more ranks need not be in one node.
constexpr int kNodeAtMost = 8;

Seconds seconds(std::int64_t ns) { return {static_cast<double>(ns) * 1e-9}; }

void add_ops(const JobTrace& job, Profile& out) {
  struct Group {
    OpMeasurement measurement;
    std::vector<Seconds> times;
  };
  std::vector<Group> groups;
  const auto same = [](const OpSignature& a, const OpSignature& b) {
    return a.kind == b.kind && a.pass == b.pass && a.dtype == b.dtype && a.causal == b.causal &&
           a.fused == b.fused && a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k &&
           a.work == b.work && a.traffic == b.traffic && a.kernels == b.kernels;
  };
  std::map<std::string, std::vector<std::size_t>> by_label;
  long unknown = 0, instant = 0;
  for (const RankTrace& rank : job.ranks) {
    for (const OpRuns& runs : op_runs(rank.trace, rank.joins, rank.steps, rank.is_collective)) {
      if (!runs.signature) {
        unknown += runs.kernels;
        continue;
      }
      auto& with_label = by_label[runs.label];
      auto found = std::find_if(with_label.begin(), with_label.end(), [&](std::size_t g) {
        return same(groups[g].measurement.signature, *runs.signature);
      });
      if (found == with_label.end()) {
        groups.push_back({{*runs.signature, {}, runs.label, out.name}, {}});
        with_label.push_back(groups.size() - 1);
        found = std::prev(with_label.end());
      }
      for (const std::int64_t ns : runs.ns) {
        if (ns > 0) groups[*found].times.push_back(seconds(ns));
        if (ns <= 0) ++instant;
      }
    }
  }
  for (Group& group : groups) {
    if (group.times.empty()) continue;
    group.measurement.time = duration_of(std::move(group.times));
    out.ops.push_back(std::move(group.measurement));
  }
  out.stats.add("kernels whose work is not known: shown, but not in the profile", Severity::kLoss,
                unknown);
  out.stats.add("runs of ops in no time that the trace resolves", Severity::kLoss, instant);
}

/// Why a collective measures nothing; empty if it does.
std::string_view useless(const CollectiveTimes& times, const ImportOptions& options) {
  if (!times.op) return "collectives of a kind that profiles have no name for";
  if (!times.payload) return "collectives of a size that the trace does not state";
  if (times.ranks < 0) return "collectives of a number of ranks that the trace does not state";
  if (times.ranks == 1) return "collectives of one rank";
  if (!options.ranks_per_node && times.ranks > kNodeAtMost) {
    return "collectives of more than 8 ranks; say with --ranks-per-node how they lie";
  }
  return times.wire_time().median.value > 0 ? "" : "collectives in no time that the trace resolves";
}

void add_collectives(const JobTrace& job, const ImportOptions& options, Profile& out) {
  for (const CollectiveTimes& times : collective_times(job)) {
    const auto rows = static_cast<long>(times.wire.size());
    if (const std::string_view why = useless(times, options); !why.empty()) {
      out.stats.add(why, Severity::kLoss, rows);
      continue;
    }
    if (times.ranks_assumed) {
      out.stats.add("collectives whose group is taken to be all ranks", Severity::kInfo, rows);
    }
    if (!times.several_ranks) {
      out.stats.add(
          "collectives recorded on one rank, which may have waited: the least time is taken",
          Severity::kInfo, rows);
    }
    CollectiveMeasurement& m = out.collectives.emplace_back();
    m.op = *times.op;
    m.payload = *times.payload;
    m.ranks = times.ranks;
    m.ranks_per_node = std::min(times.ranks, options.ranks_per_node.value_or(times.ranks));
    m.time = times.wire_time();
    if (m.time.low && m.time.low->value <= 0) m.time.low = m.time.median;
    m.group = out.name;
  }
}

std::string machine_of(const JobTrace& job) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) {
      parts.push_back(part);
    }
  };
  for (const RankTrace& rank : job.ranks) {
    for (const TraceDevice& device : rank.trace.devices) add(device.name);
    for (const std::string& software : rank.trace.software) add(software);
  }
  return join(parts, ", ");
}

}  // namespace

std::string device_kind_of(std::string_view driver_name) {
  const auto at = std::find_if(kDevices.begin(), kDevices.end(), [&](const DeviceName& d) {
    return driver_name.find(d.part) != std::string_view::npos;
  });
  return at == kDevices.end() ? std::string() : std::string(at->kind);
}

Profile trace_profile(const JobTrace& job, const ImportOptions& options) {
  const Trace& first = job.ranks.front().trace;
  Profile out;
  out.name = options.name.empty() ? base_name(first.name) : options.name;
  out.device_kind = options.device_kind;
  if (out.device_kind.empty() && !first.devices.empty()) {
    out.device_kind = device_kind_of(first.devices.front().name);
  }
  out.fabric_intranode = options.fabric_intranode;
  out.fabric_internode = options.fabric_internode;
  out.source =
      options.source.empty()
          ? first.format + " trace " + base_name(first.name) +
                (job.ranks.size() > 1 ? " and " + std::to_string(job.ranks.size() - 1) + " more"
                                      : "")
          : options.source;
  out.machine = machine_of(job);
  out.stats = trace_stats(job);
  add_ops(job, out);
  add_collectives(job, options, out);
  return out;
}

}  // namespace towtank
