// SPDX-License-Identifier: Apache-2.0
#include "app/infeasible.h"

#include <algorithm>

#include "app/report.h"
#include "app/report_json.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

constexpr int kMostTimesDevices = 64;

/// Whether a plan fits on another number of devices of the same platform.
bool fits_on(const Question& q, SearchOptions options, int devices) {
  auto made = make_problem(q.graph, q.workload, q.platform, devices);
  auto* problem = std::get_if<PlanProblem>(&made);
  if (problem == nullptr) return false;
  const auto costs = make_costs(q, *problem);
  problem->costs = costs.get();
  problem->tensor_beyond_node = q.problem.tensor_beyond_node;
  options.top = 1;
  return !BestFirstSearch().search(*problem, options).plans.empty();
}

}  // namespace

Outcome too_many_devices(const Question& q, const TooManyDevices& few) {
  Outcome outcome;
  outcome.exit_code = kExitInfeasible;
  outcome.messages = {too_many_text(q, few)};
  return outcome;
}

std::string more_devices_text(const Question& q, SearchOptions options) {
  // Pinned degrees that multiply to the devices asked for would rule every other number out.
  if (options.pins.data && options.pins.tensor && options.pins.pipeline) options.pins.data.reset();
  for (int times = 2; times <= kMostTimesDevices; times *= 2) {
    if (!fits_on(q, options, q.devices * times)) continue;
    return "with " + with_thousands(static_cast<std::int64_t>(q.devices) * times) +
           " devices a plan fits.";
  }
  return "";
}

std::string does_not_fit_text(const Question& q, const Prediction& p) {
  const MemoryBreakdown& m = p.peak_memory();
  std::vector<MemoryTerm> terms = memory_terms(m);
  std::stable_sort(terms.begin(), terms.end(),
                   [](const MemoryTerm& a, const MemoryTerm& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kShown = 3;
  std::vector<std::string> most;
  for (std::size_t i = 0; i < kShown; ++i) {
    if (terms[i].bytes.value > 0) most.push_back(terms[i].name + " " + to_text(terms[i].bytes));
  }
  return "needs " + to_text(m.total()) + " of " + to_text(q.problem.capacity) +
         " on pipeline rank " + std::to_string(p.peak_rank) + " in " +
         std::string(kMemoryPhaseNames[static_cast<std::size_t>(m.phase)]) + ", " +
         to_text(m.total() - q.problem.capacity) + " too much" +
         (p.fit == Fit::kBorderline ? " (borderline: within 5 % of capacity)" : "") +
         "; most of it " + join_and(most);
}

Outcome no_plan(const Question& q, const SearchOptions& options, const SearchResult& result,
                bool json) {
  Outcome outcome;
  outcome.exit_code = kExitInfeasible;
  if (!result.nothing_fits) {
    for (const std::string& reason : result.empty_space) {
      outcome.messages.push_back("no plan: " + reason + ".");
    }
  } else {
    const RankedPlan& nearest = result.nothing_fits->nearest;
    outcome.messages.push_back("no plan fits: the nearest, " + short_text(nearest.plan) + ", " +
                               does_not_fit_text(q, nearest.prediction) + ".");
    const std::string more = more_devices_text(q, options);
    if (!more.empty()) outcome.messages.push_back(more);
  }
  if (json) {
    outcome.out = plans_json(q, options, result, std::nullopt);
  } else if (result.nothing_fits) {
    const RankedPlan& nearest = result.nothing_fits->nearest;
    outcome.out = header_text(q) + "\n" +
                  prediction_text(q, "Nearest to a fit: " + plan_title(nearest.plan),
                                  nearest.prediction, Style{});
  }
  return outcome;
}

}  // namespace towtank
