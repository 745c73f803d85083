// SPDX-License-Identifier: Apache-2.0
#include "app/validate_command.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/build_info.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/calibration_json.h"
#include "validate/accuracy.h"
#include "validate/bundled.h"
#include "validate/case_json.h"
#include "validate/fit_memory.h"
#include "validate/fit_runtime.h"
#include "validate/report.h"
#include "validate/tables.h"
#include "validate/thresholds.h"

namespace towtank {
namespace {

/// What predicts: its name in reports, the maker, and the sets that its constants were fitted on.
struct Costs {
  std::string text;
  CostModelMaker maker;
  std::set<std::string> sets;
};

std::set<std::string> sets_of(std::span<const RuntimeRecord> records) {
  std::set<std::string> sets;
  for (const RuntimeRecord& r : records) sets.insert(r.sets.begin(), r.sets.end());
  return sets;
}

Costs costs_of(const ArgumentReader& arguments) {
  const auto file = arguments.text("--calibration");
  if (arguments.flag("--analytic")) {
    if (file) {
      arguments.faults().add({"--calibration", "cannot stand beside --analytic", "", ""});
    }
    return {"rooflines with documented efficiencies and the shipped runtime constants",
            analytic_costs(), sets_of(shipped_runtime_records())};
  }
  if (!file) {
    return {"the shipped calibrations, and rooflines where none serves", calibrated_costs(),
            sets_of(shipped_runtime_records())};
  }
  std::vector<Calibration> calibrations{load_calibration(*file)};
  const std::string name = calibrations.front().name;
  std::set<std::string> sets = sets_of(shipped_runtime_records());
  sets.merge(sets_of(calibrations.front().frameworks));
  return {"the calibration " + name + ", then the shipped ones and rooflines",
          calibrated_costs(std::move(calibrations)), std::move(sets)};
}

std::vector<Case> read_cases(const Arguments& parsed) {
  if (parsed.positionals.empty()) return bundled_cases();
  std::vector<Case> out;
  Faults faults;
  for (const std::string& path : parsed.positionals) {
    // Faults of several files are told together.
    try {
      std::vector<Case> cases = load_cases(path);
      std::move(cases.begin(), cases.end(), std::back_inserter(out));
    } catch (const InputError& error) {
      for (const Fault& fault : error.faults()) faults.add(fault);
    }
  }
  faults.throw_if_any();
  return out;
}

/// The cases that a table shows, or all.
std::vector<Case> wanted_cases(const Arguments& parsed, const std::optional<std::string>& table) {
  std::vector<Case> cases = read_cases(parsed);
  if (table) std::erase_if(cases, [&](const Case& c) { return c.set() != *table; });
  if (cases.empty()) {
    throw InputError({"towtank validate", "has no case to compare",
                      table ? "no case of the set " + *table + " was given" : "the files are empty",
                      ""});
  }
  return cases;
}

/// As the user typed it, options after files, so that a generated file says what made it.
std::string command_line(const Arguments& parsed) {
  std::string out = "towtank validate";
  for (const std::string& path : parsed.positionals) out += " " + path;
  for (const auto& [name, value] : parsed.values)
    out.append(" ").append(name).append(" ").append(value);
  return out;
}

/// Errors of the folds left out, by framework, device generation and set.
std::string fit_text(const std::vector<RuntimeFit>& fits) {
  std::string out =
      "Runtime constants, fitted by folds; errors are of folds that the fit left out\n";
  for (const RuntimeFit& fit : fits) {
    const RuntimeRecord& r = fit.record;
    out += "\n" + std::string(kFrameworkNames[static_cast<std::size_t>(r.framework)]) + " on " +
           r.generation + ": " + std::to_string(r.rows) + " cases, " + std::to_string(r.folds) +
           " folds" + (r.folds < 2 ? ": too few to check, not kept\n" : "\n");
    for (const FittedConstant& c : fit.constants) {
      out += "  " + c.name + " " + three_digits(c.value) + ", x/ " +
             three_digits(std::exp(c.log_error)) +
             (c.identified ? "\n" : "  (not told by these cases: the prior)\n");
    }
    std::map<std::string, std::pair<double, int>> by_set;
    for (const FoldError& e : fit.errors) {
      auto& [sum, n] = by_set[e.case_id.substr(0, e.case_id.rfind('-'))];
      sum += std::abs(std::exp(-e.log_ratio) - 1.0);
      ++n;
    }
    for (const auto& [set, error] : by_set) {
      out += "  " + set + ": mean error " + percent(error.first / error.second) + " of " +
             std::to_string(error.second) + " cases\n";
    }
  }
  return out;
}

/// Which cases the shipped constants have seen, and what fits without their folds say of them.
AccuracyOptions accuracy_options(const Arguments& parsed, const std::vector<Case>& cases,
                                 const Costs& costs) {
  AccuracyOptions options{command_line(parsed), costs.text, {}, {}, {}, {}};
  std::vector<Case> seen;
  std::map<std::string, CaseMeasurement> measured;
  for (const Case& c : cases) {
    if (!costs.sets.contains(c.set())) continue;
    if (c.measured.step_time) options.fitted.insert(c.id);
    measured[c.id] = c.measured;
    seen.push_back(c);
  }
  for (const RuntimeFit& fit : fit_runtime(seen, costs.maker)) {
    for (const FoldError& e : fit.errors) {
      options.out_of_fold[e.case_id] = *measured[e.case_id].step_time / std::exp(e.log_ratio);
    }
  }
  for (const MemoryFit& fit : fit_memory(seen, costs.maker)) {
    for (const FoldError& e : fit.errors) {
      const auto bytes = static_cast<double>(measured[e.case_id].peak_memory->value);
      options.fitted_memory.insert(e.case_id);
      options.out_of_fold_memory[e.case_id] = bytes_from(bytes / std::exp(e.log_ratio));
    }
  }
  return options;
}

Outcome run_fit(const Arguments& parsed, const std::string& path, const Costs& costs) {
  const std::vector<Case> cases = wanted_cases(parsed, std::nullopt);
  RuntimeCalibration calibration = fit_calibration(cases, costs.maker);
  calibration.name = path.substr(path.rfind('/') + 1);
  calibration.command = command_line(parsed);
  std::set<std::string> sources;
  for (const Case& c : cases) sources.insert(c.set());
  calibration.source = "cases of " + join({sources.begin(), sources.end()}, ", ");
  Outcome outcome;
  outcome.out = fit_text(fit_runtime(cases, costs.maker));
  outcome.files.emplace_back(path, to_text(to_json(calibration)));
  return outcome;
}

std::string json_text(const Validation& v, const Costs& costs) {
  Json json = Json::object();
  json["format"] = "towtank-validation";
  json["version"] = 1;
  json["towtank"] = build_info().version;
  json["costs"] = costs.text;
  json.update(report_json(v));
  return to_text(json);
}

std::string text(const Validation& v, const std::optional<std::string>& table, const Costs& costs) {
  if (table) return table_text(*table, v);
  return with_thousands(static_cast<std::int64_t>(v.cases.size())) + " cases, predicted with " +
         costs.text + "\n\n" + report_text(v);
}

}  // namespace

CommandSpec validate_spec() {
  constexpr std::string_view kOutput = "Output";
  constexpr std::string_view kBars = "Bars";
  constexpr std::string_view kCostsGroup = "What predicts";
  return {
      "validate",
      "how wrong the predictions are, against measured runs",
      "validate [CASES.jsonl ...] [options]",
      "Predicts measured cases (docs/formats-case.md) and compares: step time, rank order of "
      "plans, "
      "memory, out of memory, and whether the intervals hold, by set and pooled; then the worst "
      "cases with where to look. Without a file it takes the published tables that are in the "
      "program. Exit code 4: a bar was missed.",
      {"CASES.jsonl..."},
      {{"--table",
        "NAME",
        kOutput,
        "a published table beside ours",
        ValueKind::kChoice,
        {table_names().begin(), table_names().end()}},
       {"--calibration", "NAME|FILE", kCostsGroup,
        "a calibration asked before the platform's own and the shipped ones", ValueKind::kFile},
       {"--analytic", "", kCostsGroup, "rooflines alone, without calibrations", ValueKind::kNone},
       {"--json", "", kOutput, "the result as JSON (docs/formats-case.md) instead of text",
        ValueKind::kNone},
       {"--predictions", "FILE", kOutput, "write one JSON line a case", ValueKind::kFile},
       {"--write-accuracy", "FILE", kOutput, "write the comparison as Markdown", ValueKind::kFile},
       {"--fit", "FILE", kOutput,
        "fit the runtime constants of each framework on these cases, leaving out one fold (set, "
        "model, sequence) at a time, print the errors of the folds left out, and write the "
        "constants as a calibration",
        ValueKind::kFile},
       {"--threshold", "BAR,...", kBars,
        "fail where a figure is worse, as mape=10,vtrain-multi:tau=0.85: mape, median, p90, bias, "
        "regret, worst, memory, coverage50, coverage90 in %, tau, oom_missed and oom_false in "
        "cases",
        ValueKind::kText}},
      {{"validate", "the published tables in the program"},
       {"validate --table korthikanti", "Korthikanti's Table 5 beside ours"},
       {"validate --table megatron-sc21 --json", "scores of SC'21 Table 1 as JSON"}}};
}

Outcome run_validate(const Arguments& parsed, const Terminal&) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  const auto table = arguments.text("--table");
  static_cast<void>(arguments.choice("--table", table_names()));
  std::vector<Threshold> bars;
  if (const auto given = arguments.text("--threshold")) {
    bars = parse_thresholds(*given, "--threshold", faults);
  }
  const Costs costs = costs_of(arguments);
  faults.throw_if_any();

  if (const auto path = arguments.text("--fit")) return run_fit(parsed, *path, costs);
  CasePredictor predictor(costs.maker);
  const std::vector<Case> cases = wanted_cases(parsed, table);
  Validation v = validate(cases, predictor);
  v.fitted_sets = costs.sets;
  Outcome outcome;
  outcome.out = arguments.flag("--json") ? json_text(v, costs) : text(v, table, costs);
  if (const auto path = arguments.text("--predictions")) {
    outcome.files.emplace_back(*path, predictions_text(v));
  }
  if (const auto path = arguments.text("--write-accuracy")) {
    outcome.files.emplace_back(*path, accuracy_markdown(v, accuracy_options(parsed, cases, costs)));
  }
  outcome.messages = missed(bars, v);
  if (!outcome.messages.empty()) outcome.exit_code = kExitBarMissed;
  return outcome;
}

}  // namespace towtank
