// SPDX-License-Identifier: Apache-2.0
#include "app/simulate_command.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/asked_plan.h"
#include "app/disturbances.h"
#include "app/infeasible.h"
#include "app/replay_command.h"
#include "app/simulation_report.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "sim/export/chart_svg.h"
#include "sim/export/chrome_trace.h"
#include "sim/simulate.h"

namespace towtank {
namespace {

constexpr std::array<std::string_view, 2> kOnOff{"on", "off"};
constexpr std::array<std::string_view, 6> kBesideFile{"--contention", "--trace",      "--chart",
                                                      "--straggler",  "--background", "--seed"};
constexpr int kMostSeed = 2'000'000'000;

/// Slow ranks and traffic of others. Faults are collected.
LowerOptions read_lowering(const ArgumentReader& arguments, bool contention, int devices) {
  LowerOptions out;
  Faults& faults = arguments.faults();
  if (const auto text = arguments.text("--straggler")) {
    out.stragglers = read_stragglers(*text, devices, faults);
  }
  const auto background = arguments.text("--background");
  if (background) out.background = read_backgrounds(*background, faults);
  if (background && !contention) {
    faults.add({"--background", "shares no link where --contention is off", "", "Leave one out"});
  }
  const auto seed = arguments.integer("--seed", 0, kMostSeed);
  const bool random = std::any_of(out.background.begin(), out.background.end(),
                                  [](const Background& b) { return b.burst.value > 0; });
  if (seed && !random && faults.empty()) {
    faults.add({"--seed", "nothing here is random", "",
                "It is for bursts of --background, as node=40%,burst=64MiB"});
  }
  if (seed) out.seed = static_cast<std::uint64_t>(*seed);
  return out;
}

/// Bursts are flows one by one: so many that a simulation takes minutes are refused.
void check_bursts(const LoweredStep& step, Seconds closed, Faults& faults) {
  constexpr double kMostFlows = 20'000;  // some seconds
  double flows = 0;
  double least = 0;
  for (const LinkTraffic& b : step.network.background) {
    if (b.mean_gap <= 0) continue;
    const double average = b.bytes / (b.mean_gap + b.bytes / b.rate);
    flows += average * closed.value / b.bytes;
    least = std::max(least, b.bytes);
  }
  if (flows <= kMostFlows) return;
  // One percent more: it is printed to three digits.
  const auto enough = static_cast<std::int64_t>(std::ceil(1.01 * least * flows / kMostFlows));
  faults.add({"--background",
              "is " + with_thousands(static_cast<std::int64_t>(std::min(flows, 1e15))) +
                  " bursts in one step",
              "each is simulated, at most " + with_thousands(static_cast<std::int64_t>(kMostFlows)),
              "Make a burst " + to_text(Bytes{enough}) + " or more, or leave burst= out."});
}

}  // namespace

Outcome run_simulate(const Arguments& parsed, const Terminal& terminal) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  if (arguments.flag("--replay")) return run_replay(parsed, terminal);
  for (const char* option : {"--step", "--step-marker"}) {
    if (arguments.text(option)) faults.add({option, "is for --replay", "no trace is read", ""});
  }
  if (parsed.positionals.size() > 1) {
    faults.add({in_quotes(parsed.positionals[1]), "is not expected here", "one plan is simulated",
                "Traces are replayed with --replay."});
  }
  faults.throw_if_any();
  SimulateOptions options;
  options.contention = arguments.choice("--contention", kOnOff).value_or(0) == 0;
  AskedPlan asked = read_asked_plan(parsed, arguments, kBesideFile, faults);
  Question& q = *asked.question;
  const LowerOptions lowering = read_lowering(arguments, options.contention, q.devices);
  faults.throw_if_any();
  if (const auto few = pose(q)) return too_many_devices(q, *few);
  for (const Background& b : lowering.background) {
    const std::string fault = link_names_fault(q.problem, b.links);
    if (!fault.empty()) faults.add({"--background", in_quotes(b.links) + ": " + fault, "", ""});
  }
  faults.throw_if_any();
  const ValidityOptions validity{arguments.flag("--tensor-beyond-node")};
  q.problem.tensor_beyond_node = validity.tensor_beyond_node;
  const auto broken = check_plan(asked.plan, q.graph, q.workload, q.problem.view, validity);
  if (!broken.empty()) return invalid_plan(asked.where, broken);
  expand_stages(asked.plan, q.graph.free_layers());

  const Prediction closed = ClosedFormEvaluator(q.problem).evaluate(asked.plan);
  const LoweredStep step = lower(q.problem, asked.plan, lowering);
  check_bursts(step, closed.step_time, faults);
  faults.throw_if_any();
  SimulationResult simulated = simulate(step.tasks, step.network, options);
  Outcome outcome;
  if (const auto* fault = std::get_if<SimulationFault>(&simulated)) {
    outcome.exit_code = kExitInternal;
    outcome.messages.push_back(fault->problem + ".");
    return outcome;
  }
  const StepResult result = step_result(step, std::get<TaskTimes>(std::move(simulated)));
  for (const std::string& warning : plan_warnings(asked.plan, q.workload)) {
    outcome.messages.push_back("note: " + warning + ".");
  }
  if (closed.fit == Fit::kOom) {
    outcome.messages.push_back("note: the plan " + does_not_fit_text(q, closed) +
                               "; its time is simulated all the same.");
  }
  if (const auto path = arguments.text("--trace")) {
    outcome.files.emplace_back(*path, chrome_trace(step, result));
  }
  if (const auto path = arguments.text("--chart")) {
    outcome.files.emplace_back(*path, chart_svg(step, result, {plan_title(asked.plan)}));
  }
  const SimulationReport report{&step,
                                &result,
                                closed.step_time,
                                options.contention,
                                arguments.flag("--links"),
                                arguments.text("--background"),
                                lowering.seed};
  const Style style{terminal.out_is_terminal && !terminal.no_color};
  outcome.out = arguments.flag("--json")
                    ? simulation_json(q, asked.plan, report)
                    : simulation_text(q, "Plan: " + plan_title(asked.plan), report, style);
  return outcome;
}

}  // namespace towtank
