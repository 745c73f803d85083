// SPDX-License-Identifier: Apache-2.0
#include "placement/plan.h"

#include "core/contracts.h"

namespace towtank {
namespace {

bool same_bytes(const std::optional<StateBytes>& a, const std::optional<StateBytes>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || (a->parameter == b->parameter && a->gradient == b->gradient &&
                a->optimizer == b->optimizer && a->extra == b->extra);
}

}  // namespace

bool operator==(const Plan& a, const Plan& b) {
  return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data &&
         a.context == b.context && a.expert == b.expert && a.expert_tensor == b.expert_tensor &&
         a.stages_per_rank == b.stages_per_rank && a.microbatch == b.microbatch &&
         a.schedule == b.schedule && a.sequence_parallel == b.sequence_parallel &&
         a.sharding_stage == b.sharding_stage && a.recompute == b.recompute &&
         a.framework == b.framework && same_bytes(a.state_override, b.state_override) &&
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
