// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "placement/explain.h"
#include "validate/report.h"

namespace towtank {
namespace {

template <class T>
Json number_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view outcome_name(CaseOutcome outcome) {
  return kCaseOutcomeNames[static_cast<std::size_t>(outcome)];
}

Json counts_json(const VerdictCounts& c) {
  return {{"ran", c.ran}, {"oom", c.oom}, {"none", c.none}};
}

/// The keys of the scoring script where it has the figure.
Json score_json(const SetScore& set, bool fitted) {
  const Score& s = set.score;
  Json json = Json::object();
  json["set"] = set.name;
  json["fitted"] = fitted;
  json["cases"] = s.cases;
  json["n_time"] = s.timed;
  json["n_predicted"] = s.predicted;
  json["mape"] = number_or_null(s.mape);
  json["median_ape"] = number_or_null(s.median);
  json["bias"] = number_or_null(s.bias);
  json["p90_ape"] = number_or_null(s.p90);
  json["groups"] = s.groups;
  json["plans_in_groups"] = s.plans_in_groups;
  json["tau"] = number_or_null(s.tau);
  json["regret_mean"] = number_or_null(s.regret_mean);
  json["regret_max"] = number_or_null(s.regret_worst);
  json["n_memory"] = s.memory_cases;
  json["memory_mape"] = number_or_null(s.memory_mape);
  json["memory_bias"] = number_or_null(s.memory_bias);
  json["verdict"] = {{"ran", counts_json(s.measured_ran)}, {"oom", counts_json(s.measured_oom)}};
  json["coverage50"] = number_or_null(s.coverage50);
  json["coverage90"] = number_or_null(s.coverage90);
  Json components = Json::array();
  for (const ComponentScore& c : set.components) {
    components.push_back(
        {{"name", c.name}, {"cases", c.cases}, {"mape", c.mape}, {"bias", c.bias}});
  }
  json["components"] = std::move(components);
  return json;
}

Json choices_json(const std::vector<WorstChoice>& choices) {
  Json json = Json::array();
  for (const WorstChoice& w : choices) {
    json.push_back({{"chosen", w.chosen},
                    {"best", w.best},
                    {"chosen_s", w.chosen_time.value},
                    {"best_s", w.best_time.value},
                    {"regret", w.regret}});
  }
  return json;
}

/// A case, and the parts of its predicted step and memory that are not zero.
Json case_json(const ValidatedCase& c) {
  const CasePrediction& p = c.prediction;
  Json json = Json::object();
  json["id"] = c.input.id;
  json["plan"] = short_text(p.plan);
  json["framework"] = kFrameworkNames[static_cast<std::size_t>(p.plan.framework)];
  const auto& m = c.input.measured;
  json["measured"] = {
      {"step_time_s", m.step_time ? Json(m.step_time->value) : Json(nullptr)},
      {"peak_memory_bytes", m.peak_memory ? Json(m.peak_memory->value) : Json(nullptr)},
      {"outcome", outcome_name(m.outcome)}};
  json["predicted"] = {{"step_time_s", p.step_time.value},
                       {"peak_memory_bytes", p.peak_memory.value},
                       {"outcome", outcome_name(p.outcome)}};
  json["error"] = number_or_null(time_error(c));
  json["memory_error"] = number_or_null(memory_error(c));
  Json step = Json::object(), memory = Json::object();
  for (const StepTerm& term : step_terms(p.whole.step)) {
    if (term.time.value != 0) step[term.name] = term.time.value;
  }
  for (const MemoryTerm& term : memory_terms(p.whole.peak_memory())) {
    if (term.bytes.value != 0) memory[term.name] = term.bytes.value;
  }
  json["step_s"] = std::move(step);
  json["memory_bytes"] = std::move(memory);
  return json;
}

Json assumptions_json(const std::vector<SharedAssumption>& assumptions) {
  Json json = Json::array();
  for (const SharedAssumption& a : assumptions) {
    json.push_back({{"text", a.text}, {"cases", a.cases}});
  }
  return json;
}

}  // namespace

Json report_json(const Validation& v) {
  Json json = Json::object();
  json["sets"] = Json::array();
  for (const SetScore& set : v.sets)
    json["sets"].push_back(score_json(set, v.fitted_sets.contains(set.name)));
  json["all"] = v.pooled ? score_json(*v.pooled, !v.fitted_sets.empty()) : Json(nullptr);
  json["worst"] = Json::array();
  for (const WorstCase& w : v.worst) {
    json["worst"].push_back({{"id", w.id},
                             {"measured_s", w.measured.value},
                             {"predicted_s", w.predicted.value},
                             {"error", w.error},
                             {"reason", w.reason}});
  }
  json["choices"] = choices_json(v.choices);
  json["wrong_verdicts"] = v.wrong_verdicts;
  json["assumptions"] = assumptions_json(v.assumptions);
  json["model_assumptions"] = assumptions_json(v.model_assumptions);
  json["cases"] = Json::array();
  for (const ValidatedCase& c : v.cases) json["cases"].push_back(case_json(c));
  return json;
}

std::string predictions_text(const Validation& v) {
  std::string out;
  for (const ValidatedCase& c : v.cases) {
    const CasePrediction& p = c.prediction;
    Json row = Json::object();
    row["id"] = c.input.id;
    row["step_time_s"] = p.step_time.value;
    row["peak_memory_bytes"] = p.peak_memory.value;
    row["outcome"] = outcome_name(p.outcome);
    row["interval90_s"] = {p.whole.interval90.low.value, p.whole.interval90.high.value};
    out += row.dump() + "\n";
  }
  return out;
}

}  // namespace towtank
