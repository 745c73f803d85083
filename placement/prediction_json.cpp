// SPDX-License-Identifier: Apache-2.0
#include "placement/prediction_json.h"

#include <nlohmann/json.hpp>

namespace towtank {
namespace {

constexpr std::array<std::string_view, kAxisCount> kAxisNames{"tensor",        "context",  "expert",
                                                              "expert_tensor", "pipeline", "data"};

Json interval_json(const Interval& interval) {
  return Json::array({interval.low.value, interval.high.value});
}

Json step_json(const StepBreakdown& step) {
  Json out;
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    out["compute_s"][std::string(kOpKindNames[i])] = step.compute[i].value;
  }
  out["recompute_s"] = step.recompute.value;
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    out["exposed_s"][std::string(kAxisNames[i])] = step.exposed[i].value;
  }
  out["bubble_s"] = step.bubble.value;
  out["optimizer_s"] = step.optimizer.value;
  out["host_gaps_s"] = step.host_gaps.value;
  out["input_s"] = step.input.value;
  return out;
}

Json term_json(const StepTerm& term, double share) {
  return {{"name", term.name}, {"time_s", term.time.value}, {"share", share}};
}

}  // namespace

Json to_json(const MemoryBreakdown& m) {
  return {{"parameters_bytes", m.parameters.value},
          {"gradients_bytes", m.gradients.value},
          {"optimizer_bytes", m.optimizer.value},
          {"activations_bytes", m.activations.value},
          {"logits_bytes", m.logits.value},
          {"working_bytes", m.working.value},
          {"buffers_bytes", m.buffers.value},
          {"reserve_bytes", m.reserve.value},
          {"context_bytes", m.context.value},
          {"total_bytes", m.total().value},
          {"phase", std::string(kMemoryPhaseNames[static_cast<std::size_t>(m.phase)])}};
}

Json to_json(const Prediction& p) {
  Json out;
  out["step_time_s"] = p.step_time.value;
  out["interval50_s"] = interval_json(p.interval50);
  out["interval90_s"] = interval_json(p.interval90);
  out["step"] = step_json(p.step);
  out["microbatches"] = p.microbatches;
  out["mfu"] = p.mfu;
  out["hfu"] = p.hfu;
  out["samples_per_second"] = p.samples_per_second;
  out["tokens_per_second_per_device"] = p.tokens_per_second_per_device;
  out["cost_per_step_usd"] = p.cost_per_step ? Json(p.cost_per_step->value) : Json();
  out["fit"] = std::string(kFitNames[static_cast<std::size_t>(p.fit)]);
  out["peak_rank"] = p.peak_rank;
  out["peak_memory_bytes"] = p.peak_memory().total().value;
  out["memory"] = Json::array();
  for (const MemoryBreakdown& rank : p.memory) out["memory"].push_back(to_json(rank));
  for (std::size_t b = 0; b < kBasisCount; ++b) {
    out["basis"][std::string(kBasisNames[b])] = p.basis[b];
  }
  out["assumptions"] = p.assumptions;
  return out;
}

Json to_json(const Explanation& e) {
  Json out;
  out["binding"] = term_json(e.binding, e.share);
  out["largest_loss"] = e.largest_loss ? term_json(*e.largest_loss, e.loss_share) : Json();
  out["remedies"] = Json::array();
  for (const Remedy& remedy : e.remedies) {
    out["remedies"].push_back(
        {{"change", remedy.change}, {"effect", remedy.effect}, {"hides", remedy.hides}});
  }
  out["sentence"] = e.sentence;
  return out;
}

}  // namespace towtank
