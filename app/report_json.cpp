// SPDX-License-Identifier: Apache-2.0
#include "app/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "core/json.h"
#include "placement/plan_json.h"
#include "placement/prediction_json.h"

namespace towtank {
namespace {

/// What the result rests on: enough to ask again and get the same bytes.
Json inputs_json(const Question& q) {
  Json model{{"name", q.workload.model_name},
             {"family", q.graph.family},
             {"hash", q.workload.model_hash},
             {"parameters", std::llround(q.graph.total_parameters())},
             {"active_parameters", std::llround(q.graph.active_parameters())}};
  Json platform{{"name", q.platform.name},
                {"hash", q.platform.hash},
                {"device_kind", q.problem.device().name},
                {"capacity_bytes", q.problem.capacity.value},
                {"peak_flop_per_s", q.problem.peak.value}};
  const Workload& w = q.workload;
  constexpr std::array<std::string_view, 3> kOptimizers{"adam", "sgd", "momentum"};
  Json out;
  out["model"] = std::move(model);
  out["platform"] = std::move(platform);
  out["devices"] = q.devices;
  out["sequence_length"] = w.sequence_length;
  out["global_batch"] = w.global_batch;
  out["precision"] = std::string(to_text(w.precision));
  out["optimizer"] = std::string(kOptimizers[static_cast<std::size_t>(w.optimizer)]);
  out["expert_load"] = w.expert_load;
  out["train_tokens"] = w.train_tokens ? Json(*w.train_tokens) : Json();
  out["framework"] = std::string(kFrameworkNames[static_cast<std::size_t>(q.framework)]);
  out["costs"] = q.costs->description();
  out["defaults"] = q.defaults;
  return out;
}

Json head(const char* format) {
  return {{"format", format}, {"version", 1}, {"towtank", std::string(build_info().version)}};
}

/// Length and cost of the whole training; null if train_tokens is not stated.
Json run_json(const Question& q, const Prediction& p) {
  if (!q.workload.train_tokens) return {};
  const double steps =
      std::ceil(*q.workload.train_tokens /
                (static_cast<double>(q.workload.global_batch) * q.graph.sample_tokens));
  return {{"steps", steps},
          {"duration_s", steps * p.step_time.value},
          {"cost_usd", p.cost_per_step ? Json(steps * p.cost_per_step->value) : Json()}};
}

Json difference_json(const Difference& d) {
  return {{"slower", d.slower},
          {"term", d.term},
          {"share_of_best_step", d.share},
          {"best_share", d.best_share}};
}

Json counts_json(const SearchCounts& c) {
  return {{"plans", c.plans},
          {"pruned_by_bound", c.pruned_by_bound},
          {"pruned_by_memory", c.pruned_by_memory},
          {"costed", c.costed}};
}

Json ranked_json(const RankedPlan& ranked) {
  return {{"plan", to_json(ranked.plan)}, {"prediction", to_json(ranked.prediction)}};
}

Json baseline_json(const Baseline& baseline, const SearchResult& result) {
  Json out{{"name", baseline.name}};
  if (!baseline.plan) {
    out["plan"] = nullptr;
    out["why_not"] = baseline.why_not;
    return out;
  }
  out.update(ranked_json(*baseline.plan));
  if (!result.plans.empty()) {
    out["difference"] =
        difference_json(difference(baseline.plan->prediction, result.plans[0].prediction));
  }
  return out;
}

Json confirmation_json(const Confirmation& c, const SearchResult& result) {
  Json out{{"simulated", Json::array()}};
  for (const ConfirmedPlan& p : c.plans) {
    const Seconds closed = result.plans[p.plan].prediction.step_time;
    out["simulated"].push_back({{"rank", p.plan + 1},
                                {"simulated_step_time_s", p.simulated.value},
                                {"contention_s", (p.simulated - closed).value}});
  }
  out["next_bound_s"] = c.next_bound ? Json(c.next_bound->value) : Json();
  out["failed"] = c.faults;
  return out;
}

}  // namespace

std::string plans_json(const Question& q, const SearchOptions& options, const SearchResult& result,
                       const std::optional<Confirmation>& confirmed) {
  Json out = head("towtank-plans");
  out["inputs"] = inputs_json(q);
  out["memory_limit"] = options.memory_limit;
  out["search"] = counts_json(result.counts);
  out["search"]["complete"] = true;
  out["borderline"] = result.borderline_allowed;
  out["plans"] = Json::array();
  for (const RankedPlan& ranked : result.plans) {
    Json item = ranked_json(ranked);
    item["difference"] = difference_json(difference(ranked.prediction, result.plans[0].prediction));
    out["plans"].push_back(std::move(item));
  }
  if (!result.plans.empty()) {
    const NearPlans near = near_plans(result.plans, options.top);
    out["near_plans"] = {
        {"within", kDisagreement}, {"count", near.count}, {"at_least", near.more_known}};
  }
  out["confirmation"] = confirmed ? confirmation_json(*confirmed, result) : Json();
  out["baselines"] = Json::array();
  for (const Baseline& baseline : result.baselines) {
    out["baselines"].push_back(baseline_json(baseline, result));
  }
  out["nothing_fits"] = nullptr;
  if (result.nothing_fits) {
    out["nothing_fits"] = ranked_json(result.nothing_fits->nearest);
    out["nothing_fits"]["needed_bytes"] = result.nothing_fits->needed.value;
    out["nothing_fits"]["available_bytes"] = result.nothing_fits->available.value;
  }
  out["empty_space"] = result.empty_space;
  if (!result.plans.empty()) {
    const RankedPlan& best = result.plans.front();
    out["explanation"] = to_json(explain(q.problem, best.plan, best.prediction));
    out["run"] = run_json(q, best.prediction);
  }
  return to_text(out);
}

std::string prediction_json(const Question& q, const RankedPlan& ranked,
                            const std::optional<NearestChange>& change) {
  Json out = head("towtank-prediction");
  out["inputs"] = inputs_json(q);
  out.update(ranked_json(ranked));
  out["explanation"] = to_json(explain(q.problem, ranked.plan, ranked.prediction));
  out["run"] = run_json(q, ranked.prediction);
  out["nearest_change"] = nullptr;
  if (change) {
    out["nearest_change"] = {{"change", change->text}};
    out["nearest_change"].update(ranked_json({change->plan, change->prediction}));
  }
  return to_text(out);
}

}  // namespace towtank
