// SPDX-License-Identifier: Apache-2.0
#include "app/report.h"

#include <algorithm>
#include <cmath>

#include "app/text_table.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "platforms/allocate.h"

namespace towtank {
namespace {

constexpr std::size_t kLabelWidth = 10;
constexpr std::size_t kMemoryColumn = 50;

std::string n(std::int64_t value) { return with_thousands(value); }

std::string counted(std::int64_t count, const std::string& what) {
  return n(count) + " " + what + (count == 1 ? "" : "s");
}

std::string gib(Bytes bytes) {
  return three_digits(static_cast<double>(bytes.value) / (1LL << 30));
}

std::string precision_text(DType type) {
  return type == DType::kFp8 ? "fp8 products" : std::string(to_text(type));
}

std::string_view optimizer_text(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return "Adam";
    case OptimizerKind::kSgd:
      return "SGD";
    case OptimizerKind::kMomentum:
      return "SGD with momentum";
  }
  return "";
}

std::string model_line(const Question& q) {
  const double total = q.graph.total_parameters();
  const double active = q.graph.active_parameters();
  std::string out = printable(q.workload.model_name) + ": " + n(std::llround(total)) +
                    " parameters (" + parameters_text(total);
  if (active < total) out += ", " + parameters_text(active) + " active a token";
  if (q.graph.mtp_parameters > 0) {
    out += ", " + parameters_text(q.graph.mtp_parameters) + " more in further heads";
  }
  return out + "), " + q.graph.family + ", " + counted(q.graph.free_layers(), "layer");
}

std::string machine_line(const Question& q) {
  const NetworkView& view = q.problem.view;
  const int nodes = (q.devices + view.devices_per_node - 1) / view.devices_per_node;
  std::string out = printable(q.platform.name) + ": " + counted(nodes, "node") + ", " +
                    counted(q.devices, "device") + " (" + q.problem.device().name +
                    (view.mixed ? " and faster" : "") + ", " + to_text(q.problem.capacity) + ")";
  for (const NetworkView::Level& level : view.levels) {
    if (level.group <= 1) continue;
    out += ", " + level.name + " " + to_text(level.bandwidth) + (level.assumed ? " (assumed)" : "");
  }
  const bool alone = view.levels.empty() || view.levels.back().group <= 1;
  return alone ? out : out + " a device";
}

std::string training_line(const Question& q) {
  const Workload& w = q.workload;
  std::string out = "global batch " + n(w.global_batch);
  if (q.graph.sample_tokens > 0) {
    out += " of " + n(q.graph.sample_tokens) + " tokens (" +
           n(static_cast<std::int64_t>(w.global_batch) * q.graph.sample_tokens) + " a step)";
  }
  out += ", " + precision_text(w.precision) + ", " + std::string(optimizer_text(w.optimizer));
  out += ", " + std::string(kFrameworkNames[static_cast<std::size_t>(q.framework)]);
  if (w.expert_load != 1.0) out += ", expert load " + three_digits(w.expert_load);
  return out;
}

std::string schedule_text(ScheduleKind kind) {
  if (kind == ScheduleKind::kNone) return "-";
  if (kind == ScheduleKind::kInterleaved) return "inter";
  return std::string(kScheduleNames[static_cast<std::size_t>(kind)]);
}

std::string short_recompute(const Plan& plan) {
  if (plan.recompute == RecomputeMode::kNone) return "none";
  if (plan.recompute == RecomputeMode::kSelective) return "sel";
  const bool all = std::all_of(plan.stages.begin(), plan.stages.end(), [](const PlanStage& s) {
    return s.recompute_full == s.last - s.first;
  });
  return all ? "full" : "part";
}

enum Column : std::size_t { kRank, kTp, kPp, kDp, kCp, kEp, kEtp, kVp };

TextTable plan_table(bool tokens) {
  return TextTable({{"#", Align::kRight, 1},
                    {"tp", Align::kRight, 1},
                    {"pp", Align::kRight, 1},
                    {"dp", Align::kRight, 1},
                    {"cp", Align::kRight, 1},
                    {"ep", Align::kRight, 1},
                    {"etp", Align::kRight, 1},
                    {"vp", Align::kRight, 1},
                    {"mb", Align::kRight, 1},
                    {"sched", Align::kLeft, 1},
                    {"zero", Align::kRight, 1},
                    {"sp", Align::kRight, 1},
                    {"recomp", Align::kLeft, 1},
                    {"step", Align::kRight, 1},
                    {"MFU %", Align::kRight, 1},
                    {tokens ? "tok/s" : "smp/s", Align::kRight, 1},
                    {"GiB", Align::kRight, 1},
                    {"slower: why", Align::kLeft, 2}});
}

void add_plan(TextTable& table, std::size_t rank, const RankedPlan& ranked,
              const Prediction& best) {
  const Plan& p = ranked.plan;
  const Prediction& x = ranked.prediction;
  const double tokens = x.tokens_per_second_per_device;
  const double rate = tokens > 0 ? tokens : x.samples_per_second / p.devices();
  table.add_row({std::to_string(rank), std::to_string(p.tensor), std::to_string(p.pipeline),
                 std::to_string(p.data), std::to_string(p.context), std::to_string(p.expert),
                 std::to_string(p.expert_tensor), std::to_string(p.stages_per_rank),
                 std::to_string(p.microbatch), schedule_text(p.schedule),
                 std::to_string(p.sharding_stage), p.sequence_parallel ? "y" : "-",
                 short_recompute(p), to_text(x.step_time), three_digits(100 * x.mfu),
                 three_digits(rate), gib(x.peak_memory().total()),
                 rank == 1 ? "fastest" : to_text(difference(x, best))});
}

std::string step_column(const Prediction& p) {
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kRight, 2}, {"", Align::kRight, 2}});
  for (const StepTerm& term : step_terms(p.step)) {
    if (term.time.value <= 0) continue;
    table.add_row({term.name, to_text(term.time), short_percent(term.time / p.step_time) + " %"});
  }
  table.add_row({"step", to_text(p.step_time), "100 %"});
  return table.text();
}

std::string memory_column(const Question& q, const Prediction& p) {
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kRight, 2}, {"", Align::kRight, 2}});
  const MemoryBreakdown& m = p.peak_memory();
  const auto share = [&](Bytes bytes) {
    return short_percent(static_cast<double>(bytes.value) /
                         static_cast<double>(q.problem.capacity.value)) +
           " %";
  };
  for (const MemoryTerm& term : memory_terms(m)) {
    if (term.bytes.value > 0) table.add_row({term.name, to_text(term.bytes), share(term.bytes)});
  }
  table.add_row({"of " + to_text(q.problem.capacity), to_text(m.total()), share(m.total())});
  return table.text();
}

std::string basis_text(const Prediction& p) {
  std::vector<std::string> parts;
  for (std::size_t b = 0; b < kBasisCount; ++b) {
    if (p.basis[b] > 0) {
      parts.push_back(std::string(kBasisNames[b]) + " " + short_percent(p.basis[b]) + " %");
    }
  }
  return join(parts, ", ");
}

std::string rates_line(const Prediction& p) {
  std::string out = "MFU " + percent(p.mfu) + ", HFU " + percent(p.hfu) + ", ";
  out += p.tokens_per_second_per_device > 0
             ? three_digits(p.tokens_per_second_per_device) + " tokens/s a device"
             : three_digits(p.samples_per_second) + " samples/s";
  out += "; " + n(p.microbatches) + (p.microbatches == 1 ? " microbatch" : " microbatches");
  if (p.cost_per_step) out += "; " + to_text(*p.cost_per_step) + " a step";
  return out;
}

}  // namespace

std::string Style::strong(std::string_view text) const {
  return colour ? "\033[1m" + std::string(text) + "\033[0m" : std::string(text);
}

std::string parameters_text(double count) {
  if (count >= 1e12) return three_digits(count / 1e12) + " T";
  if (count >= 1e9) return three_digits(count / 1e9) + " B";
  if (count >= 1e6) return three_digits(count / 1e6) + " M";
  return n(std::llround(count));
}

std::string plan_title(const Plan& plan) {
  int full = 0, layers = 0;
  for (const PlanStage& s : plan.stages) {
    full += s.recompute_full;
    layers += s.last - s.first;
  }
  const bool some = full > 0 && full < layers;
  if (!some) return short_text(plan);
  return short_text(plan) + ", " + std::to_string(full) + " of " + std::to_string(layers) +
         " layers recomputed";
}

std::string header_text(const Question& q) {
  std::string out = labelled("Model", model_line(q), kLabelWidth);
  out += labelled("Machine", machine_line(q), kLabelWidth);
  out += labelled("Training", training_line(q), kLabelWidth);
  if (!q.defaults.empty()) {
    out += labelled("Defaults", join(q.defaults, ", ") + " (not stated, taken)", kLabelWidth);
  }
  return out;
}

std::string plans_text(const Question& q, const std::vector<RankedPlan>& plans,
                       const Style& style) {
  const bool tokens = q.graph.sample_tokens > 0;
  TextTable table = plan_table(tokens);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    add_plan(table, i + 1, plans[i], plans.front().prediction);
  }
  for (const Column column : {kCp, kEp, kEtp, kVp}) table.hide_column_if_all(column, "1");
  const std::string text = table.text();
  const std::size_t end = text.find('\n');
  return style.strong(text.substr(0, end)) + text.substr(end) +
         (tokens ? "tok/s" : "smp/s (samples)") +
         " and GiB a device; why: the part that grew most, as % of the first plan's step\n";
}

std::string baselines_text(const SearchResult& result) {
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kLeft, 2}});
  for (const Baseline& baseline : result.baselines) {
    std::string name = baseline.name;
    if (!baseline.plan) {
      table.add_row({name, baseline.why_not});
      continue;
    }
    const auto framework = static_cast<std::size_t>(baseline.plan->plan.framework);
    name += " (" + std::string(kFrameworkNames[framework]) + ")";
    std::string text =
        to_text(baseline.plan->prediction.step_time) + "  " + short_text(baseline.plan->plan);
    if (!result.plans.empty()) {
      text += "  " + to_text(difference(baseline.plan->prediction, result.plans[0].prediction));
    }
    table.add_row({name, text});
  }
  return "Baselines\n" + table.text();
}

std::string certificate_text(const SearchCounts& c) {
  return labelled("Search",
                  counted(c.plans, "plan") + " covered: " + n(c.pruned_by_bound) +
                      " ruled out by a bound, " + n(c.pruned_by_memory) + " by memory, " +
                      n(c.costed) +
                      " costed whole; no plan in this space is faster under this "
                      "model",
                  kLabelWidth);
}

std::string prediction_text(const Question& q, const std::string& title, const Prediction& p,
                            const Style& style) {
  const MemoryBreakdown& m = p.peak_memory();
  const std::string fit = p.fit == Fit::kFits         ? "fits"
                          : p.fit == Fit::kBorderline ? "borderline"
                                                      : "does not fit";
  std::string out = style.strong(title) + "\n";
  out += labelled("",
                  "predicted step " + to_text(p.step_time) + ", 90 % interval " +
                      to_text(p.interval90.low) + " to " + to_text(p.interval90.high) +
                      " (basis: " + basis_text(p) + ")",
                  2);
  out += labelled("", rates_line(p), 2);
  const std::string rank =
      p.memory.size() > 1 ? " on pipeline rank " + std::to_string(p.peak_rank) : "";
  const std::string memory_heading =
      "Memory" + rank + ", " + std::string(kMemoryPhaseNames[static_cast<std::size_t>(m.phase)]) +
      ": " + fit;
  out += side_by_side("Step time\n" + step_column(p), memory_heading + "\n" + memory_column(q, p),
                      kMemoryColumn);
  return out;
}

std::optional<std::string> run_text(const Question& q, const Prediction& p) {
  if (!q.workload.train_tokens) return std::nullopt;
  const double tokens_a_step = static_cast<double>(q.workload.global_batch) * q.graph.sample_tokens;
  const double steps = std::ceil(*q.workload.train_tokens / tokens_a_step);
  constexpr double kHour = 3600;
  const double hours = steps * p.step_time.value * q.devices / kHour;
  std::string out = parameters_text(*q.workload.train_tokens) + " tokens are " +
                    n(std::llround(steps)) + " steps: predicted " + to_text(steps * p.step_time) +
                    " (" + to_text(steps * p.interval90.low) + " to " +
                    to_text(steps * p.interval90.high) + "), " + n(std::llround(hours)) +
                    " device-hours";
  out += p.cost_per_step ? ", " + to_text(steps * *p.cost_per_step)
                         : ", no price is stated for this machine";
  return labelled("Run", out, kLabelWidth);
}

std::string conclusion_text(const Question& q, const Explanation& e, const Prediction& p,
                            bool full) {
  std::string sentence = e.sentence;
  std::string out = labelled("Binding", sentence, kLabelWidth);
  if (!full) {
    const auto count = static_cast<std::int64_t>(p.assumptions.size());
    if (count == 0) return out;
    return out + labelled("Assumed",
                          counted(count, "fact") +
                              " that no source states, listed by "
                              "--explain",
                          kLabelWidth);
  }
  out += labelled("Costs", q.costs->description(), kLabelWidth);
  if (!p.assumptions.empty()) out += "Assumed\n";
  for (const std::string& assumption : p.assumptions) {
    out += "  - " + wrapped(assumption, 4) + "\n";
  }
  return out;
}

std::string rules_text(Framework framework) {
  std::string out =
      "Rules of " + std::string(kFrameworkNames[static_cast<std::size_t>(framework)]) + "\n";
  for (const RuleLine& line : rule_lines(framework)) {
    const std::string source = line.source.empty() ? "assumed" : std::string(line.source);
    out +=
        "  " + wrapped(std::string(line.name) + ": " + line.value + " [" + source + "]", 4) + "\n";
  }
  return out;
}

}  // namespace towtank
