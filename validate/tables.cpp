// SPDX-License-Identifier: Apache-2.0
#include "validate/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "validate/detail/columns.h"

namespace towtank {
namespace {

using detail::cell_or_dash;
using detail::Columns;
using detail::percent_cell;

constexpr std::array<std::string_view, 5> kNames{"bigscience-a100", "korthikanti", "llama3-405b",
                                                 "megatron-sc21", "torchtitan"};
constexpr std::array<std::string_view, 5> kFiles{"bigscience_a100", "korthikanti", "llama3_405b",
                                                 "megatron_sc21", "torchtitan"};

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::string parameters_text(const ValidatedCase& c) {
  return detail::parameters_cell(c.prediction.parameters);
}
std::string devices_text(const ValidatedCase& c) { return with_thousands(c.input.body.devices); }
std::string seconds_cell(double s) { return fmt::format("{:.{}f}", s, s < 10 ? 3 : 2); }
std::string gib_cell(double bytes) { return fmt::format("{:.1f}", bytes / kGib); }
std::string whole_cell(double value) { return fmt::format("{:.0f}", value); }
std::string plan_text(const ValidatedCase& c) { return short_text(c.prediction.plan); }

std::optional<double> measured_time(const ValidatedCase& c) {
  const auto& time = c.input.measured.step_time;
  return time ? std::optional(time->value) : std::nullopt;
}
std::optional<double> measured_memory(const ValidatedCase& c) {
  const auto& memory = c.input.measured.peak_memory;
  return memory ? std::optional(static_cast<double>(memory->value)) : std::nullopt;
}
double predicted_memory(const ValidatedCase& c) {
  return static_cast<double>(c.prediction.peak_memory.value);
}

/// "step time: 8 rows, mean error 2.2 %, largest 4.0 %"
std::string summary(const Validation& v) {
  double worst = 0;
  for (const ValidatedCase& c : v.cases) {
    if (const auto error = time_error(c)) worst = std::max(worst, std::abs(*error));
  }
  const Score& s = v.sets.front().score;
  std::string out;
  if (s.mape) {
    out += fmt::format("step time: {} rows, mean error {} %, largest {} %\n", s.predicted,
                       percent_cell(*s.mape), percent_cell(worst));
  }
  if (s.memory_mape) {
    out += fmt::format("memory: {} rows, mean error {} %\n", s.memory_cases,
                       percent_cell(*s.memory_mape));
  }
  return out + fmt::format(
                   "runs that ran: {} said to fit, {} not; out of memory: {} found, {} not\n",
                   s.measured_ran.ran, s.measured_ran.oom, s.measured_oom.oom, s.measured_oom.ran);
}

/// A model's run with everything recomputed beside that with selective recomputation.
struct KorthikantiPair {
  const ValidatedCase* full = nullptr;
  const ValidatedCase* selective = nullptr;
};

/// MFU that the measured time means: the model's work is the same.
double measured_mfu(const ValidatedCase& c) {
  return c.prediction.whole.mfu * c.prediction.step_time.value / *measured_time(c);
}

std::string korthikanti_table(const Validation& v) {
  std::vector<KorthikantiPair> pairs;
  std::map<std::string, std::size_t> index;
  for (const ValidatedCase& c : v.cases) {
    const auto [at, is_new] = index.emplace(c.input.body.workload.model_json, pairs.size());
    if (is_new) pairs.emplace_back();
    KorthikantiPair& pair = pairs[at->second];
    (c.prediction.plan.recompute == RecomputeMode::kFull ? pair.full : pair.selective) = &c;
  }
  Columns table{{{"model", "devices", "full s", "ours", "err %", "SP+sel s", "ours", "err %",
                  "gain %", "ours", "MFU %", "ours"}},
                {}};
  for (const auto& [full, selective] : pairs) {
    if (full == nullptr || selective == nullptr) continue;
    const double f = *measured_time(*full), s = *measured_time(*selective);
    const double of = full->prediction.step_time.value, os = selective->prediction.step_time.value;
    table.rows.push_back({parameters_text(*full), devices_text(*full), seconds_cell(f),
                          seconds_cell(of), percent_cell(of / f - 1), seconds_cell(s),
                          seconds_cell(os), percent_cell(os / s - 1), percent_cell(f / s - 1),
                          percent_cell(of / os - 1), percent_cell(measured_mfu(*selective)),
                          percent_cell(selective->prediction.whole.mfu)});
  }
  return "Korthikanti et al. 2022 (arXiv 2205.05198), Table 5: seconds an iteration, everything\n"
         "recomputed against sequence parallelism with selective recomputation (SP+sel)\n\n" +
         detail::to_text(table);
}

/// The paper's formula, TFLOP/s a device.
double sc21_tflops(const ValidatedCase& c, double seconds) {
  const Workload& w = c.input.body.workload;
  const Json model = Json::parse(w.model_json);
  const auto field = [&model](const char* key) { return model.at(key).get<double>(); };
  const double h = field("n_embd"), l = field("n_layer"), vocabulary = field("vocab_size");
  const double s = w.sequence_length;
  const double work =
      96.0 * w.global_batch * s * l * h * h * (1 + s / (6 * h) + vocabulary / (16 * l * h));
  return work / seconds / c.input.body.devices / 1e12;
}

std::string sc21_table(const Validation& v) {
  Columns table{{{"model", "devices", "t", "p", "b", "v", "paper TFLOP/s", "ours", "err %",
                  "peak GiB", "of"}},
                {}};
  for (const ValidatedCase& c : v.cases) {
    const Plan& plan = c.prediction.plan;
    const double paper = sc21_tflops(c, *measured_time(c));
    const double ours = sc21_tflops(c, c.prediction.step_time.value);
    table.rows.push_back({parameters_text(c), devices_text(c), std::to_string(plan.tensor),
                          std::to_string(plan.pipeline), std::to_string(plan.microbatch),
                          std::to_string(plan.stages_per_rank), whole_cell(paper), whole_cell(ours),
                          percent_cell(ours / paper - 1), gib_cell(predicted_memory(c)),
                          gib_cell(static_cast<double>(c.prediction.capacity.value))});
  }
  return "Narayanan et al., SC'21, Table 1: TFLOP/s a device by the paper's formula; 80 GB "
         "devices\n"
         "(err % is of the rate: the step time's has the other sign)\n\n" +
         detail::to_text(table);
}

std::string memory_error_cell(const ValidatedCase& c) {
  return cell_or_dash(memory_error(c), percent_cell);
}

std::string seconds_table(const Validation& v, std::string title) {
  Columns table{{{"model", "devices", "s", "ours", "err %", "GiB", "ours", "err %", "plan"}}, {8}};
  for (const ValidatedCase& c : v.cases) {
    const bool oom = c.input.measured.outcome == CaseOutcome::kOom;
    table.rows.push_back({parameters_text(c), devices_text(c),
                          oom ? "OOM" : cell_or_dash(measured_time(c), seconds_cell),
                          seconds_cell(c.prediction.step_time.value),
                          cell_or_dash(time_error(c), percent_cell),
                          cell_or_dash(measured_memory(c), gib_cell), gib_cell(predicted_memory(c)),
                          memory_error_cell(c), plan_text(c)});
  }
  return std::move(title) + detail::to_text(table);
}

double tokens_a_device(const ValidatedCase& c, double seconds) {
  const PlanFile& body = c.input.body;
  return static_cast<double>(body.workload.global_batch) * body.workload.sequence_length / seconds /
         body.devices;
}

std::string torchtitan_table(const Validation& v) {
  Columns table{{{"tokens", "tok/s", "ours", "err %", "GiB", "ours", "err %", "precision", "plan"}},
                {7, 8}};
  for (const ValidatedCase& c : v.cases) {
    const Workload& w = c.input.body.workload;
    const double paper = tokens_a_device(c, *measured_time(c));
    const double ours = tokens_a_device(c, c.prediction.step_time.value);
    table.rows.push_back(
        {with_thousands(w.sequence_length), whole_cell(paper), whole_cell(ours),
         percent_cell(ours / paper - 1), cell_or_dash(measured_memory(c), gib_cell),
         gib_cell(predicted_memory(c)), memory_error_cell(c),
         std::string(to_text(w.precision)) + (c.prediction.plan.compile ? " compiled" : ""),
         plan_text(c)});
  }
  return "torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, Llama-3-8B on 8 H100-96 (500 "
         "W):\n"
         "tokens/s a device (err % is of the rate) and memory reserved\n\n" +
         detail::to_text(table);
}

std::string llama3_table(const Validation& v) {
  Columns table{{{"devices", "tokens", "microbatches", "GiB", "of", "ran?", "ours", "plan"}},
                {5, 6, 7}};
  for (const ValidatedCase& c : v.cases) {
    const auto name = [](CaseOutcome o) {
      return std::string(kCaseOutcomeNames[static_cast<std::size_t>(o)]);
    };
    table.rows.push_back(
        {devices_text(c), with_thousands(c.input.body.workload.sequence_length),
         with_thousands(c.prediction.whole.microbatches),
         gib_cell(static_cast<double>(c.prediction.whole.peak_memory().total().value)),
         gib_cell(static_cast<double>(c.prediction.capacity.value)), name(c.input.measured.outcome),
         name(c.prediction.outcome), plan_text(c)});
  }
  return "The Llama 3 Herd of Models (arXiv 2407.21783), Table 4: the plans of the 405B model;\n"
         "no times are taken from it\n\n" +
         detail::to_text(table);
}

std::size_t index_of(std::string_view name) {
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  EXPECTS(at != kNames.end());
  return static_cast<std::size_t>(at - kNames.begin());
}

std::string rows_text(std::string_view name, const Validation& v) {
  if (name == "korthikanti") return korthikanti_table(v);
  if (name == "megatron-sc21") return sc21_table(v);
  if (name == "torchtitan") return torchtitan_table(v);
  if (name == "llama3-405b") return llama3_table(v);
  return seconds_table(v,
                       "BigScience, train/tr11-176B-ml/chronicles-prequel.md: seconds an iteration "
                       "and memory as\nnvidia-smi shows it, second iteration of each run\n\n");
}

}  // namespace

std::span<const std::string_view> table_names() { return kNames; }

std::string_view table_file(std::string_view name) { return kFiles[index_of(name)]; }

std::string table_text(std::string_view name, const Validation& v) {
  EXPECTS(!v.sets.empty());
  return rows_text(kNames[index_of(name)], v) + "\n" + summary(v);
}

}  // namespace towtank
