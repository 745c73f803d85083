// SPDX-License-Identifier: Apache-2.0
// The `plan` object of plan and case files.
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "placement/plan_json.h"

namespace towtank {
namespace {

/// Degrees and counts: nobody has a million of anything that a plan counts in one dimension.
constexpr JsonRange kDegree{1, 1e6};
constexpr JsonRange kCount{0, 1e9};

constexpr std::array<std::string_view, 4> kRecomputeNames{"none", "selective", "full", "mixed"};
constexpr std::size_t kMixed = 3;

template <class E, std::size_t N>
std::string_view name_of(E value, const std::array<std::string_view, N>& names) {
  return names[static_cast<std::size_t>(value)];
}

int degree(const JsonReader& object, std::string_view key) {
  return static_cast<int>(object.integer(key, kDegree));
}

/// True if the key is stated; a missing one is a fault, a null one is not.
bool stated(const JsonReader& object, std::string_view key) { return !object.at(key).is_null(); }

/// Ranks are ints: a product beyond them is a fault here, before anything multiplies.
void check_product(const JsonReader& object, const Plan& plan) {
  const double product =
      static_cast<double>(plan.tensor) * plan.pipeline * plan.data * plan.context;
  const double expert = static_cast<double>(plan.expert) * plan.expert_tensor;
  const double stages = static_cast<double>(plan.pipeline) * plan.stages_per_rank;
  constexpr double kMost = std::numeric_limits<int>::max();
  if (product > kMost || expert > kMost || stages > kMost) {
    object.fault("has degrees whose product is over 2,147,483,647");
  }
}

StateBytes read_state_bytes(const JsonReader& object) {
  constexpr JsonRange kBytes{0, 64};
  StateBytes bytes;
  bytes.parameter = object.number("parameter", kBytes);
  bytes.gradient = object.number("gradient", kBytes);
  if (object.has("states")) {
    bytes.optimizer = object.number("states", kBytes);
    for (const char* part : {"main_copy", "moments"}) {
      if (object.has(part)) object.at(part).fault("is given beside states", "states is both");
    }
  } else {
    bytes.optimizer = object.number("main_copy", kBytes) + object.number("moments", kBytes);
  }
  bytes.extra = object.number_or("extra", bytes.extra, kBytes);
  bytes.gathered = object.number_or("gathered", bytes.gathered, kBytes);
  bytes.parameter_from =
      static_cast<int>(object.integer_or("parameter_from", bytes.parameter_from, {2, 3}));
  object.no_other_keys();
  return bytes;
}

Json state_bytes_json(const StateBytes& bytes) {
  Json json = Json::object();
  json["parameter"] = bytes.parameter;
  json["gradient"] = bytes.gradient;
  json["states"] = bytes.optimizer;
  json["extra"] = bytes.extra;
  json["gathered"] = bytes.gathered;
  json["parameter_from"] = bytes.parameter_from;
  return json;
}

/// The device kind that all replicas of a stage share; unequal replicas are a fault.
std::string read_replicas(const JsonReader& replicas, const Plan& plan) {
  const std::vector<JsonReader> items = replicas.elements();
  std::string kind;
  double first_share = 0;
  bool unequal = items.size() != 1 && items.size() != static_cast<std::size_t>(plan.data);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item_kind = items[i].string("device_kind");
    const double share = items[i].number_or("microbatch_share", 1.0, {0, 1});
    const int tensor = static_cast<int>(items[i].integer_or("tensor", plan.tensor, kDegree));
    items[i].no_other_keys();
    if (i == 0) {
      kind = item_kind;
      first_share = share;
    }
    unequal = unequal || item_kind != kind || share != first_share || tensor != plan.tensor;
  }
  if (unequal) {
    replicas.fault(
        "has unequal replicas", "these are not predicted yet",
        "Give one replica, which stands for all, with tensor = " + std::to_string(plan.tensor));
  }
  return kind;
}

/// {option: layers}. The sum can be short: the other layers keep everything.
void read_counts(const JsonReader& recompute, PlanStage& stage) {
  stage.recompute_full = static_cast<int>(recompute.integer_or("full", 0, kCount));
  stage.recompute_selective = static_cast<int>(recompute.integer_or("selective", 0, kCount));
  for (const std::string& option : recompute.keys()) {
    if (option == "full" || option == "selective") continue;
    recompute.at(option).fault("is an option that is not predicted yet", "known: full, selective");
  }
  if (stage.recompute_full + stage.recompute_selective > stage.last - stage.first) {
    recompute.fault("recomputes " +
                    std::to_string(stage.recompute_full + stage.recompute_selective) +
                    " layers of " + std::to_string(stage.last - stage.first));
  }
}

PlanStage read_stage(const JsonReader& object, const Plan& plan) {
  PlanStage stage;
  const JsonReader layers = object.at("layers");
  const std::vector<JsonReader> ends = layers.elements();
  if (ends.size() == 2) {
    stage.first = static_cast<int>(ends[0].as_integer(kCount));
    stage.last = static_cast<int>(ends[1].as_integer(kCount));
  }
  if (ends.size() != 2 || stage.first > stage.last) {
    layers.fault("is not [first, last)", "two layer numbers, the second not less");
  }
  if (const auto recompute = object.find("recompute")) read_counts(*recompute, stage);
  if (const auto offload = object.find("offload")) {
    offload->fault("is not predicted yet", "activations and states stay on the device",
                   "Remove it");
  }
  if (const auto replicas = object.find("replicas")) {
    stage.device_kind = read_replicas(*replicas, plan);
  }
  object.no_other_keys();
  return stage;
}

void read_stages(const JsonReader& object, Plan& plan) {
  const auto stages = object.find("stages");
  if (!stages) return;
  for (const JsonReader& stage : stages->elements()) plan.stages.push_back(read_stage(stage, plan));
  const std::int64_t expected = static_cast<std::int64_t>(plan.pipeline) * plan.stages_per_rank;
  if (static_cast<std::int64_t>(plan.stages.size()) != expected) {
    stages->fault("has " + std::to_string(plan.stages.size()) + " stages",
                  "pipeline * stages_per_rank = " + std::to_string(expected));
  }
}

RecomputeMode strongest(const std::vector<PlanStage>& stages) {
  RecomputeMode mode = RecomputeMode::kNone;
  for (const PlanStage& stage : stages) {
    if (stage.recompute_full > 0) return RecomputeMode::kFull;
    if (stage.recompute_selective > 0) mode = RecomputeMode::kSelective;
  }
  return mode;
}

std::string_view recompute_name(const std::vector<PlanStage>& stages) {
  const std::optional<RecomputeMode> mode = uniform_recompute(stages);
  return kRecomputeNames[mode ? static_cast<std::size_t>(*mode) : kMixed];
}

void read_recompute(const JsonReader& object, Plan& plan,
                    std::vector<std::string>& defaults_taken) {
  const bool given = stated(object, "recompute");
  const std::size_t mode = given ? object.one_of("recompute", kRecomputeNames) : 0;
  if (!plan.stages.empty()) {
    plan.recompute = strongest(plan.stages);
    const std::string_view name = recompute_name(plan.stages);
    if (given && kRecomputeNames[mode] != name) {
      object.at("recompute")
          .fault("is \"" + std::string(kRecomputeNames[mode]) + "\"",
                 "the stages say \"" + std::string(name) + "\"");
    }
    return;
  }
  if (given && mode == kMixed) {
    object.at("recompute").fault("is \"mixed\"", "that needs stages to say where");
  } else if (given) {
    plan.recompute = static_cast<RecomputeMode>(mode);
  } else {
    plan.recompute = default_recompute(plan.framework);
    defaults_taken.push_back(
        "recompute: " + std::string(name_of(plan.recompute, kRecomputeModeNames)) + " (" +
        std::string(name_of(plan.framework, kFrameworkNames)) + "'s default)");
  }
}

void read_schedule(const JsonReader& object, Plan& plan, std::vector<std::string>& defaults_taken) {
  if (stated(object, "stages_per_rank")) {
    plan.stages_per_rank = degree(object, "stages_per_rank");
  } else {
    defaults_taken.emplace_back("stages_per_rank: 1");
  }
  if (stated(object, "schedule")) {
    plan.schedule = static_cast<ScheduleKind>(object.one_of("schedule", kScheduleNames));
  } else if (plan.pipeline > 1) {
    plan.schedule = plan.stages_per_rank > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
    defaults_taken.push_back("schedule: " + std::string(name_of(plan.schedule, kScheduleNames)));
  }
}

void read_rank_map(const JsonReader& object, Plan& plan) {
  const auto map = object.find("rank_map");
  if (!map) return;
  for (const JsonReader& device : map->elements()) {
    plan.rank_map.push_back(static_cast<int>(device.as_integer(kCount)));
  }
}

}  // namespace

Plan read_plan(const JsonReader& object, std::vector<std::string>& defaults_taken) {
  Plan plan;
  plan.tensor = degree(object, "tensor");
  plan.pipeline = degree(object, "pipeline");
  plan.data = degree(object, "data");
  plan.context = degree(object, "context");
  plan.expert = degree(object, "expert");
  plan.expert_tensor = static_cast<int>(object.integer_or("expert_tensor", 1, kDegree));
  if (stated(object, "microbatch")) {
    plan.microbatch = degree(object, "microbatch");
  } else {
    defaults_taken.emplace_back("microbatch: 1");
  }
  read_schedule(object, plan, defaults_taken);
  check_product(object, plan);
  if (stated(object, "sequence_parallel")) {
    plan.sequence_parallel = object.boolean("sequence_parallel");
  } else {
    plan.sequence_parallel = plan.tensor > 1;
    defaults_taken.emplace_back(plan.sequence_parallel ? "sequence_parallel: true"
                                                       : "sequence_parallel: false");
  }
  if (stated(object, "sharding_stage")) {
    plan.sharding_stage = static_cast<int>(object.integer("sharding_stage", {0, 3}));
  } else {
    defaults_taken.emplace_back("sharding_stage: 0");
  }
  plan.framework = static_cast<Framework>(object.one_of("framework", kFrameworkNames));
  if (const auto bytes = object.find("optimizer")) plan.state_override = read_state_bytes(*bytes);
  plan.compile = object.boolean_or("compile", false);
  read_stages(object, plan);
  read_recompute(object, plan, defaults_taken);
  read_rank_map(object, plan);
  object.no_other_keys();
  return plan;
}

namespace {

Json stage_json(const PlanStage& stage, int tensor) {
  Json json = Json::object();
  json["layers"] = {stage.first, stage.last};
  Json recompute = Json::object();
  if (stage.recompute_full > 0) recompute["full"] = stage.recompute_full;
  if (stage.recompute_selective > 0) recompute["selective"] = stage.recompute_selective;
  json["recompute"] = std::move(recompute);
  if (!stage.device_kind.empty()) {
    Json replica = Json::object();
    replica["device_kind"] = stage.device_kind;
    replica["tensor"] = tensor;
    replica["microbatch_share"] = 1;
    json["replicas"] = Json::array({std::move(replica)});
  }
  return json;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json json = Json::object();
  json["tensor"] = plan.tensor;
  json["pipeline"] = plan.pipeline;
  json["data"] = plan.data;
  json["context"] = plan.context;
  json["expert"] = plan.expert;
  json["expert_tensor"] = plan.expert_tensor;
  json["stages_per_rank"] = plan.stages_per_rank;
  json["microbatch"] = plan.microbatch;
  json["schedule"] = nullptr;
  if (plan.schedule != ScheduleKind::kNone) {
    json["schedule"] = name_of(plan.schedule, kScheduleNames);
  }
  json["sequence_parallel"] = plan.sequence_parallel;
  json["sharding_stage"] = plan.sharding_stage;
  json["recompute"] = plan.stages.empty() ? name_of(plan.recompute, kRecomputeModeNames)
                                          : recompute_name(plan.stages);
  json["framework"] = name_of(plan.framework, kFrameworkNames);
  if (plan.state_override) json["optimizer"] = state_bytes_json(*plan.state_override);
  json["compile"] = plan.compile;
  if (!plan.stages.empty()) {
    Json stages = Json::array();
    for (const PlanStage& stage : plan.stages) stages.push_back(stage_json(stage, plan.tensor));
    json["stages"] = std::move(stages);
  }
  if (!plan.rank_map.empty()) json["rank_map"] = plan.rank_map;
  return json;
}

}  // namespace towtank
