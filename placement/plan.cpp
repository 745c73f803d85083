// SPDX-License-Identifier: Apache-2.0
#include "placement/plan.h"

#include "core/contracts.h"
#include "placement/split.h"

namespace towtank {

bool operator==(const Plan& a, const Plan& b) {
  return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data &&
         a.context == b.context && a.expert == b.expert && a.expert_tensor == b.expert_tensor &&
         a.stages_per_rank == b.stages_per_rank && a.microbatch == b.microbatch &&
         a.schedule == b.schedule && a.sequence_parallel == b.sequence_parallel &&
         a.sharding_stage == b.sharding_stage && a.recompute == b.recompute &&
         a.framework == b.framework && a.state_override == b.state_override &&
         a.compile == b.compile && a.stages == b.stages && a.rank_map == b.rank_map;
}

RankCoordinates coordinates_of(const Plan& plan, int rank) {
  EXPECTS(rank >= 0 && rank < plan.devices());
  const int in_stage = plan.tensor * plan.context * plan.data;  // ranks of one pipeline rank
  const int local = rank % in_stage;
  return {.tensor = local % plan.tensor,
          .context = local / plan.tensor % plan.context,
          .data = local / (plan.tensor * plan.context),
          .pipeline = rank / in_stage,
          .expert_tensor = local % plan.expert_tensor,
          .expert = local / plan.expert_tensor % plan.expert,
          .expert_data = local / (plan.expert_tensor * plan.expert)};
}

GroupStride group_of(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::kTensor:
      return {plan.tensor, 1};
    case Axis::kContext:
      return {plan.context, plan.tensor};
    case Axis::kData:
      return {plan.data, plan.tensor * plan.context};
    case Axis::kPipeline:
      return {plan.pipeline, plan.tensor * plan.context * plan.data};
    case Axis::kExpertTensor:
      return {plan.expert_tensor, 1};
    case Axis::kExpert:
      return {plan.expert, plan.expert_tensor};
  }
  contract_violated("EXPECTS", "a known axis", __FILE__, __LINE__);
}

GroupStride gradient_group(const Plan& plan, bool expert) {
  if (expert) return {plan.expert_data(), plan.expert_tensor * plan.expert};
  return {plan.data_shards(), plan.tensor};
}

RecomputeMode default_recompute(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:           // Megatron-LM --recompute-granularity: none
    case Framework::kMegatron2021:       // Megatron-LM 2.x --checkpoint-activations is off
    case Framework::kMegatronDeepSpeed:  // the same
    case Framework::kNemo:               // NeMo activations_checkpoint_granularity: null
    case Framework::kFsdp:               // LLM-Foundry activation_checkpointing: false
    case Framework::kDeepSpeed:          // calls in model code; none unless written
    case Framework::kTowtankRuntime:
      return RecomputeMode::kNone;
    case Framework::kTorchtitan:  // torchtitan activation_checkpoint.mode: "selective"
      return RecomputeMode::kSelective;
  }
  contract_violated("EXPECTS", "a known framework", __FILE__, __LINE__);
}

std::optional<RecomputeMode> uniform_recompute(std::span<const PlanStage> stages) {
  int layers = 0;
  int full = 0;
  int selective = 0;
  for (const PlanStage& stage : stages) {
    layers += stage.last - stage.first;
    full += stage.recompute_full;
    selective += stage.recompute_selective;
  }
  if (full == 0 && selective == 0) return RecomputeMode::kNone;
  if (full == layers) return RecomputeMode::kFull;
  if (selective == layers) return RecomputeMode::kSelective;
  return std::nullopt;
}

void expand_stages(Plan& plan, int free_layers) {
  if (!plan.stages.empty()) return;
  const std::vector<int> bounds = even_split(free_layers, plan.pipeline * plan.stages_per_rank);
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    PlanStage stage;
    stage.first = bounds[s];
    stage.last = bounds[s + 1];
    const int layers = stage.last - stage.first;
    if (plan.recompute == RecomputeMode::kFull) stage.recompute_full = layers;
    if (plan.recompute == RecomputeMode::kSelective) stage.recompute_selective = layers;
    plan.stages.push_back(std::move(stage));
  }
}

std::string short_text(const Plan& plan) {
  std::string text = "tp" + std::to_string(plan.tensor) + " pp" + std::to_string(plan.pipeline) +
                     " dp" + std::to_string(plan.data);
  const auto add = [&](const char* word, int degree) {
    if (degree > 1) text += std::string(" ") + word + std::to_string(degree);
  };
  add("cp", plan.context);
  add("ep", plan.expert);
  add("etp", plan.expert_tensor);
  add("vp", plan.stages_per_rank);
  text += " mb" + std::to_string(plan.microbatch);
  if (plan.schedule != ScheduleKind::kNone) {
    text += ' ';
    text += kScheduleNames[static_cast<std::size_t>(plan.schedule)];
  }
  text += " zero" + std::to_string(plan.sharding_stage);
  if (plan.sequence_parallel) text += " sp";
  if (plan.recompute != RecomputeMode::kNone) {
    text += ' ';
    text += kRecomputeModeNames[static_cast<std::size_t>(plan.recompute)];
  }
  return text;
}

}  // namespace towtank
