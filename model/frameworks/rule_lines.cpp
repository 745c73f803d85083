// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "model/frameworks/rules.h"
#include "model/graph/model_graph.h"

namespace towtank {
namespace {

std::string value_text(bool value) { return value ? "yes" : "no"; }
std::string value_text(int value) { return std::to_string(value); }
std::string value_text(Bytes value) { return std::to_string(value.value) + " bytes"; }
std::string value_text(ReduceCadence value) {
  return value == ReduceCadence::kPerStep ? "per step" : "per microbatch";
}
std::string value_text(double value) {
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.4g", value);
  return {text.data(), static_cast<std::size_t>(length)};
}
std::string value_text(unsigned groups) {
  constexpr std::array<std::string_view, kRecomputeGroupCount> kNames{
      "the rest",           "norms",
      "the gated product",  "the MLP",
      "the attention core", "the MLA up-projection",
      "the experts"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if ((groups >> i & 1U) == 0) continue;
    if (!text.empty()) text += ", ";
    text += kNames[i];
  }
  return text.empty() ? "nothing" : text;
}

template <class Visitor>
void visit_compute(const FrameworkRules& r, Visitor&& visit) {
  visit("fused attention", r.fused_attention);
  visit("dropout", r.dropout);
  visit("fused cross entropy", r.fused_cross_entropy);
  visit("bytes a logit at the loss", r.logits_bytes);
  visit("bytes a logit that the loss moves, forward", r.loss_traffic);
  visit("bytes a logit that the loss moves, backward", r.loss_traffic_backward);
  visit("vocabulary padded to a multiple of (times tensor)", r.vocabulary_multiple);
  visit("tensor-parallel communication hidden, fraction", r.tensor_overlap);
  visit("pipeline sends asynchronous", r.async_p2p);
  visit("pipeline sends asynchronous when interleaved", r.async_p2p_interleaved);
  visit("kv heads replicated over more tensor ranks", r.kv_replication);
  visit("pipeline sends carry 1/tensor without sequence parallelism", r.scatter_gather_p2p);
  visit("selective recompute drops", r.selective_groups);
  visit("share of a dropped MLP that selective recompute keeps", r.selective_mlp_kept);
  visit("full recompute distributes what it keeps", r.distribute_saved);
  visit("kernels an unfused elementwise group", r.elementwise_kernels);
}

template <class Visitor>
void visit_data_parallel(const FrameworkRules& r, Visitor&& visit) {
  visit("highest sharding stage", r.highest_sharding_stage);
  visit("sharding stage 3 inside a pipeline", r.sharding_stage_3_with_pipeline);
  visit("gradients reduced, sharding stage 0 and 1", r.reduce_cadence_low);
  visit("gradients reduced, sharding stage 2 and 3", r.reduce_cadence_high);
  visit("gradients reduced, sharding stage 2 and 3 inside a pipeline", r.reduce_cadence_pipeline);
  visit("bytes a gradient on the wire", r.reduce_bytes);
  visit("gradient bucket", r.bucket_bytes);
  visit("gradient buckets beside the gradients", r.bucket_copies);
  visit("buckets copy every gradient at sharding stage 0", r.bucket_all_gradients);
  visit("gradient reduction overlaps backward", r.overlap_grad_reduce);
  visit("parameter gather overlaps forward", r.overlap_param_gather);
  visit("layers a gathered unit", r.gather_layers);
  visit("units gathered ahead", r.prefetch_units);
  visit("parameters kept gathered", r.live_parameters);
  visit("parameters dropped after forward", r.reshard_after_forward);
  visit("parameters dropped after forward inside a pipeline", r.reshard_in_pipeline);
}

template <class Visitor>
void visit_memory(const FrameworkRules& r, Visitor&& visit) {
  visit("optimizer traffic, bytes a parameter", r.optimizer_traffic);
  visit("optimizer temporaries, bytes a parameter", r.optimizer_temporary);
  visit("parameters an optimizer group, 0 = all", r.optimizer_group);
  visit("runtime context", r.context_bytes);
  visit("workspaces", r.buffer_bytes);
  visit("allocator reserve factor", r.reserved_factor);
}

}  // namespace

std::vector<RuleLine> rule_lines(Framework framework) {
  std::vector<RuleLine> lines;
  const auto add = [&lines](std::string_view name, const auto& cell) {
    lines.push_back({name, value_text(cell.value), cell.source});
  };
  const FrameworkRules& rules = rules_of(framework);
  visit_compute(rules, add);
  visit_data_parallel(rules, add);
  visit_memory(rules, add);
  return lines;
}

std::vector<std::string> assumed_cells(Framework framework) {
  std::vector<std::string> texts;
  for (const RuleLine& line : rule_lines(framework)) {
    if (!line.source.empty()) continue;
    texts.push_back(std::string(line.name) + ": " + line.value + " (assumed)");
  }
  return texts;
}

}  // namespace towtank
