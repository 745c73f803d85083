// SPDX-License-Identifier: Apache-2.0
#include "validate/validation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "validate/reasons.h"

namespace towtank {
namespace {

double seconds_of(const StepBreakdown& step, Axis axis) {
  return step.exposed[static_cast<std::size_t>(axis)].value;
}

std::optional<ComponentScore> gradient_reduction(const std::vector<const ValidatedCase*>& cases) {
  std::vector<double> errors, sizes;
  for (const ValidatedCase* c : cases) {
    const auto measured = c->input.tokens.gradient_reduction;
    if (!measured || measured->value <= 0) continue;
    const double predicted = seconds_of(c->prediction.whole.step, Axis::kData);
    errors.push_back((predicted - measured->value) / measured->value);
    sizes.push_back(std::abs(errors.back()));
  }
  if (errors.empty()) return std::nullopt;
  return ComponentScore{"gradient reduction", static_cast<int>(errors.size()), *mean(sizes),
                        *mean(errors)};
}

SetScore score_set(std::string name, const std::vector<const ValidatedCase*>& cases) {
  std::vector<ScoreRow> rows;
  rows.reserve(cases.size());
  for (const ValidatedCase* c : cases) rows.push_back(score_row(*c));
  SetScore out{std::move(name), score(rows), {}};
  if (auto component = gradient_reduction(cases)) out.components.push_back(std::move(*component));
  return out;
}

std::string verdict_text(const ValidatedCase& c) {
  const CasePrediction& p = c.prediction;
  const MemoryBreakdown& memory = p.whole.peak_memory();
  const bool ran = c.input.measured.outcome == CaseOutcome::kRan;
  return c.input.id + (ran ? ": ran, said to need " : ": was out of memory, said to need ") +
         to_text(memory.total()) + " of " + to_text(p.capacity) + " (" +
         largest_memory_part(memory) + ")";
}

template <class AssumptionsOf>
std::vector<SharedAssumption> shared_assumptions(const std::vector<ValidatedCase>& cases,
                                                 AssumptionsOf&& assumptions_of) {
  std::vector<SharedAssumption> out;
  std::map<std::string, std::size_t> index;
  for (const ValidatedCase& c : cases) {
    for (const std::string& text : assumptions_of(c.prediction)) {
      const auto [at, is_new] = index.emplace(text, out.size());
      if (is_new) out.push_back({text, 0});
      ++out[at->second].cases;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.cases > b.cases; });
  return out;
}

std::vector<WorstCase> worst_cases(const std::vector<ValidatedCase>& cases, bool several_sets,
                                   const ReasonFinder& reasons) {
  std::vector<const ValidatedCase*> order;
  for (const ValidatedCase& c : cases) {
    if (c.input.measured.step_time) order.push_back(&c);
  }
  std::stable_sort(order.begin(), order.end(), [](const ValidatedCase* a, const ValidatedCase* b) {
    return std::abs(*time_error(*a)) > std::abs(*time_error(*b));
  });
  std::vector<WorstCase> out;
  std::map<std::string, int> of_set;
  for (const ValidatedCase* c : order) {
    if (out.size() == kWorstCases) break;
    if (several_sets && ++of_set[c->input.set()] > kWorstOfASet) continue;
    out.push_back({c->input.id, *time_error(*c), *c->input.measured.step_time,
                   c->prediction.step_time, reasons.reason(*c)});
  }
  return out;
}

/// Of plans predicted alike the first stands for all.
std::vector<WorstChoice> worst_choices(const std::vector<ValidatedCase>& cases) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const ValidatedCase*>> groups;
  for (const ValidatedCase& c : cases) {
    if (!c.input.measured.step_time) continue;
    auto& group = groups[c.input.group_key];
    if (group.empty()) order.push_back(c.input.group_key);
    group.push_back(&c);
  }
  std::vector<WorstChoice> out;
  for (const std::string& key : order) {
    const auto& group = groups[key];
    const auto least = [&](auto&& time_of) {
      return *std::min_element(group.begin(), group.end(), [&](const auto* a, const auto* b) {
        return time_of(*a) < time_of(*b);
      });
    };
    const ValidatedCase& best =
        *least([](const ValidatedCase& c) { return *c.input.measured.step_time; });
    const ValidatedCase& chosen =
        *least([](const ValidatedCase& c) { return c.prediction.step_time; });
    const Seconds best_time = *best.input.measured.step_time;
    const Seconds chosen_time = *chosen.input.measured.step_time;
    if (chosen_time <= best_time || chosen.input.plan_key == best.input.plan_key) continue;
    out.push_back({chosen.input.id, best.input.id, short_text(chosen.prediction.plan),
                   short_text(best.prediction.plan), chosen_time, best_time,
                   chosen_time / best_time - 1});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.regret > b.regret; });
  if (out.size() > kWorstChoices) out.resize(kWorstChoices);
  return out;
}

std::vector<ValidatedCase> predict_all(std::vector<Case> cases, CasePredictor& predictor) {
  std::vector<ValidatedCase> out;
  out.reserve(cases.size());
  Faults faults;
  for (Case& c : cases) {
    // All cases that cannot be expressed are told together.
    try {
      CasePrediction prediction = predictor.predict(c);
      out.push_back({std::move(c), std::move(prediction)});
    } catch (const InputError& error) {
      for (const Fault& fault : error.faults()) faults.add(fault);
    }
  }
  faults.throw_if_any();
  return out;
}

}  // namespace

ScoreRow score_row(const ValidatedCase& c) {
  const CaseMeasurement& measured = c.input.measured;
  const CasePrediction& p = c.prediction;
  ScoreRow row;
  row.id = c.input.id;
  row.group_key = c.input.group_key;
  row.plan_key = c.input.plan_key;
  row.outcome = measured.outcome;
  if (measured.step_time) row.time = measured.step_time->value;
  if (measured.peak_memory) row.memory = static_cast<double>(measured.peak_memory->value);
  row.predicted_time = p.step_time.value;
  row.predicted_memory = static_cast<double>(p.peak_memory.value);
  row.predicted_outcome = p.outcome;
  row.interval50 = std::pair(p.whole.interval50.low.value, p.whole.interval50.high.value);
  row.interval90 = std::pair(p.whole.interval90.low.value, p.whole.interval90.high.value);
  return row;
}

std::optional<double> time_error(const ValidatedCase& c) {
  const auto& measured = c.input.measured.step_time;
  if (!measured) return std::nullopt;
  return (c.prediction.step_time.value - measured->value) / measured->value;
}

std::optional<double> memory_error(const ValidatedCase& c) {
  const auto& measured = c.input.measured.peak_memory;
  if (!measured) return std::nullopt;
  return static_cast<double>(c.prediction.peak_memory.value - measured->value) /
         static_cast<double>(measured->value);
}

Validation validate(std::vector<Case> cases, CasePredictor& predictor) {
  Validation out;
  out.cases = predict_all(std::move(cases), predictor);
  std::vector<std::string> names;
  std::map<std::string, std::vector<const ValidatedCase*>> sets;
  std::vector<const ValidatedCase*> all;
  for (const ValidatedCase& c : out.cases) {
    auto& members = sets[c.input.set()];
    if (members.empty()) names.push_back(c.input.set());
    members.push_back(&c);
    all.push_back(&c);
    if (c.prediction.outcome != c.input.measured.outcome) {
      out.wrong_verdicts.push_back(verdict_text(c));
    }
  }
  ReasonFinder reasons;
  for (const std::string& name : names) {
    out.sets.push_back(score_set(name, sets[name]));
    reasons.learn(name, sets[name]);
  }
  if (names.size() > 1) out.pooled = score_set("ALL", all);
  out.worst = worst_cases(out.cases, names.size() > 1, reasons);
  out.choices = worst_choices(out.cases);
  out.assumptions = shared_assumptions(
      out.cases, [](const CasePrediction& p) -> const auto& { return p.assumptions; });
  out.model_assumptions = shared_assumptions(
      out.cases, [](const CasePrediction& p) -> const auto& { return p.whole.assumptions; });
  return out;
}

}  // namespace towtank
