// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "app/report.h"
#include "app/run_command.h"
#include "app/text_table.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

struct PartOfStep {
  std::string_view heading, key;
  Seconds MeasuredStep::*part;
};

constexpr std::array kPartsOfStep{
    PartOfStep{"compute", "compute_s", &MeasuredStep::compute},
    PartOfStep{"recompute", "recompute_s", &MeasuredStep::recompute},
    PartOfStep{"tensor", "exposed_tensor_s", &MeasuredStep::exposed_tensor},
    PartOfStep{"expert", "exposed_expert_s", &MeasuredStep::exposed_expert},
    PartOfStep{"pipeline", "exposed_pipeline_s", &MeasuredStep::exposed_pipeline},
    PartOfStep{"data", "exposed_data_s", &MeasuredStep::exposed_data},
    PartOfStep{"bubble", "bubble_s", &MeasuredStep::bubble},
    PartOfStep{"optimizer", "optimizer_s", &MeasuredStep::optimizer},
    PartOfStep{"other", "other_s", &MeasuredStep::other},
};

Bytes peak_of(const RankRecord& rank) {
  Bytes total;
  for (const auto& [name, bytes] : rank.memory) total = total + Bytes{bytes};
  return total;
}

Bytes largest_peak(const RunRecord& run) {
  Bytes top;
  for (const RankRecord& rank : run.ranks) top = std::max(top, peak_of(rank));
  return top;
}

std::string ranks_table(const RunRecord& run, const std::vector<MeasuredStep>& steps) {
  std::vector<TableColumn> columns{{"rank", Align::kRight, 2}, {"step", Align::kRight}};
  for (const PartOfStep& p : kPartsOfStep) columns.push_back({std::string(p.heading)});
  TextTable table(std::move(columns));
  for (std::size_t r = 0; r < steps.size(); ++r) {
    std::vector<std::string> cells{std::to_string(run.ranks[r].rank), to_text(steps[r].step)};
    for (const PartOfStep& p : kPartsOfStep) {
      const Seconds part = steps[r].*p.part;
      cells.push_back(part.value == 0 ? "-" : to_text(part));
    }
    table.add_row(std::move(cells));
  }
  for (std::size_t p = 0; p < kPartsOfStep.size(); ++p) table.hide_column_if_all(p + 2, "-");
  return table.text();
}

std::string memory_table(const RunRecord& run) {
  std::vector<TableColumn> columns{{"rank", Align::kRight, 2}, {"peak memory", Align::kRight}};
  for (const auto& [name, bytes] : run.ranks.front().memory) columns.push_back({name});
  TextTable table(std::move(columns));
  for (const RankRecord& rank : run.ranks) {
    std::vector<std::string> cells{std::to_string(rank.rank), to_text(peak_of(rank))};
    for (const auto& [name, bytes] : rank.memory) cells.push_back(to_text(Bytes{bytes}));
    table.add_row(std::move(cells));
  }
  return table.text();
}

}  // namespace

std::string measured_text(const RunnablePlan& plan, const RunRecord& run) {
  const std::vector<MeasuredStep> steps = median_steps(run);
  const std::vector<double> loss = losses(run);
  std::string out = "Ran: " + plan_title(plan.plan) + ", " + std::to_string(run.ranks.size()) +
                    (run.ranks.size() == 1 ? " process" : " processes") + ", libtorch " +
                    run.torch + ", " + (run.backend == "none" ? "nothing exchanged" : run.backend) +
                    "\n\n";
  out += "measured step " + to_text(median_step_time(run)) + " (median of " +
         std::to_string(loss.size()) + "), loss " + three_digits(loss.front()) + " to " +
         three_digits(loss.back()) + "\n\n" + ranks_table(run, steps) + "\n" + memory_table(run);
  if (!one_clock(run)) {
    out += wrapped(
               "Ranks ran on several machines: what they waited for in the pipeline counts as "
               "bubble.",
               0) +
           "\n";
  }
  return out;
}

std::string measured_json(const RunRecord& run) {
  Json out{{"format", "towtank-measurement"},
           {"version", 1},
           {"towtank", std::string(build_info().version)},
           {"torch", run.torch},
           {"backend", run.backend},
           {"step_time_s", median_step_time(run).value},
           {"peak_memory_bytes", largest_peak(run).value},
           {"one_clock", one_clock(run)},
           {"losses", losses(run)}};
  out["ranks"] = Json::array();
  const std::vector<MeasuredStep> steps = median_steps(run);
  for (std::size_t r = 0; r < steps.size(); ++r) {
    Json rank{{"rank", run.ranks[r].rank}, {"step_s", steps[r].step.value}};
    for (const PartOfStep& p : kPartsOfStep) rank[std::string(p.key)] = (steps[r].*p.part).value;
    rank["compute_cpu_s"] = steps[r].compute_cpu.value;
    for (const auto& [name, bytes] : run.ranks[r].memory) rank[name + "_bytes"] = bytes;
    out["ranks"].push_back(std::move(rank));
  }
  return to_text(out);
}

std::string case_line(const PlanFile& plan, const RunRecord& run, const std::string& id,
                      const std::string& source) {
  const Json body = to_json(plan);
  Json out{{"format", "towtank-case"}, {"version", 1}, {"id", id}, {"source", source}};
  for (const auto& [key, value] : body.items()) {
    if (key != "format" && key != "version" && key != "generated_by") out[key] = value;
  }
  out["measured"] = {{"step_time_s", median_step_time(run).value},
                     {"peak_memory_bytes", largest_peak(run).value},
                     {"outcome", "ran"}};
  out["confidence"] = "high";
  out["assumed"] = Json::array();
  out["notes"] = "median of " + std::to_string(losses(run).size()) +
                 " steps; memory is what tensors held, the largest rank";
  return out.dump() + "\n";
}

}  // namespace towtank
