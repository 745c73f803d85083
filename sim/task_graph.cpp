// SPDX-License-Identifier: Apache-2.0
#include "sim/task_graph.h"

#include "core/contracts.h"

namespace towtank {
namespace {

std::int32_t count_of(const auto& items) { return static_cast<std::int32_t>(items.size()); }

}  // namespace

std::string Actor::name() const {
  std::string out = "stage rank " + std::to_string(pipeline_rank);
  if (replicas == 1) return out + ", replica " + std::to_string(first_replica);
  return out + ", " + std::to_string(replicas) + " replicas folded";
}

std::int32_t TaskGraphBuilder::add(const Task& task, std::span<const std::int32_t> members) {
  EXPECTS(task.duration >= 0 && task.transfer >= 0);
  EXPECTS(task.flows == 0 || task.kind == TaskKind::kCommunication);
  Task& added = graph_.tasks.emplace_back(task);
  added.first_member = count_of(graph_.members);
  added.members = count_of(members);
  graph_.members.insert(graph_.members.end(), members.begin(), members.end());
  return count_of(graph_.tasks) - 1;
}

std::int32_t TaskGraphBuilder::add_flows(std::span<const Flow> flows) {
  const std::int32_t first = count_of(graph_.flows);
  for (const Flow& flow : flows) {
    EXPECTS(flow.bytes > 0 && flow.rate > 0);
    graph_.flows.push_back(flow);
  }
  return first;
}

std::int32_t TaskGraphBuilder::add_actor(const Actor& actor) {
  graph_.actors.push_back(actor);
  return count_of(graph_.actors) - 1;
}

std::int32_t TaskGraphBuilder::add_split(const TimeSplit& split) {
  graph_.splits.push_back(split);
  return count_of(graph_.splits) - 1;
}

void TaskGraphBuilder::depend(std::int32_t before, std::int32_t after) {
  EXPECTS(before >= 0 && after >= 0 && before != after);
  edges_.push_back({before, after});
}

TaskGraph TaskGraphBuilder::build() && {
  const std::size_t n = graph_.tasks.size();
  graph_.first_successor.assign(n + 1, 0);
  graph_.predecessors.assign(n, 0);
  for (const auto& [before, after] : edges_) {
    ++graph_.first_successor[static_cast<std::size_t>(before) + 1];
    ++graph_.predecessors[static_cast<std::size_t>(after)];
  }
  for (std::size_t i = 0; i < n; ++i) graph_.first_successor[i + 1] += graph_.first_successor[i];
  graph_.successors.resize(edges_.size());
  std::vector<std::int32_t> next(graph_.first_successor.begin(), graph_.first_successor.end() - 1);
  for (const auto& [before, after] : edges_) {
    graph_.successors[static_cast<std::size_t>(next[static_cast<std::size_t>(before)]++)] = after;
  }
  return std::move(graph_);
}

std::string task_text(const Task& task) {
  std::string label(kLabelNames[static_cast<std::size_t>(task.label)]);
  switch (task.label) {
    case Label::kForward:
    case Label::kBackward:
    case Label::kInputGrad:
    case Label::kWeightGrad:
      return std::to_string(task.stage) + label + std::to_string(task.microbatch);
    case Label::kSend:
    case Label::kExchange:
      return label + " " + std::to_string(task.stage) + "/" + std::to_string(task.microbatch);
    case Label::kReduce:
    case Label::kGather:
    case Label::kBucketReady:
    case Label::kCollective:
      return task.part < 0 ? label : label + " " + std::to_string(task.part);
    case Label::kTiedReduce:
    case Label::kNorm:
    case Label::kOptimizer:
    case Label::kHostGap:
    case Label::kInput:
    case Label::kJoin:
    case Label::kKernel:
    case Label::kHostCall:
      return label;
  }
  contract_violated("EXPECTS", "a known label", __FILE__, __LINE__);
}

}  // namespace towtank
