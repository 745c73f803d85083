// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/commands.h"
#include "app/confirm.h"
#include "app/infeasible.h"
#include "app/pins.h"
#include "app/report.h"
#include "app/report_json.h"
#include "core/unit_text.h"
#include "sim/simulate.h"

namespace towtank {
namespace {

constexpr int kDefaultTop = 10;
constexpr int kMostTop = 1000;
constexpr int kMostConfirmed = 1000;
constexpr double kDefaultMemoryLimit = 0.95;

SearchOptions read_options(const ArgumentReader& arguments) {
  SearchOptions options;
  options.top = arguments.integer("--top", 1, kMostTop).value_or(kDefaultTop);
  options.memory_limit =
      arguments.number("--memory-limit", 0.01, 1.0).value_or(kDefaultMemoryLimit);
  if (const auto pins = arguments.text("--pin")) {
    options.pins = parse_pins(*pins, arguments.faults());
  }
  return options;
}

std::string plans_report(const Question& q, const SearchResult& result, const Explanation& e,
                         bool full, const Style& style) {
  const RankedPlan& best = result.plans.front();
  std::string out = header_text(q) + "\n" + plans_text(q, result.plans, style) + "\n" +
                    baselines_text(result) + "\n";
  out += prediction_text(q, "Plan 1: " + plan_title(best.plan), best.prediction, style) + "\n";
  out += conclusion_text(q, e, best.prediction, full);
  if (const auto run = run_text(q, best.prediction)) out += *run;
  out += certificate_text(result.counts);
  if (full) out += rules_text(q.framework);
  return out;
}

}  // namespace

Outcome run_plan(const Arguments& parsed, const Terminal& terminal) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  SearchOptions options = read_options(arguments);
  const auto question = read_question(arguments);
  Question& q = *question;
  options.framework = q.framework;
  const auto confirmed = arguments.integer("--confirm", 1, kMostConfirmed);
  faults.throw_if_any();
  if (const auto fault = missing_worker(); confirmed && fault) {
    Outcome outcome;
    outcome.exit_code = kExitInternal;
    outcome.messages.push_back(fault->problem + ".");
    return outcome;
  }
  // One more than is printed: what is left beyond them.
  const int wanted = std::max(options.top, confirmed.value_or(1));
  options.top = wanted + (confirmed ? 1 : 0);
  if (!arguments.has("--memory-limit")) q.defaults.emplace_back("memory limit 95 %");
  if (const auto few = pose(q)) return too_many_devices(q, *few);
  q.problem.tensor_beyond_node = arguments.flag("--tensor-beyond-node");

  SearchResult result = BestFirstSearch().search(q.problem, options);
  if (result.plans.empty()) return no_plan(q, options, result, arguments.flag("--json"));
  Outcome outcome;
  if (result.borderline_allowed) {
    outcome.messages.push_back("no plan fits within " + percent(options.memory_limit) +
                               " of device memory; these need more, up to all of it.");
  }
  std::optional<Confirmation> confirmation;
  if (confirmed) {
    confirmation = confirm(q, result.plans, *confirmed);
    options.top = wanted;
    if (result.plans.size() > static_cast<std::size_t>(wanted)) result.plans.pop_back();
    outcome.messages.insert(outcome.messages.end(), confirmation->faults.begin(),
                            confirmation->faults.end());
  }
  if (const auto path = arguments.text("--output")) {
    const bool simulated = confirmation && !confirmation->plans.empty();
    const std::size_t first = simulated ? confirmation->plans.front().plan : 0;
    outcome.files.emplace_back(*path, plan_file_text(q, result.plans[first].plan));
  }
  if (arguments.flag("--json")) {
    outcome.out = plans_json(q, options, result, confirmation);
    return outcome;
  }
  const RankedPlan& best = result.plans.front();
  const Style style{terminal.out_is_terminal && !terminal.no_color};
  outcome.out = plans_report(q, result, explain(q.problem, best.plan, best.prediction),
                             arguments.flag("--explain"), style);
  if (confirmation) {
    outcome.out += "\n" + confirmation_text(*confirmation, result.plans);
  } else if (!missing_worker()) {
    if (arguments.flag("--explain")) outcome.out += "\n";
    outcome.out += near_plans_text(near_plans(result.plans, options.top), asked_command(parsed));
  }
  return outcome;
}

}  // namespace towtank
