// SPDX-License-Identifier: Apache-2.0
#include "placement/validity.h"

#include <algorithm>
#include <cstdint>

#include "core/text.h"
#include "core/unit_text.h"
#include "model/graph/shard.h"
#include "placement/space.h"

namespace towtank {
namespace {

std::string n(std::int64_t value) { return with_thousands(value); }

/// "1, 2, 4": the divisors, the later ones of a long list left out but for the value itself.
std::string divisors_text(std::int64_t value) {
  constexpr std::size_t kShown = 12;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d * d <= value; ++d) {
    if (value % d == 0) divisors.push_back(d);
  }
  for (std::size_t i = divisors.size(); i-- > 0;) {
    const std::int64_t other = value / divisors[i];
    if (other != divisors[i]) divisors.push_back(other);
  }
  std::vector<std::string> texts;
  for (const std::int64_t d : divisors) texts.push_back(n(d));
  if (texts.size() > kShown) {
    texts.erase(texts.begin() + kShown - 2, texts.end() - 1);
    texts.insert(texts.end() - 1, "...");
  }
  return join(texts, ", ");
}

std::string_view name_of(Framework framework) {
  return kFrameworkNames[static_cast<std::size_t>(framework)];
}
std::string_view name_of(ScheduleKind kind) {
  return kScheduleNames[static_cast<std::size_t>(kind)];
}

class PlanCheck {
 public:
  PlanCheck(const Plan& plan, const ModelGraph& graph, const Workload& workload,
            const NetworkView& view, const ValidityOptions& options)
      : plan_(plan), graph_(graph), workload_(workload), view_(view), options_(options) {}

  std::vector<Invalid> run() {
    check_devices();
    check_batch();
    check_layers();
    check_experts();
    check_sequence_parallel();
    check_tensor_domain();
    check_schedule();
    check_interleaving();
    check_stages();
    check_sharding_stage();
    check_rank_map();
    return std::move(found_);
  }

 private:
  void add(std::string rule, std::string problem, std::string hint = "") {
    found_.push_back({std::move(rule), std::move(problem), std::move(hint)});
  }

  void check_devices() {
    const std::int64_t others =
        static_cast<std::int64_t>(plan_.tensor) * plan_.pipeline * plan_.context;
    const std::int64_t product = others * plan_.data;
    if (product == view_.devices) return;
    std::string hint;
    if (view_.devices % others == 0) hint = "data = " + n(view_.devices / others) + " uses all";
    add("devices",
        "tensor " + n(plan_.tensor) + " x pipeline " + n(plan_.pipeline) + " x data " +
            n(plan_.data) + " x context " + n(plan_.context) + " = " + n(product) + " ranks on " +
            n(view_.devices) + " devices",
        hint);
  }

  void check_batch() {
    const std::int64_t batch = workload_.global_batch;
    const std::int64_t samples = static_cast<std::int64_t>(plan_.data) * plan_.microbatch;
    if (batch % samples == 0) return;
    const std::string problem = "a global batch of " + n(batch) + " does not divide by data " +
                                n(plan_.data) + " x microbatch " + n(plan_.microbatch) + " = " +
                                n(samples);
    const bool data_divides = batch % plan_.data == 0;
    add("batch", problem,
        data_divides ? "microbatch can be " + divisors_text(batch / plan_.data)
                     : "data x microbatch can be " + divisors_text(batch));
  }

  void check_layers() {
    const ShardDegrees degrees{plan_.tensor,        plan_.context,    plan_.expert,
                               plan_.expert_tensor, plan_.microbatch, plan_.sequence_parallel};
    std::vector<std::string> reasons;
    for (const LayerKind& kind : graph_.kinds) {
      for (std::string& reason : check_shard(kind, degrees, rules_of(plan_.framework))) {
        if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
          reasons.push_back(std::move(reason));
        }
      }
    }
    for (std::string& reason : reasons) add("layer", std::move(reason));
  }

  [[nodiscard]] bool has_experts() const {
    return std::any_of(graph_.kinds.begin(), graph_.kinds.end(),
                       [](const LayerKind& kind) { return kind.limits.experts > 0; });
  }

  void check_experts() {
    if (!has_experts()) {
      if (plan_.expert > 1 || plan_.expert_tensor > 1) {
        add("expert",
            "expert " + n(plan_.expert) + ", expert_tensor " + n(plan_.expert_tensor) +
                ": the model has no experts",
            "both are 1");
      }
      return;
    }
    const std::int64_t ranks = static_cast<std::int64_t>(plan_.data) * plan_.context * plan_.tensor;
    const std::int64_t group = static_cast<std::int64_t>(plan_.expert) * plan_.expert_tensor;
    if (ranks % group != 0) {
      add("expert",
          "data x context x tensor = " + n(ranks) +
              " does not divide by expert x expert_tensor = " + n(group),
          "expert x expert_tensor can be " + divisors_text(ranks));
    }
    if (plan_.expert_tensor != 1 && plan_.expert_tensor != plan_.tensor) {
      add("expert", "expert_tensor " + n(plan_.expert_tensor) + " with tensor " + n(plan_.tensor),
          "it is 1 or tensor");
    }
  }

  void check_sequence_parallel() {
    if (plan_.sequence_parallel && plan_.tensor == 1) {
      add("sequence_parallel", "sequence parallelism with tensor 1",
          "it divides what the tensor ranks would hold twice");
    }
    // Experts that are not divided over the tensor ranks need it anyhow: check_shard says so.
    if (!plan_.sequence_parallel && plan_.tensor > 1 && plan_.expert > 1 &&
        plan_.expert_tensor == plan_.tensor) {
      add("sequence_parallel",
          "tensor " + n(plan_.tensor) + " with expert " + n(plan_.expert) +
              " needs sequence parallelism",
          "set sequence_parallel");
    }
  }

  void check_tensor_domain() {
    if (options_.tensor_beyond_node || plan_.tensor == 1) return;
    if (plan_.tensor > view_.devices_per_node) {
      add("tensor_domain",
          "tensor " + n(plan_.tensor) + " is more than the " + n(view_.devices_per_node) +
              " devices of a node",
          "its collectives would cross the network in every layer; --tensor-beyond-node allows it");
    } else if (view_.devices > view_.devices_per_node &&
               view_.devices_per_node % plan_.tensor != 0) {
      add("tensor_domain",
          "groups of tensor " + n(plan_.tensor) + " do not fill nodes of " +
              n(view_.devices_per_node) + " devices, some would span two",
          "tensor can be " + divisors_text(view_.devices_per_node) +
              "; --tensor-beyond-node allows it");
    }
  }

  void check_schedule() {
    if (plan_.pipeline == 1) {
      if (plan_.schedule != ScheduleKind::kNone) {
        add("schedule", "schedule " + std::string(name_of(plan_.schedule)) + " with pipeline 1",
            "schedule is null");
      }
      return;
    }
    const std::vector<ScheduleKind> runs = schedules_of(plan_.framework);
    const std::string framework(name_of(plan_.framework));
    if (runs.empty()) {
      add("schedule", framework + " has no pipeline: pipeline " + n(plan_.pipeline),
          "pipeline is 1");
      return;
    }
    if (std::find(runs.begin(), runs.end(), plan_.schedule) != runs.end()) return;
    std::vector<std::string> names;
    for (const ScheduleKind kind : runs) names.emplace_back(name_of(kind));
    add("schedule",
        framework + " does not run schedule " + std::string(name_of(plan_.schedule)) +
            " on pipeline " + n(plan_.pipeline),
        "it runs " + join_and(names));
  }

  void check_interleaving() {
    const bool interleaved = plan_.schedule == ScheduleKind::kInterleaved;
    if (interleaved != (plan_.stages_per_rank > 1)) {
      add("interleaving",
          "schedule " + std::string(name_of(plan_.schedule)) + " with stages_per_rank " +
              n(plan_.stages_per_rank),
          interleaved ? "interleaved takes 2 or more" : "only interleaved takes more than 1");
    }
    const std::int64_t samples = static_cast<std::int64_t>(plan_.data) * plan_.microbatch;
    const std::int64_t microbatches = workload_.global_batch / samples;
    if (interleaved && microbatches % plan_.pipeline != 0) {
      add("interleaving",
          n(microbatches) + " microbatches do not divide by pipeline " + n(plan_.pipeline),
          "interleaved runs them in groups of pipeline");
    }
  }

  void check_stages() {
    const std::int64_t stages = static_cast<std::int64_t>(plan_.pipeline) * plan_.stages_per_rank;
    const int layers = graph_.free_layers();
    if (plan_.stages.empty()) {
      if (stages > layers) {
        add("stages",
            "pipeline " + n(plan_.pipeline) + " x stages_per_rank " + n(plan_.stages_per_rank) +
                " = " + n(stages) + " stages for " + n(layers) + " layers",
            "list stages to leave the first or the last without a layer");
      }
      return;
    }
    if (static_cast<std::int64_t>(plan_.stages.size()) != stages) {
      add("stages", n(static_cast<std::int64_t>(plan_.stages.size())) + " stages listed for " +
                        "pipeline x stages_per_rank = " + n(stages));
    }
    check_listed_stages(layers);
  }

  void check_listed_stages(int layers) {
    int next = 0;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const PlanStage& stage = plan_.stages[s];
      const std::string name = "stage " + n(static_cast<std::int64_t>(s));
      if (stage.first != next || stage.last < stage.first) {
        add("stages", name + " has layers [" + n(stage.first) + ", " + n(stage.last) + ")",
            "it starts at layer " + n(next) + ", where the stage before ends");
        return;
      }
      next = stage.last;
      const int held = stage.last - stage.first;
      const bool end = s == 0 || s + 1 == plan_.stages.size();
      if (held == 0 && !end) add("stages", name + " has no layer", "only the first and last may");
      if (stage.recompute_full < 0 || stage.recompute_selective < 0 ||
          stage.recompute_full + stage.recompute_selective > held) {
        add("stages", name + " recomputes " + n(stage.recompute_full) + " layers whole and " +
                          n(stage.recompute_selective) + " in part, and has " + n(held));
      }
    }
    if (next != layers) {
      add("stages", "the stages hold " + n(next) + " layers of " + n(layers),
          "every layer is on one stage");
    }
  }

  void check_sharding_stage() {
    const FrameworkRules& rules = rules_of(plan_.framework);
    const std::string framework(name_of(plan_.framework));
    const int highest = rules.highest_sharding_stage.value;
    if (plan_.sharding_stage < 0 || plan_.sharding_stage > highest) {
      add("sharding_stage",
          framework + " has no sharding stage " + std::to_string(plan_.sharding_stage),
          "it is 0 to " + n(highest));
    } else if (plan_.sharding_stage >= 2 && plan_.pipeline > 1 &&
               !rules.sharding_stage_3_with_pipeline.value) {
      add("sharding_stage",
          framework + " does not combine sharding stage " + n(plan_.sharding_stage) +
              " with pipeline " + n(plan_.pipeline),
          "it is 0 or 1 in a pipeline: sharded gradients would reduce in every microbatch");
    }
  }

  void check_rank_map() {
    if (plan_.rank_map.empty()) return;
    std::vector<int> devices = plan_.rank_map;
    std::sort(devices.begin(), devices.end());
    bool each_once = devices.size() == static_cast<std::size_t>(view_.devices);
    for (std::size_t i = 0; each_once && i < devices.size(); ++i) {
      each_once = devices[i] == static_cast<int>(i);
    }
    if (each_once) return;
    add("rank_map", "rank_map does not name each of " + n(view_.devices) + " devices once",
        "its entry r is the device of rank r, from 0");
  }

  const Plan& plan_;
  const ModelGraph& graph_;
  const Workload& workload_;
  const NetworkView& view_;
  const ValidityOptions& options_;
  std::vector<Invalid> found_;
};

}  // namespace

std::string to_text(const Invalid& invalid) {
  std::string text = invalid.problem;
  if (!invalid.hint.empty()) {
    text += " (";
    text += invalid.hint;
    text += ')';
  }
  return text;
}

std::vector<Invalid> check_plan(const Plan& plan, const ModelGraph& graph, const Workload& workload,
                                const NetworkView& view, const ValidityOptions& options) {
  // A degree below 1 would divide by zero in every other rule.
  for (const int degree : {plan.tensor, plan.pipeline, plan.data, plan.context, plan.expert,
                           plan.expert_tensor, plan.stages_per_rank, plan.microbatch}) {
    if (degree < 1) return {{"devices", "a degree is " + std::to_string(degree), "1 is the least"}};
  }
  return PlanCheck(plan, graph, workload, view, options).run();
}

std::vector<std::string> plan_warnings(const Plan& plan, const Workload& workload) {
  std::vector<std::string> warnings;
  const std::int64_t samples = static_cast<std::int64_t>(plan.data) * plan.microbatch;
  const std::int64_t microbatches = workload.global_batch / std::max<std::int64_t>(1, samples);
  if (plan.pipeline > 1 && microbatches < plan.pipeline) {
    warnings.push_back(n(microbatches) + " microbatches for " + n(plan.pipeline) +
                       " pipeline ranks: they are never all busy");
  }
  return warnings;
}

}  // namespace towtank
