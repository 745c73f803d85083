// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "placement/space.h"

namespace towtank {
namespace {

std::string n(std::int64_t v) { return std::to_string(v); }

std::string divisors_text(std::int64_t value) {
  std::string out;
  int shown = 0;
  for (std::int64_t d = 1; d <= value && shown < 12; ++d) {
    if (value % d != 0) continue;
    out += (out.empty() ? "" : ", ") + n(d);
    ++shown;
  }
  return out;
}

void check_degrees(const PlanProblem& p, const Pins& pins, std::vector<std::string>& out) {
  const auto divides = [&](const std::optional<int>& pin, const char* name) {
    if (pin && p.devices() % *pin != 0) {
      out.push_back(std::string(name) + "=" + n(*pin) + " does not divide " + n(p.devices()) +
                    " devices (valid: " + divisors_text(p.devices()) + ")");
    }
  };
  divides(pins.tensor, "tensor");
  divides(pins.pipeline, "pipeline");
  divides(pins.data, "data");
  divides(pins.context, "context");
  std::int64_t product = 1;
  for (const auto& pin : {pins.tensor, pins.pipeline, pins.data, pins.context}) {
    product *= pin.value_or(1);
  }
  const bool all = pins.tensor && pins.pipeline && pins.data && pins.context;
  if (all ? product != p.devices() : out.empty() && p.devices() % product != 0) {
    out.push_back("tensor x pipeline x data x context = " + n(product) +
                  (all ? " is not " : " does not divide ") + n(p.devices()) + " devices");
  }
  if (pins.tensor && *pins.tensor > p.view.devices_per_node && !p.tensor_beyond_node) {
    out.push_back("tensor=" + n(*pins.tensor) + " is larger than a node of " +
                  n(p.view.devices_per_node) + " devices (allow it with --tensor-beyond-node)");
  }
}

void check_batch(const PlanProblem& p, const Pins& pins, std::vector<std::string>& out) {
  if (!out.empty()) return;  // degrees that are wrong in themselves leave no replicas to ask about
  const std::int64_t batch = p.workload->global_batch;
  std::int64_t replicas = pins.data.value_or(0);
  if (!pins.data && pins.tensor && pins.pipeline) {
    replicas = p.devices() / *pins.tensor / *pins.pipeline / pins.context.value_or(1);
  }
  if (replicas > 0 && batch % replicas != 0) {
    out.push_back("a global batch of " + n(batch) + " is not divisible by data=" + n(replicas) +
                  " (valid data degrees: " + divisors_text(batch) + ")");
  } else if (replicas > 0 && pins.microbatch && batch / replicas % *pins.microbatch != 0) {
    out.push_back("microbatch=" + n(*pins.microbatch) + " does not divide the " +
                  n(batch / replicas) +
                  " samples of a replica (valid: " + divisors_text(batch / replicas) + ")");
  } else if (replicas == 0 && pins.microbatch && batch % *pins.microbatch != 0) {
    out.push_back("microbatch=" + n(*pins.microbatch) + " does not divide a global batch of " +
                  n(batch));
  }
}

/// Interleaving takes microbatches in rounds of p: m = B / (D b) is to be a multiple of it.
void check_interleaving(const PlanProblem& p, const Pins& pins, std::vector<std::string>& out) {
  if (pins.stages_per_rank.value_or(1) <= 1) return;
  if (pins.pipeline && *pins.pipeline == 1) {
    out.push_back("stages_per_rank=" + n(*pins.stages_per_rank) + " needs a pipeline");
    return;
  }
  if (!pins.pipeline || !pins.tensor || !pins.microbatch) return;
  const int inner = *pins.tensor * *pins.pipeline * pins.context.value_or(1);
  if (p.devices() % inner != 0) return;
  const std::int64_t samples = (p.devices() / inner) * std::int64_t{*pins.microbatch};
  const std::int64_t batch = p.workload->global_batch;
  if (batch % samples != 0 || (batch / samples) % *pins.pipeline == 0) return;
  out.push_back(
      "interleaving needs microbatches a replica in multiples of pipeline=" + n(*pins.pipeline) +
      ", here are " + n(batch / samples) + " with context=" + n(pins.context.value_or(1)));
}

void check_layers(const PlanProblem& p, Framework framework, const Pins& pins,
                  std::vector<std::string>& out) {
  ShardDegrees d;
  d.tensor = pins.tensor.value_or(1);
  d.context = pins.context.value_or(1);
  d.expert = pins.expert.value_or(1);
  d.expert_tensor = pins.expert_tensor.value_or(1);
  d.sequence_parallel = d.tensor > 1;
  for (const LayerKind& kind : p.graph->kinds) {
    for (std::string& reason : check_shard(kind, d, rules_of(framework))) {
      if (std::find(out.begin(), out.end(), reason) == out.end()) out.push_back(std::move(reason));
    }
  }
  const int stages = pins.pipeline.value_or(1) * pins.stages_per_rank.value_or(1);
  if (stages > p.graph->free_layers()) {
    out.push_back("pipeline x stages_per_rank = " + n(stages) + " is more than the " +
                  n(p.graph->free_layers()) + " layers");
  }
  if (p.workload->sequence_length > 0 && d.context > 1 &&
      p.workload->sequence_length % (2 * d.context) != 0) {
    out.push_back("a sequence of " + n(p.workload->sequence_length) +
                  " is not divisible by 2 x context = " + n(2 * d.context));
  }
}

void check_framework(Framework framework, const Pins& pins, std::vector<std::string>& out) {
  const std::string name(kFrameworkNames[static_cast<std::size_t>(framework)]);
  const auto schedules = schedules_of(framework);
  if (schedules.empty() && pins.pipeline.value_or(1) > 1) {
    out.push_back(name + " has no pipeline parallelism: pipeline must be 1");
  }
  if (pins.schedule && *pins.schedule != ScheduleKind::kNone &&
      std::find(schedules.begin(), schedules.end(), *pins.schedule) == schedules.end()) {
    std::string have;
    for (const ScheduleKind kind : schedules) {
      have +=
          (have.empty() ? "" : ", ") + std::string(kScheduleNames[static_cast<std::size_t>(kind)]);
    }
    out.push_back(name + " does not run schedule " +
                  std::string(kScheduleNames[static_cast<std::size_t>(*pins.schedule)]) +
                  (have.empty() ? "" : " (it has: " + have + ")"));
  }
  const FrameworkRules& rules = rules_of(framework);
  if (pins.sharding_stage && *pins.sharding_stage > rules.highest_sharding_stage.value) {
    out.push_back(name + " shards up to stage " + n(rules.highest_sharding_stage.value));
  }
}

}  // namespace

std::vector<std::string> why_empty(const PlanProblem& problem, Framework framework,
                                   const Pins& pins) {
  std::vector<std::string> out;
  check_degrees(problem, pins, out);
  check_batch(problem, pins, out);
  check_layers(problem, framework, pins, out);
  check_framework(framework, pins, out);
  check_interleaving(problem, pins, out);
  if (!out.empty()) return out;
  out.push_back("no split of " + n(problem.devices()) +
                " devices over tensor, pipeline, data and "
                "context leaves a data degree that divides a global batch of " +
                n(problem.workload->global_batch) + " and satisfies the pins together");
  return out;
}

}  // namespace towtank
