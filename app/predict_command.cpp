// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <array>

#include "app/asked_plan.h"
#include "app/commands.h"
#include "app/infeasible.h"
#include "app/pins.h"
#include "app/report.h"
#include "app/report_json.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

std::string report(const Question& q, const RankedPlan& ranked, bool full, const Style& style) {
  const Prediction& p = ranked.prediction;
  std::string out = header_text(q) + "\n" +
                    prediction_text(q, "Plan: " + plan_title(ranked.plan), p, style) + "\n";
  out += conclusion_text(q, explain(q.problem, ranked.plan, p), p, full);
  if (const auto run = run_text(q, p)) out += *run;
  if (full) out += rules_text(q.framework);
  return out;
}

void add_remedies(const Question& q, const RankedPlan& ranked,
                  const std::optional<NearestChange>& change, Outcome& outcome) {
  outcome.exit_code = kExitInfeasible;
  outcome.messages.push_back("the plan does not fit: it " +
                             does_not_fit_text(q, ranked.prediction) + ".");
  if (change) {
    outcome.messages.push_back("it fits with " + change->text + ": " +
                               to_text(change->prediction.peak_memory().total()) +
                               ", predicted step " + to_text(change->prediction.step_time) + ".");
    return;
  }
  SearchOptions options;
  options.framework = ranked.plan.framework;
  const std::string more = more_devices_text(q, options);
  outcome.messages.emplace_back("no small change of it fits.");
  if (!more.empty()) outcome.messages.push_back(more);
}

}  // namespace

Outcome run_predict(const Arguments& parsed, const Terminal& terminal) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  constexpr std::array<std::string_view, 1> kBesideFile{"--output"};
  AskedPlan asked = read_asked_plan(parsed, arguments, kBesideFile, faults);
  Question& q = *asked.question;
  if (const auto few = pose(q)) return too_many_devices(q, *few);
  const ValidityOptions options{arguments.flag("--tensor-beyond-node")};
  q.problem.tensor_beyond_node = options.tensor_beyond_node;
  const auto broken = check_plan(asked.plan, q.graph, q.workload, q.problem.view, options);
  if (!broken.empty()) return invalid_plan(asked.where, broken);
  expand_stages(asked.plan, q.graph.free_layers());

  const RankedPlan ranked{asked.plan, ClosedFormEvaluator(q.problem).evaluate(asked.plan)};
  Outcome outcome;
  for (const std::string& warning : plan_warnings(ranked.plan, q.workload)) {
    outcome.messages.push_back("note: " + warning + ".");
  }
  std::optional<NearestChange> change;
  if (ranked.prediction.peak_memory().total() > q.problem.capacity) {
    change = nearest_change(q.problem, ranked.plan, options);
    add_remedies(q, ranked, change, outcome);
  } else if (const auto path = arguments.text("--output")) {
    outcome.files.emplace_back(*path, plan_file_text(q, ranked.plan));
  }
  const Style style{terminal.out_is_terminal && !terminal.no_color};
  outcome.out = arguments.flag("--json") ? prediction_json(q, ranked, change)
                                         : report(q, ranked, arguments.flag("--explain"), style);
  return outcome;
}

}  // namespace towtank
