// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "app/import_command.h"
#include "app/trace_report.h"
#include "core/json.h"

namespace towtank {
namespace {

template <class Q>
Json or_null(const std::optional<Q>& value) {
  return value ? Json(value->value) : Json(nullptr);
}

Json step_json(const StepSummary& s) {
  constexpr std::array<std::string_view, 3> kSources{"annotations", "repetition", "whole_trace"};
  return {{"source", kSources[static_cast<std::size_t>(s.source)]},
          {"steps", s.steps},
          {"median_s", s.length.median.value},
          {"low_s", or_null(s.length.low)},
          {"high_s", or_null(s.length.high)},
          {"compute_s", s.compute.value},
          {"exposed_communication_s", s.exposed_comm.value},
          {"exposed_copies_s", s.exposed_copy.value},
          {"idle_s", s.idle.value},
          {"communication_s", s.comm.value},
          {"all_ranks_s", or_null(s.job)}};
}

Json ops_json(const TraceSummary& summary) {
  Json out = Json::array();
  for (const OpClassTime& op : summary.ops) {
    out.push_back({{"op", op.name},
                   {"runs", op.runs},
                   {"time_s", op.time.value},
                   {"share", op.share},
                   {"flop_per_s", or_null(op.flops)},
                   {"bytes_per_s", or_null(op.bandwidth)}});
  }
  return out;
}

Json collectives_json(const TraceSummary& summary, const ExpectedBus& expected) {
  Json out = Json::array();
  for (std::size_t i = 0; i < summary.collectives.size(); ++i) {
    const CollectiveClassTime& c = summary.collectives[i];
    out.push_back({{"op", c.name},
                   {"ranks", c.ranks > 0 ? Json(c.ranks) : Json(nullptr)},
                   {"payload_bytes", or_null(c.payload)},
                   {"calls", c.calls},
                   {"kernel_s", c.in_kernel.value},
                   {"wire_s", c.wire.value},
                   {"wire_is_a_bound", !c.several_ranks},
                   {"bus_bytes_per_s", or_null(c.bus)},
                   {"expected_bus_bytes_per_s",
                    i < expected.bus.size() ? or_null(expected.bus[i]) : Json(nullptr)}});
  }
  return out;
}

Json layers_json(const TraceSummary& summary) {
  if (!summary.layers) return nullptr;
  const LayerTimes& l = *summary.layers;
  const auto each = [&](std::int64_t ns, int instances) {
    return static_cast<double>(ns) * 1e-9 / std::max(summary.layer_steps, 1) /
           std::max(instances, 1);
  };
  return {{"name", l.name},
          {"layers", l.instances},
          {"forward_s", each(l.forward_ns, l.instances)},
          {"backward_s", each(l.backward_ns, l.instances)},
          {"low_s", each(l.least_ns, 1)},
          {"high_s", each(l.most_ns, 1)}};
}

Json ranks_json(const TraceSummary& summary) {
  Json out = Json::array();
  for (const RankRow& r : summary.ranks) {
    out.push_back({{"rank", r.name},
                   {"step_s", r.step.value},
                   {"compute_s", r.compute.value},
                   {"exposed_communication_s", r.exposed_comm.value},
                   {"idle_s", r.idle.value},
                   {"came_last", r.last},
                   {"waited_s", r.waited.value},
                   {"held_up_s", r.held_up.value},
                   {"clock_ahead_s", r.clock_ahead.value}});
  }
  return out;
}

}  // namespace

std::string trace_json(const JobTrace& job, const TraceSummary& summary, const Profile& profile,
                       const ExpectedBus& expected) {
  Json files = Json::array();
  for (const RankTrace& rank : job.ranks) {
    files.push_back({{"file", rank.trace.name},
                     {"trace_format", rank.trace.format},
                     {"rank", rank.trace.rank ? Json(*rank.trace.rank) : Json(nullptr)},
                     {"events", rank.trace.events.size()},
                     {"timed", rank.trace.timed}});
  }
  Json out{{"format", "towtank-trace"},
           {"version", 1},
           {"traces", std::move(files)},
           {"device_kind", profile.device_kind},
           {"machine", profile.machine},
           {"rows_read", profile.stats.rows_read},
           {"rows_kept", profile.stats.rows_kept},
           {"counts", import_counts_json(profile.stats)},
           {"profile", {{"ops", profile.ops.size()}, {"collectives", profile.collectives.size()}}},
           {"step", step_json(summary.step)},
           {"layers", layers_json(summary)},
           {"ops", ops_json(summary)},
           {"collectives", collectives_json(summary, expected)},
           {"platform", expected.platform.empty() ? Json(nullptr) : Json(expected.platform)},
           {"ranks", ranks_json(summary)}};
  out["straggler"] = summary.straggler >= 0
                         ? Json(summary.ranks[static_cast<std::size_t>(summary.straggler)].name)
                         : Json(nullptr);
  out["matched_collectives"] = job.skew.collectives.size();
  return to_text(out);
}

}  // namespace towtank
