// SPDX-License-Identifier: Apache-2.0
#include "app/simulate_command.h"

#include <array>
#include <charconv>
#include <cmath>

#include "app/asked_plan.h"
#include "app/infeasible.h"
#include "app/simulation_report.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "sim/export/chrome_trace.h"
#include "sim/simulate.h"

namespace towtank {
namespace {

constexpr std::array<std::string_view, 2> kOnOff{"on", "off"};
constexpr std::array<std::string_view, 3> kBesideFile{"--contention", "--trace", "--straggler"};
constexpr std::string_view kStraggler = "--straggler";

std::optional<double> factor_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kMost = 1000;
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value > 0 && value <= kMost)) return std::nullopt;
  return value;
}

/// "rank=12,slowdown=1.3"; several behind semicolons.
std::vector<Straggler> read_stragglers(std::string_view text, int devices, Faults& faults) {
  std::vector<Straggler> out;
  const auto fault = [&](std::string_view what) {
    faults.add({std::string(kStraggler), in_quotes(what) + " is not a slow rank", "",
                "Write rank=12,slowdown=1.3; several behind semicolons"});
  };
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t comma = one.find(',');
    constexpr std::string_view kRank = "rank=", kSlowdown = "slowdown=";
    if (comma == std::string_view::npos || !one.starts_with(kRank) ||
        !one.substr(comma + 1).starts_with(kSlowdown)) {
      fault(one);
      continue;
    }
    const auto rank = whole_number(one.substr(kRank.size(), comma - kRank.size()),
                                   std::string(kStraggler), 0, devices - 1, faults);
    const auto slowdown = factor_of(one.substr(comma + 1 + kSlowdown.size()));
    if (!slowdown) fault(one);
    if (rank && slowdown) out.push_back({*rank, *slowdown});
  }
  return out;
}

}  // namespace

Outcome run_simulate(const Arguments& parsed, const Terminal& terminal) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  SimulateOptions options;
  options.contention = arguments.choice("--contention", kOnOff).value_or(0) == 0;
  AskedPlan asked = read_asked_plan(parsed, arguments, kBesideFile, faults);
  Question& q = *asked.question;
  LowerOptions lowering;
  if (const auto text = arguments.text(kStraggler)) {
    lowering.stragglers = read_stragglers(*text, q.devices, faults);
  }
  faults.throw_if_any();
  if (const auto few = pose(q)) return too_many_devices(q, *few);
  const ValidityOptions validity{arguments.flag("--tensor-beyond-node")};
  q.problem.tensor_beyond_node = validity.tensor_beyond_node;
  const auto broken = check_plan(asked.plan, q.graph, q.workload, q.problem.view, validity);
  if (!broken.empty()) return invalid_plan(asked.where, broken);
  expand_stages(asked.plan, q.graph.free_layers());

  const Prediction closed = ClosedFormEvaluator(q.problem).evaluate(asked.plan);
  const LoweredStep step = lower(q.problem, asked.plan, lowering);
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
  const SimulationReport report{&step, &result, closed.step_time, options.contention,
                                arguments.flag("--links")};
  const Style style{terminal.out_is_terminal && !terminal.no_color};
  outcome.out = arguments.flag("--json")
                    ? simulation_json(q, asked.plan, report)
                    : simulation_text(q, "Plan: " + plan_title(asked.plan), report, style);
  return outcome;
}

}  // namespace towtank
