// SPDX-License-Identifier: Apache-2.0
#include "app/confirm.h"

#include <algorithm>
#include <thread>

#include "app/report.h"
#include "app/text_table.h"
#include "core/unit_text.h"
#include "sim/lower.h"
#include "sim/simulate.h"

namespace towtank {

namespace {

/// Below this share of the step a difference is rounding.
constexpr double kRounding = 1e-9;
constexpr std::size_t kLabelWidth = 10;

/// A command over as many lines as it needs, each but the last ending in a backslash.
std::string continued(std::string_view command) {
  constexpr std::size_t kWidth = 96;
  const std::string margin(kLabelWidth, ' ');
  std::string out, line;
  while (!command.empty()) {
    const std::size_t end = std::min(command.find(" --", 1), command.size());
    const std::string_view part = command.substr(0, end);
    if (!line.empty() && margin.size() + line.size() + part.size() > kWidth) {
      out += margin + line + " \\\n";
      line = " " + std::string(part);
    } else {
      line += part;
    }
    command.remove_prefix(end);
  }
  return out + margin + line + "\n";
}

}  // namespace

Confirmation confirm(const Question& q, const std::vector<RankedPlan>& plans, int count) {
  const std::size_t n = std::min(plans.size(), static_cast<std::size_t>(count));
  std::vector<LoweredStep> steps;
  for (std::size_t i = 0; i < n; ++i) steps.push_back(lower(q.problem, plans[i].plan));
  std::vector<SimulationJob> jobs;
  for (const LoweredStep& step : steps) jobs.push_back({&step.tasks, &step.network});
  SimulateOptions options;
  options.parallel = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<SimulationResult> results = simulate_all(jobs, options);
  Confirmation out;
  for (std::size_t i = 0; i < n; ++i) {
    if (const auto* fault = std::get_if<SimulationFault>(&results[i])) {
      out.faults.push_back("plan " + std::to_string(i + 1) + ": " + fault->problem + ".");
    } else {
      out.plans.push_back({i, Seconds{std::get<TaskTimes>(results[i]).makespan()}});
    }
  }
  if (plans.size() > n) out.next_bound = plans[n].prediction.step_time;
  std::stable_sort(
      out.plans.begin(), out.plans.end(),
      [](const ConfirmedPlan& a, const ConfirmedPlan& b) { return a.simulated < b.simulated; });
  return out;
}

std::string confirmation_text(const Confirmation& c, const std::vector<RankedPlan>& plans) {
  if (c.plans.empty()) return "";
  TextTable table({{"simulated", Align::kRight, 2},
                   {"predicted", Align::kRight},
                   {"contention", Align::kRight},
                   {"plan", Align::kRight},
                   {"", Align::kLeft}});
  for (const ConfirmedPlan& p : c.plans) {
    const RankedPlan& plan = plans[p.plan];
    const double more = p.simulated / plan.prediction.step_time - 1;
    table.add_row({to_text(p.simulated), to_text(plan.prediction.step_time),
                   more > kRounding ? percent(more) : "none", std::to_string(p.plan + 1),
                   plan_title(plan.plan)});
  }
  const ConfirmedPlan& best = c.plans.front();
  std::string says = best.plan == 0 ? "Plan 1 stays first when links are shared."
                                    : "Plan " + std::to_string(best.plan + 1) +
                                          " is first when links are shared; towtank simulate shows "
                                          "why.";
  if (c.next_bound && *c.next_bound < best.simulated) {
    says += " A plan that was not simulated could still be faster: the next takes " +
            to_text(*c.next_bound) + " if nothing holds it up.";
  } else if (c.faults.empty()) {
    says += " No other plan can be faster: all of them take longer even if nothing holds them up.";
  }
  return "Simulated, fastest first\n" + table.text() + wrapped(says, 0) + "\n";
}

NearPlans near_plans(const std::vector<RankedPlan>& plans, int top) {
  const Seconds first = plans.front().prediction.step_time;
  const auto far = std::find_if(plans.begin(), plans.end(), [&](const RankedPlan& p) {
    return p.prediction.step_time > (1 + kDisagreement) * first;
  });
  const bool cut = plans.size() >= static_cast<std::size_t>(top);
  return {static_cast<int>(far - plans.begin()), far == plans.end() && cut};
}

std::string near_plans_text(const NearPlans& near, const std::string& command) {
  if (near.count == 1 && near.more_known) return "";
  const std::string share = percent(kDisagreement);
  if (near.count == 1 && !near.more_known) {
    return labelled("Links",
                    "no other plan lies within " + share +
                        " of the first, by which sharing of links lengthens 9 steps of 10 "
                        "at most",
                    kLabelWidth);
  }
  return labelled("Links",
                  (near.more_known ? "at least " : "") + std::to_string(near.count) +
                      " plans lie within " + share +
                      " of the first, by which sharing of links lengthens 9 steps of 10 at most; "
                      "this simulates them:",
                  kLabelWidth) +
         continued(command + " --confirm " + std::to_string(near.count));
}

}  // namespace towtank
