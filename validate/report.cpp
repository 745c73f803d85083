// SPDX-License-Identifier: Apache-2.0
#include "validate/report.h"

#include <algorithm>

#include "core/unit_text.h"
#include "validate/detail/columns.h"

namespace towtank {
namespace {

using detail::cell_or_dash;
using detail::Columns;
using detail::percent_cell;
using detail::ratio_cell;

std::vector<const SetScore*> all_scores(const Validation& v) {
  std::vector<const SetScore*> out;
  for (const SetScore& set : v.sets) out.push_back(&set);
  if (v.pooled) out.push_back(&*v.pooled);
  return out;
}

std::string marked_name(const Validation& v, const SetScore& set) {
  return set.name + (v.fitted_sets.contains(set.name) ? " *" : "");
}

std::string count(int n) { return with_thousands(n); }

std::string time_table(const Validation& v) {
  Columns table{{{"step time, %", "n", "MAPE", "median", "bias", "p90", "groups", "tau", "regret",
                  "worst", "in 50 %", "in 90 %"}},
                {}};
  for (const SetScore* set : all_scores(v)) {
    const Score& s = set->score;
    table.rows.push_back(
        {marked_name(v, *set), count(s.timed), cell_or_dash(s.mape, percent_cell),
         cell_or_dash(s.median, percent_cell), cell_or_dash(s.bias, percent_cell),
         cell_or_dash(s.p90, percent_cell), count(s.groups), cell_or_dash(s.tau, ratio_cell),
         cell_or_dash(s.regret_mean, percent_cell), cell_or_dash(s.regret_worst, percent_cell),
         cell_or_dash(s.coverage50, percent_cell), cell_or_dash(s.coverage90, percent_cell)});
  }
  return detail::to_text(table);
}

std::string memory_table(const Validation& v) {
  Columns table{
      {{"memory, %", "n", "MAPE", "bias", "ran: fits", "said OOM", "OOM: found", "said fits"}}, {}};
  for (const SetScore* set : all_scores(v)) {
    const Score& s = set->score;
    table.rows.push_back(
        {set->name, count(s.memory_cases), cell_or_dash(s.memory_mape, percent_cell),
         cell_or_dash(s.memory_bias, percent_cell), count(s.measured_ran.ran),
         count(s.measured_ran.oom), count(s.measured_oom.oom), count(s.measured_oom.ran)});
  }
  return detail::to_text(table);
}

std::string worst_table(const Validation& v) {
  Columns table{{{"worst", "measured", "predicted", "error %", "where to look"}}, {4}};
  for (const WorstCase& w : v.worst) {
    table.rows.push_back(
        {w.id, to_text(w.measured), to_text(w.predicted), percent_cell(w.error), w.reason});
  }
  return detail::to_text(table) +
         "r: how the part's share goes with the signed error over the cases of its set\n";
}

std::string choice_table(const Validation& v) {
  if (v.choices.empty()) return "";
  Columns table{{{"predicted fastest", "took", "plan", "regret %", "best", "plan"}}, {2, 5}};
  for (const WorstChoice& w : v.choices) {
    table.rows.push_back({w.chosen, to_text(w.chosen_time), w.chosen_plan, percent_cell(w.regret),
                          to_text(w.best_time), w.best_plan});
  }
  return "\n" + detail::to_text(table);
}

std::string component_table(const Validation& v) {
  Columns table{{{"component, %", "set", "n", "MAPE", "bias"}}, {1}};
  for (const SetScore& set : v.sets) {
    for (const ComponentScore& c : set.components) {
      table.rows.push_back(
          {c.name, set.name, count(c.cases), percent_cell(c.mape), percent_cell(c.bias)});
    }
  }
  return table.rows.size() > 1 ? "\n" + detail::to_text(table) : "";
}

std::string verdict_lines(const Validation& v) {
  if (v.wrong_verdicts.empty()) return "";
  std::string out = "\nWrong verdicts\n";
  for (const std::string& line : v.wrong_verdicts) out += detail::wrapped("  " + line, 4);
  return out;
}

std::string assumption_lines(const Validation& v) {
  if (v.assumptions.empty()) return "";
  std::string out = "\nAssumed, in how many cases\n";
  for (const SharedAssumption& a : v.assumptions) {
    out += detail::wrapped("  " + count(a.cases) + "  " + a.text, 4);
  }
  if (!v.model_assumptions.empty()) {
    out += detail::wrapped("  and " + count(static_cast<int>(v.model_assumptions.size())) +
                               " of framework rules and model files: --json lists them",
                           4);
  }
  return out;
}

}  // namespace

std::string report_text(const Validation& v) {
  std::string out = time_table(v);
  const bool seen = std::any_of(v.sets.begin(), v.sets.end(), [&](const SetScore& set) {
    return v.fitted_sets.contains(set.name);
  });
  if (seen) {
    out +=
        "* the costs were fitted on this set: --write-accuracy has the errors of fits without "
        "the fold\n";
  }
  out += "\n" + memory_table(v);
  if (!v.worst.empty()) out += "\n" + worst_table(v);
  return out + choice_table(v) + component_table(v) + verdict_lines(v) + assumption_lines(v);
}

}  // namespace towtank
