// SPDX-License-Identifier: Apache-2.0
#include "app/replay_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "app/disturbances.h"
#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "profiler/import/trace_reader.h"
#include "sim/export/chrome_trace.h"
#include "sim/replay.h"
#include "sim/simulate.h"
#include "sim/step_result.h"

namespace towtank {
namespace {

constexpr std::array<std::string_view, 6> kOptions{"--replay",    "--step",  "--step-marker",
                                                   "--straggler", "--trace", "--json"};
constexpr int kMostSteps = 1 << 24;
constexpr double kRounding = 1e-9;

struct Replayed {
  const JobTrace* job;
  const Replay* replay;
  const StepResult* result;
  bool as_recorded;
};

std::string name_of(const JobTrace& job, std::size_t rank) { return rank_name(job.ranks[rank]); }

std::string signed_percent(double fraction) {
  return (fraction < 0 ? "-" : "+") + percent(std::abs(fraction));
}

double error_of(const Replayed& r) { return r.result->step_time / r.replay->recorded - 1; }

std::string critical_text(const StepResult& result) {
  TextTable table({{"critical path", Align::kLeft, 2}, {"", Align::kRight}, {"", Align::kRight}});
  for (std::size_t c = 0; c < kComponentCount; ++c) {
    if (result.critical[c] <= kRounding * result.step_time.value) continue;
    const auto component = static_cast<TimeComponent>(c);
    const std::string name = component == TimeComponent::kHost   ? "host and launches"
                             : component == TimeComponent::kData ? "collectives"
                                                                 : "device work";
    table.add_row({name, to_text(Seconds{result.critical[c]}),
                   percent(result.critical[c] / result.step_time.value)});
  }
  return table.text();
}

std::string ranks_text(const Replayed& r) {
  TextTable table({{"rank", Align::kLeft, 2},
                   {"device work", Align::kRight},
                   {"collectives", Align::kRight},
                   {"neither", Align::kRight}});
  const auto data = static_cast<std::size_t>(Stream::kData);
  for (std::size_t i = 0; i < r.result->actors.size(); ++i) {
    const ActorUse& use = r.result->actors[i];
    const double neither = std::max(0.0, use.idle - use.stream_busy[data]);
    table.add_row({name_of(*r.job, i), to_text(Seconds{use.busy}),
                   to_text(Seconds{use.stream_busy[data]}), to_text(Seconds{neither})});
  }
  return table.text();
}

std::string replay_text(const Replayed& r) {
  std::string out = "Replay of step " + std::to_string(r.replay->index) + " (" + r.replay->name +
                    ") on " + with_thousands(static_cast<std::int64_t>(r.job->ranks.size())) +
                    (r.job->ranks.size() == 1 ? " rank" : " ranks") + ", " +
                    with_thousands(static_cast<std::int64_t>(r.replay->step.tasks.tasks.size())) +
                    " tasks\n";
  out += "simulated step " + to_text(r.result->step_time) + ", measured " +
         to_text(r.replay->recorded) + " (" + signed_percent(error_of(r)) +
         (r.as_recorded ? ")" : "; ranks are not as they were measured)") +
         ",\nfrom the first rank's first call to the last device work\n\n";
  out += critical_text(*r.result) + "\n" + ranks_text(r);
  if (r.replay->unexplained > 0) {
    out += "\n" + wrapped(with_thousands(r.replay->unexplained) +
                              " device events began later than all that they are known to wait "
                              "for, by " +
                              to_text(r.replay->unexplained_time) +
                              " in all; that is kept as it was measured.",
                          0);
    if (out.back() != '\n') out += '\n';
  }
  return out;
}

std::string replay_json(const Replayed& r) {
  Json ranks = Json::array();
  const auto data = static_cast<std::size_t>(Stream::kData);
  for (std::size_t i = 0; i < r.result->actors.size(); ++i) {
    ranks.push_back({{"rank", name_of(*r.job, i)},
                     {"device_s", r.result->actors[i].busy},
                     {"collectives_s", r.result->actors[i].stream_busy[data]}});
  }
  const auto critical = [&](TimeComponent c) {
    return r.result->critical[static_cast<std::size_t>(c)];
  };
  return to_text(Json{{"format", "towtank-replay"},
                      {"version", 1},
                      {"towtank", build_info().version},
                      {"step", r.replay->index},
                      {"name", r.replay->name},
                      {"as_recorded", r.as_recorded},
                      {"step_time_s", r.result->step_time.value},
                      {"measured_s", r.replay->recorded.value},
                      {"error", error_of(r)},
                      {"critical_path",
                       {{"device_s", critical(TimeComponent::kCompute)},
                        {"collectives_s", critical(TimeComponent::kData)},
                        {"host_s", critical(TimeComponent::kHost)}}},
                      {"unexplained_starts", r.replay->unexplained},
                      {"unexplained_s", r.replay->unexplained_time.value},
                      {"collectives_matched", !r.replay->collectives_apart},
                      {"tasks", r.replay->step.tasks.tasks.size()},
                      {"ranks", std::move(ranks)}});
}

JobTrace read_job(const Arguments& parsed, const ArgumentReader& arguments) {
  std::vector<Trace> traces;
  for (const std::string& path : parsed.positionals) {
    std::vector<Trace> more = read_traces(path);
    std::move(more.begin(), more.end(), std::back_inserter(traces));
  }
  return analyse_traces(std::move(traces), {arguments.text("--step-marker").value_or("")});
}

void check_arguments(const Arguments& parsed, Faults& faults) {
  if (parsed.positionals.empty()) {
    faults.add({"TRACE", "is missing", "", "Give the trace of each rank, or an archive of them."});
  }
  for (const auto& [name, value] : parsed.values) {
    if (std::find(kOptions.begin(), kOptions.end(), name) != kOptions.end()) continue;
    faults.add({name, "cannot stand beside --replay", "the traces say what was run", ""});
  }
}

int highest_rank(const JobTrace& job) {
  int out = static_cast<int>(job.ranks.size()) - 1;
  for (const RankTrace& rank : job.ranks) out = std::max(out, rank.trace.rank.value_or(0));
  return out;
}

}  // namespace

Outcome run_replay(const Arguments& parsed, const Terminal& /*terminal*/) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  check_arguments(parsed, faults);
  ReplayOptions options;
  if (const auto step = arguments.integer("--step", 0, kMostSteps)) {
    options.step = static_cast<std::size_t>(*step);
  }
  faults.throw_if_any();
  const JobTrace job = read_job(parsed, arguments);
  const std::size_t steps = replayable_steps(job);
  if (const auto text = arguments.text("--straggler")) {
    options.stragglers = read_stragglers(*text, highest_rank(job) + 1, faults);
  }
  if (steps == 0) {
    faults.add({parsed.positionals.front(), "holds no step to replay",
                "every rank needs device work", ""});
  } else if (options.step && *options.step >= steps) {
    faults.add({"--step", std::to_string(*options.step) + " is out of range",
                "the traces have " + std::to_string(steps) + ", counted from 0", ""});
  }
  faults.throw_if_any();
  const Replay made = replay(job, options);
  SimulationResult simulated = simulate(made.step.tasks, made.step.network);
  Outcome outcome;
  if (const auto* fault = std::get_if<SimulationFault>(&simulated)) {
    outcome.exit_code = kExitInternal;
    outcome.messages.push_back(fault->problem + ".");
    return outcome;
  }
  const StepResult result = step_result(made.step, std::get<TaskTimes>(std::move(simulated)));
  if (made.collectives_apart) {
    outcome.messages.emplace_back(
        "note: the ranks' collectives do not match; each takes its own time, waiting included.");
  }
  if (const auto path = arguments.text("--trace")) {
    outcome.files.emplace_back(*path, chrome_trace(made.step, result));
  }
  const Replayed replayed{&job, &made, &result, options.stragglers.empty()};
  outcome.out = arguments.flag("--json") ? replay_json(replayed) : replay_text(replayed);
  return outcome;
}

}  // namespace towtank
