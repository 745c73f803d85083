// SPDX-License-Identifier: Apache-2.0
#include "app/pins.h"

#include <algorithm>
#include <array>

#include "core/text.h"

namespace towtank {
namespace {

constexpr int kMostDegree = 1 << 22;

/// A key of a plan, its short name, and where its number goes; the last three are no numbers.
struct PinKey {
  std::string_view name, alias;
  std::optional<int> Pins::*number = nullptr;
};
constexpr std::array<PinKey, 12> kPinKeys{{{"tensor", "tp", &Pins::tensor},
                                           {"pipeline", "pp", &Pins::pipeline},
                                           {"data", "dp", &Pins::data},
                                           {"context", "cp", &Pins::context},
                                           {"expert", "ep", &Pins::expert},
                                           {"expert_tensor", "etp", &Pins::expert_tensor},
                                           {"stages_per_rank", "vp", &Pins::stages_per_rank},
                                           {"microbatch", "mb", &Pins::microbatch},
                                           {"sharding_stage", "zero", &Pins::sharding_stage},
                                           {"sequence_parallel", "sp"},
                                           {"schedule", ""},
                                           {"recompute", ""}}};

const PinKey* find_key(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  const auto at = std::find_if(kPinKeys.begin(), kPinKeys.end(), [&](const PinKey& key) {
    return key.name == name || (!key.alias.empty() && key.alias == name);
  });
  return at == kPinKeys.end() ? nullptr : &*at;
}

std::optional<bool> truth(std::string_view text, const std::string& where, Faults& faults) {
  constexpr std::array<std::string_view, 4> kNames{"true", "false", "on", "off"};
  const auto index = name_index(text, where, kNames, faults);
  return index ? std::optional(*index % 2 == 0) : std::nullopt;
}

void set_pin(const PinKey& key, std::string_view value, Pins& pins, Faults& faults) {
  const std::string where = "--pin: " + std::string(key.name);
  if (key.number != nullptr) {
    const bool stage = key.name == "sharding_stage";
    pins.*key.number = whole_number(value, where, stage ? 0 : 1, stage ? 3 : kMostDegree, faults);
  } else if (key.name == "sequence_parallel") {
    pins.sequence_parallel = truth(value, where, faults);
  } else if (key.name == "schedule") {
    const auto index = name_index(value, where, kScheduleNames, faults);
    if (index) pins.schedule = static_cast<ScheduleKind>(*index);
  } else {
    const auto index = name_index(value, where, kRecomputeModeNames, faults);
    if (index) pins.recompute = static_cast<RecomputeMode>(*index);
  }
}

void unknown_key(const std::string& name, Faults& faults) {
  std::vector<std::string> names;
  for (const PinKey& key : kPinKeys) names.emplace_back(key.name);
  std::string underscored = name;
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  const auto near = nearest(underscored, names);
  faults.add({"--pin", in_quotes(name) + " is not a key of a plan",
              "it must be one of " + join(names, ", "), near ? "Did you mean " + *near + "?" : ""});
}

void parse_item(std::string_view item, Pins& pins, std::vector<std::string_view>& seen,
                Faults& faults) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size()) {
    faults.add({"--pin", in_quotes(item) + " is not KEY=VALUE", "", "Write tensor=8,pipeline=4."});
    return;
  }
  const std::string name(item.substr(0, equals));
  const PinKey* key = find_key(name);
  if (key == nullptr) {
    unknown_key(name, faults);
    return;
  }
  if (std::find(seen.begin(), seen.end(), key->name) != seen.end()) {
    faults.add({"--pin", std::string(key->name) + " is given twice", "", ""});
    return;
  }
  seen.push_back(key->name);
  set_pin(*key, item.substr(equals + 1), pins, faults);
}

}  // namespace

Pins parse_pins(std::string_view text, Faults& faults) {
  Pins pins;
  std::vector<std::string_view> seen;
  while (true) {
    const std::size_t comma = text.find(',');
    parse_item(text.substr(0, comma), pins, seen, faults);
    if (comma == std::string_view::npos) return pins;
    text.remove_prefix(comma + 1);
  }
}

Plan plan_of_flags(const ArgumentReader& arguments, Framework framework, int devices,
                   std::vector<std::string>& defaults) {
  Plan plan;
  plan.framework = framework;
  const auto degree = [&](const char* option) {
    return arguments.integer(option, 1, kMostDegree).value_or(1);
  };
  plan.tensor = degree("--tensor");
  plan.pipeline = degree("--pipeline");
  plan.context = degree("--context");
  plan.expert = degree("--expert");
  plan.expert_tensor = degree("--expert-tensor");
  plan.stages_per_rank = degree("--stages-per-rank");
  plan.microbatch = degree("--microbatch");
  if (!arguments.has("--microbatch")) defaults.emplace_back("microbatch 1");
  const std::int64_t inner = static_cast<std::int64_t>(plan.tensor) * plan.pipeline * plan.context;
  const std::int64_t rest = std::max<std::int64_t>(1, devices / inner);
  const auto data = arguments.integer("--data", 1, kMostDegree);
  plan.data = data.value_or(static_cast<int>(rest));
  if (!data) defaults.push_back("data " + std::to_string(plan.data));

  const FrameworkRules& rules = rules_of(framework);
  const int shard = plan.data_shards() > 1 ? std::min(1, rules.highest_sharding_stage.value) : 0;
  const auto stage = arguments.integer("--sharding-stage", 0, 3);
  plan.sharding_stage = stage.value_or(shard);
  if (!stage) defaults.push_back("sharding stage " + std::to_string(shard));
  const auto sp = arguments.switch_of("--sequence-parallel");
  plan.sequence_parallel = sp.value_or(plan.tensor > 1);
  if (!sp && plan.tensor > 1) defaults.emplace_back("sequence parallel");

  const auto recompute = arguments.choice("--recompute", kRecomputeModeNames);
  plan.recompute =
      recompute ? static_cast<RecomputeMode>(*recompute) : default_recompute(framework);
  if (!recompute) {
    defaults.push_back("recompute " +
                       std::string(kRecomputeModeNames[static_cast<std::size_t>(plan.recompute)]));
  }
  const auto schedule = arguments.choice("--schedule", kScheduleNames);
  const ScheduleKind usual = plan.pipeline == 1         ? ScheduleKind::kNone
                             : plan.stages_per_rank > 1 ? ScheduleKind::kInterleaved
                                                        : ScheduleKind::kOneFOneB;
  plan.schedule = schedule ? static_cast<ScheduleKind>(*schedule) : usual;
  if (!schedule && plan.pipeline > 1) {
    defaults.push_back("schedule " + std::string(kScheduleNames[static_cast<std::size_t>(usual)]));
  }
  return plan;
}

}  // namespace towtank
