// SPDX-License-Identifier: Apache-2.0
#include "app/trace_report.h"

#include <algorithm>
#include <map>

#include "app/import_command.h"
#include "app/text_table.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/choose_costs.h"
#include "platforms/allocate.h"

namespace towtank {
namespace {

constexpr std::size_t kIndent = 10;
/// Rows of a table; what follows is summed in one.
constexpr std::size_t kMostOps = 12;
constexpr std::size_t kMostRanks = 32;
constexpr std::size_t kOpWidth = 38;

std::string_view source_text(StepSource source) {
  switch (source) {
    case StepSource::kAnnotations:
      return "told by annotations";
    case StepSource::kRepetition:
      return "told by repetition of kernels";
    case StepSource::kWholeTrace:
      return "the whole trace: no annotation, no repetition";
  }
  return "";  // not reached: the switch is exhaustive
}

std::string plural(long count, std::string_view what) {
  return with_thousands(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string files_text(const JobTrace& job) {
  const Trace& first = job.ranks.front().trace;
  std::string out =
      plural(static_cast<long>(job.ranks.size()), "trace") + " in the format of " + first.format;
  if (first.rank) {
    out += ", rank " + std::to_string(*first.rank);
    const auto& last = job.ranks.back().trace.rank;
    if (job.ranks.size() > 1 && last) out += " to " + std::to_string(*last);
    if (first.world_size) out += " of " + std::to_string(*first.world_size);
  }
  return out;
}

std::string share_of(Seconds part, Seconds whole) {
  return whole.value > 0 ? percent(part.value / whole.value) : "-";
}

Seconds mean_length(const StepSummary& s) {
  return s.compute + s.exposed_comm + s.exposed_copy + s.idle;
}

std::string step_text(const TraceSummary& summary) {
  const StepSummary& s = summary.step;
  std::string length = to_text(s.length.median) + " measured";
  if (s.steps > 1 && s.length.low && s.length.high) {
    length += " (" + to_text(*s.length.low) + " .. " + to_text(*s.length.high) + ")";
  }
  const auto ranks = static_cast<long>(summary.ranks.size());
  length += ", " + plural(s.steps, "step") + (ranks > 1 ? " on " + plural(ranks, "rank") : "") +
            "; " + std::string(source_text(s.source));
  std::string out = labelled("Step", length, kIndent);
  if (s.job) {
    out += labelled("", to_text(*s.job) + " from the first device event on any rank to the last",
                    kIndent);
  }
  if (summary.device_events == 0) return out;
  TextTable table({{"", Align::kLeft, static_cast<int>(kIndent)},
                   {"", Align::kRight, 2},
                   {"", Align::kRight, 2}});
  const auto row = [&](const char* name, Seconds time) {
    table.add_row({name, to_text(time), share_of(time, mean_length(s))});
  };
  row("compute", s.compute);
  row("exposed communication", s.exposed_comm);
  row("exposed copies and fills", s.exposed_copy);
  row("idle", s.idle);
  out += table.text();
  if (s.comm.value > 0) {
    out += labelled("",
                    to_text(s.comm) + " of communication, " +
                        percent(1 - s.exposed_comm.value / s.comm.value) +
                        " of it hidden behind compute",
                    kIndent);
  }
  return out;
}

std::string layers_text(const TraceSummary& summary) {
  if (!summary.layers || summary.layer_steps == 0) return "";
  const LayerTimes& l = *summary.layers;
  const auto each = [&](std::int64_t ns, int instances) {
    return to_text(
        Seconds{static_cast<double>(ns) * 1e-9 / summary.layer_steps / std::max(instances, 1)});
  };
  std::string text = plural(l.instances, "layer") + " " + l.name + ": forward " +
                     each(l.forward_ns, l.instances) + " each";
  if (l.backward_ns > 0) text += ", backward " + each(l.backward_ns, l.instances);
  text += "; both " + each(l.least_ns, 1) + " .. " + each(l.most_ns, 1);
  return labelled("Layers", text, kIndent);
}

std::string ops_table(const TraceSummary& summary) {
  if (summary.ops.empty()) return "";
  TextTable table({{"op", Align::kLeft, 0},
                   {"runs", Align::kRight, 2},
                   {"of a step", Align::kRight, 2},
                   {"share", Align::kRight, 2},
                   {"FLOP/s", Align::kRight, 3},
                   {"bytes/s", Align::kRight, 3}});
  OpClassTime rest;
  for (std::size_t i = 0; i < summary.ops.size(); ++i) {
    const OpClassTime& op = summary.ops[i];
    if (i >= kMostOps) {
      rest.runs += op.runs;
      rest.time = rest.time + op.time;
      rest.share += op.share;
      continue;
    }
    table.add_row({cut(op.name, kOpWidth), with_thousands(op.runs), to_text(op.time),
                   percent(op.share), op.flops ? to_text(*op.flops) : "-",
                   op.bandwidth ? to_text(*op.bandwidth) : "-"});
  }
  if (rest.runs > 0) {
    const std::size_t more = summary.ops.size() - kMostOps;
    table.add_row({std::to_string(more) + (more == 1 ? " other class" : " other classes"),
                   with_thousands(rest.runs), to_text(rest.time), percent(rest.share), "-", "-"});
  }
  return "\n" + table.text();
}

std::string collectives_table(const TraceSummary& summary, const ExpectedBus& expected) {
  if (summary.collectives.empty()) return "";
  TextTable table({{"collective", Align::kLeft, 0},
                   {"ranks", Align::kRight, 2},
                   {"payload", Align::kRight, 2},
                   {"calls", Align::kRight, 2},
                   {"in kernels", Align::kRight, 2},
                   {"wire", Align::kRight, 2},
                   {"bus bandwidth", Align::kRight, 2},
                   {expected.platform.empty() ? "" : "platform", Align::kRight, 2}});
  bool one_rank = false;
  for (std::size_t i = 0; i < summary.collectives.size(); ++i) {
    const CollectiveClassTime& c = summary.collectives[i];
    one_rank = one_rank || !c.several_ranks;
    const auto& should = i < expected.bus.size() ? expected.bus[i] : std::nullopt;
    table.add_row({c.name, c.ranks > 0 ? std::to_string(c.ranks) : "?",
                   c.payload ? to_text(*c.payload) : "?", with_thousands(c.calls),
                   to_text(c.in_kernel), (c.several_ranks ? "" : "<= ") + to_text(c.wire),
                   c.bus ? (c.several_ranks ? "" : ">= ") + to_text(*c.bus) : "-",
                   should                      ? to_text(*should)
                   : expected.platform.empty() ? ""
                                               : "-"});
  }
  table.hide_column_if_all(7, "");
  std::string out = "\n" + table.text();
  if (one_rank) {
    out += wrapped(
        "<=: recorded on one rank, whose kernels also wait for the others; the least of the calls.",
        0);
    if (out.back() != '\n') out += '\n';
  }
  return out;
}

std::string ranks_table(const TraceSummary& summary) {
  if (summary.ranks.size() < 2) return "";
  TextTable table({{"rank", Align::kLeft, 0},
                   {"step", Align::kRight, 2},
                   {"compute", Align::kRight, 2},
                   {"exposed comm", Align::kRight, 2},
                   {"idle", Align::kRight, 2},
                   {"came last", Align::kRight, 2},
                   {"waited", Align::kRight, 2},
                   {"held others up", Align::kRight, 2},
                   {"clock ahead", Align::kRight, 2}});
  for (std::size_t i = 0; i < std::min(summary.ranks.size(), kMostRanks); ++i) {
    const RankRow& r = summary.ranks[i];
    const bool behind = r.clock_ahead.value < 0;
    table.add_row({r.name, to_text(r.step), to_text(r.compute), to_text(r.exposed_comm),
                   to_text(r.idle), with_thousands(r.last), to_text(r.waited), to_text(r.held_up),
                   (behind ? "-" : "") + to_text(behind ? -1.0 * r.clock_ahead : r.clock_ahead)});
  }
  std::string out = "\n" + table.text();
  if (summary.ranks.size() > kMostRanks) {
    out += plural(static_cast<long>(summary.ranks.size() - kMostRanks), "rank") +
           " more: see --json\n";
  }
  return out;
}

bool is_timed(const JobTrace& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(),
                     [](const RankTrace& rank) { return rank.trace.timed; });
}

/// What execution traces hold: ops, and collectives as their ops name them.
std::string untimed_tables(const JobTrace& job) {
  std::map<std::string, long> ops;
  std::map<std::pair<std::string, std::int64_t>, long> collectives;
  for (const RankTrace& rank : job.ranks) {
    for (const TraceEvent& e : rank.trace.events) {
      if (e.category == TraceCategory::kCpuOp) ++ops[rank.trace.name_of(e)];
    }
    for (const TraceCollective& c : rank.trace.collectives) {
      ++collectives[{c.name, c.in_elements}];
    }
  }
  std::vector<std::pair<std::string, long>> most(ops.begin(), ops.end());
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (most.size() > kMostOps) most.resize(kMostOps);
  TextTable op_table({{"op", Align::kLeft, 0}, {"nodes", Align::kRight, 2}});
  for (const auto& [name, count] : most) op_table.add_row({cut(name, 60), with_thousands(count)});
  std::string out = most.empty() ? "" : "\n" + op_table.text();
  if (collectives.empty()) return out;
  TextTable table({{"collective", Align::kLeft, 0},
                   {"put in by a rank", Align::kRight, 2},
                   {"nodes", Align::kRight, 2}});
  for (const auto& [key, count] : collectives) {
    table.add_row(
        {key.first, key.second >= 0 ? to_text(Bytes{key.second}) : "?", with_thousands(count)});
  }
  return out + "\n" + table.text();
}

std::string sentence(const JobTrace& job, const TraceSummary& summary) {
  if (!is_timed(job)) return "An execution trace says what ran and after what, not when.";
  if (summary.device_events == 0) {
    return "No device event: these traces say what the host did, and no more.";
  }
  const StepSummary& s = summary.step;
  struct Part {
    Seconds time;
    std::string_view text;
  };
  const std::vector<Part> parts{{s.compute, "computation"},
                                {s.exposed_comm, "communication that nothing hides"},
                                {s.exposed_copy, "copies and fills"},
                                {s.idle, "idle time of the device"}};
  const Part& most = *std::max_element(
      parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.time < b.time; });
  std::string out = "The largest part of a step is " + std::string(most.text) + ", " +
                    share_of(most.time, mean_length(s)) + " of it.";
  if (summary.straggler >= 0) {
    const RankRow& slow = summary.ranks[static_cast<std::size_t>(summary.straggler)];
    out += " The others wait most for " + slow.name + ": it comes last to " +
           with_thousands(slow.last) + " of " +
           plural(static_cast<long>(job.skew.collectives.size()), "collective") +
           " and costs them " + to_text(slow.held_up) + ".";
  }
  return out;
}

}  // namespace

ExpectedBus expected_bus(const TraceSummary& summary, const Platform& platform) {
  ExpectedBus out;
  out.platform = platform.name;
  for (const CollectiveClassTime& c : summary.collectives) {
    out.bus.emplace_back();
    if (!c.op || !c.payload || c.ranks < 2) continue;
    const auto allocated = allocate(platform, c.ranks);
    const auto* allocation = std::get_if<Allocation>(&allocated);
    if (allocation == nullptr) continue;
    const NetworkView view = network_view(platform, *allocation);
    const auto costs = load_cost_model(platform, platform.device_kinds[view.device], view);
    const CollectiveCost cost =
        costs->collective({*c.op, *c.payload, group_shape(view, c.ranks, 1)});
    if (cost.time().value > 0) {
      out.bus.back() =
          BytesPerSecond{bus_factor(*c.op, c.ranks) * (*c.payload / cost.time()).value};
    }
  }
  return out;
}

std::string trace_text(const JobTrace& job, const TraceSummary& summary, const Profile& profile,
                       const ExpectedBus& expected) {
  std::string out = labelled("Traces", files_text(job), kIndent);
  if (!profile.device_kind.empty() || !profile.machine.empty()) {
    out += labelled("Device",
                    (profile.device_kind.empty() ? "not stated" : profile.device_kind) +
                        (profile.machine.empty() ? "" : " (" + profile.machine + ")"),
                    kIndent);
  }
  out += import_rows_text(profile.stats);
  out += labelled("Profile",
                  plural(static_cast<long>(profile.ops.size()), "op") + " and " +
                      plural(static_cast<long>(profile.collectives.size()), "collective") +
                      ", times of the device alone",
                  kIndent);
  if (is_timed(job)) {
    out += step_text(summary) + layers_text(summary) + ops_table(summary) +
           collectives_table(summary, expected) + ranks_table(summary);
  } else {
    out += untimed_tables(job);
  }
  out += "\n" + wrapped(sentence(job, summary), 0);
  if (out.back() != '\n') out += '\n';
  return out;
}

}  // namespace towtank
