// SPDX-License-Identifier: Apache-2.0
#include "placement/space.h"

#include <algorithm>

#include "core/text.h"

namespace towtank {
namespace {

std::vector<int> divisors(int n) {
  std::vector<int> out;
  for (int d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d * d != n) out.push_back(n / d);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<int> pinned_or(const std::optional<int>& pin, std::vector<int> values) {
  if (!pin) return values;
  const bool there = std::find(values.begin(), values.end(), *pin) != values.end();
  return there ? std::vector<int>{*pin} : std::vector<int>{};
}

bool layers_take(const ModelGraph& graph, const ShardDegrees& degrees,
                 const FrameworkRules& rules) {
  return std::all_of(graph.kinds.begin(), graph.kinds.end(), [&](const LayerKind& kind) {
    return check_shard(kind, degrees, rules).empty();
  });
}

std::vector<int> tensor_values(const PlanProblem& p, const Pins& pins) {
  std::vector<int> out;
  for (const int t : divisors(p.devices())) {
    if (t <= p.view.devices_per_node || p.tensor_beyond_node) out.push_back(t);
  }
  return pinned_or(pins.tensor, out);
}

std::vector<int> context_values(const PlanProblem& p, const Pins& pins, int tensor) {
  // Rings of shorter pieces do not pay: their attention is too small to hide a hop. Assumed.
  constexpr int kLeastTokens = 1024;
  const int s = p.workload->sequence_length;
  std::vector<int> out{1};
  for (int c = 2; s > 0 && s % (2 * c) == 0 && (p.devices() / tensor) % c == 0; c *= 2) {
    if (s / c >= kLeastTokens) out.push_back(c);
  }
  if (!pins.context || *pins.context == 1) return pinned_or(pins.context, out);
  const int c = *pins.context;
  const bool possible = c > 0 && s > 0 && s % (2 * c) == 0 && (p.devices() / tensor) % c == 0;
  return possible ? std::vector<int>{c} : std::vector<int>{};
}

std::int64_t experts_of(const ModelGraph& graph) {
  std::int64_t experts = 0;
  for (const LayerKind& kind : graph.kinds) experts = std::max(experts, kind.limits.experts);
  return experts;
}

std::vector<int> microbatch_values(const PlanProblem& p, const Pins& pins) {
  return pinned_or(pins.microbatch, divisors(p.workload->global_batch));
}

bool sequence_parallel_of(const Pins& pins, const PlanProblem& p, int tensor) {
  const bool possible = tensor > 1 && p.workload->sequence_length % tensor == 0;
  return pins.sequence_parallel.value_or(true) && possible;
}

}  // namespace

std::vector<ScheduleKind> schedules_of(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:
    case Framework::kMegatron2021:
    case Framework::kNemo:
      return {ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved};
    case Framework::kMegatronDeepSpeed:
      return {ScheduleKind::kOneFOneB};
    case Framework::kDeepSpeed:
      return {ScheduleKind::kOneFOneB};
    case Framework::kFsdp:
      return {};
    case Framework::kTorchtitan:
      return {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved};
    case Framework::kTowtankRuntime:
      return {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved,
              ScheduleKind::kZbH1};
  }
  return {};
}

std::vector<Node> nodes_of(const PlanProblem& p, Framework framework, const Pins& pins) {
  std::vector<Node> nodes;
  const FrameworkRules& rules = rules_of(framework);
  const auto experts = static_cast<int>(experts_of(*p.graph));
  const std::vector<int> microbatches = microbatch_values(p, pins);
  for (const int t : tensor_values(p, pins)) {
    for (const int c : context_values(p, pins, t)) {
      if (p.devices() % (t * c) != 0) continue;
      const std::vector<int> e_values =
          pinned_or(pins.expert, experts > 0 ? divisors(experts) : std::vector<int>{1});
      for (const int e : e_values) {
        if (p.devices() % e != 0) continue;
        for (const int tau : t > 1 && experts > 0 ? std::vector<int>{1, t} : std::vector<int>{1}) {
          if (pins.expert_tensor && *pins.expert_tensor != tau) continue;
          if (p.devices() % (e * tau) != 0) continue;
          Node node{t, c, e, tau, 1, sequence_parallel_of(pins, p, t)};
          if (!layers_take(*p.graph, node, rules)) continue;
          for (const int b : microbatches) {
            node.microbatch = b;
            nodes.push_back(node);
          }
        }
      }
    }
  }
  return nodes;
}

namespace {

/// Stages per rank worth trying: one per distinct number of layers in the largest chunk.
std::vector<int> chunk_counts(const Pins& pins, int layers, int pipeline) {
  std::vector<int> out;
  if (const auto v = pins.stages_per_rank) {
    if (*v >= 1 && *v <= layers / pipeline && (pipeline > 1 || *v == 1)) out.push_back(*v);
    return out;
  }
  int previous = 0;
  for (int v = 1; pipeline * v <= layers; ++v) {
    const int largest = (layers + pipeline * v - 1) / (pipeline * v);
    if (v > 1 && largest == previous && layers % (pipeline * v) != 0) continue;
    previous = largest;
    out.push_back(v);
    if (pipeline == 1) break;
  }
  return out;
}

std::vector<int> sharding_values(const FrameworkRules& rules, const Pins& pins, int pipeline,
                                 int shards) {
  int highest = rules.highest_sharding_stage.value;
  if (pipeline > 1 && !rules.sharding_stage_3_with_pipeline.value) highest = std::min(highest, 1);
  std::vector<int> out;
  if (pins.sharding_stage) {
    if (*pins.sharding_stage <= highest) out.push_back(*pins.sharding_stage);
    return out;
  }
  if (shards <= 1) return {0};
  // A whole all-reduce hides behind backward where the gather of stage 1 would be exposed.
  const bool whole_hides = rules.overlap_grad_reduce.value && !rules.overlap_param_gather.value;
  for (int z = whole_hides ? 0 : std::min(1, highest); z <= highest; ++z) out.push_back(z);
  return out;
}

void add_schedules(Framework framework, const Pins& pins, Shape shape, std::vector<Shape>& out) {
  if (shape.pipeline == 1) {
    if (pins.schedule && *pins.schedule != ScheduleKind::kNone) return;
    out.push_back(shape);
    return;
  }
  for (const ScheduleKind kind : schedules_of(framework)) {
    if (pins.schedule && *pins.schedule != kind) continue;
    const bool chunks = kind == ScheduleKind::kInterleaved;
    if (chunks != (shape.stages_per_rank > 1)) continue;
    if (chunks && shape.microbatches % shape.pipeline != 0) continue;
    shape.schedule = kind;
    out.push_back(shape);
  }
}

}  // namespace

void shapes_of(const PlanProblem& p, Framework framework, const Pins& pins, const Node& node,
               std::vector<Shape>& out) {
  out.clear();
  const FrameworkRules& rules = rules_of(framework);
  const int layers = p.graph->free_layers();
  const int outer = p.devices() / (node.tensor * node.context);
  const int batch = p.workload->global_batch;
  const int widest = schedules_of(framework).empty() ? 1 : std::min(outer, layers);
  for (int pipeline = 1; pipeline <= widest; ++pipeline) {
    if (outer % pipeline != 0 || (pins.pipeline && *pins.pipeline != pipeline)) continue;
    const int data = outer / pipeline;
    if (pins.data && *pins.data != data) continue;
    if (batch % data != 0 || batch / data % node.microbatch != 0) continue;
    if (static_cast<std::int64_t>(data) * node.context * node.tensor %
            (static_cast<std::int64_t>(node.expert) * node.expert_tensor) !=
        0) {
      continue;
    }
    for (const int v : chunk_counts(pins, layers, pipeline)) {
      for (const int z : sharding_values(rules, pins, pipeline, data * node.context)) {
        add_schedules(framework, pins,
                      {pipeline, data, v, ScheduleKind::kNone, z, batch / data / node.microbatch},
                      out);
      }
    }
  }
}

}  // namespace towtank
