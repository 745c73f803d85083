// SPDX-License-Identifier: Apache-2.0
#include "placement/plan_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/contracts.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr std::string_view kFormat = "towtank-plan";
constexpr int kVersion = 1;

constexpr JsonRange kPositive{1e-9, 1e308};

constexpr std::array<std::string_view, 3> kOptimizerNames{"adam", "sgd", "momentum"};

/// True if the key is stated; a missing one is a fault, a null one is not.
bool stated(const JsonReader& object, std::string_view key) { return !object.at(key).is_null(); }

std::string model_name(const JsonReader& model) {
  for (const std::string_view key : {"name", "_name_or_path", "model_type"}) {
    if (model.is_object() && model.has(key) && model.at(key).is_string()) {
      return model.at(key).as_string();
    }
  }
  return "model";
}

void read_model(const JsonReader& workload, Workload& out) {
  const JsonReader model = workload.at("model");
  if (!model.is_object()) {
    model.fault("is not an object", "the model is embedded", "Put the content of config.json here");
    return;
  }
  out.model_json = model.dump();
  out.model_hash = content_hash(out.model_json);
  out.model_name = workload.string_or("name", model_name(model));
}

std::optional<Bytes> read_input(const JsonReader& workload) {
  const auto text = workload.find("input");
  const auto number = workload.find("input_bytes");
  if (text && number) text->fault("is given beside input_bytes", "one of them is enough");
  if (text) return text->as_bytes();
  if (number) return Bytes{number->as_integer({0, 9e18})};
  return std::nullopt;
}

/// Keys of a workload that are reserved: one clear fault each.
void refuse_reserved(const JsonReader& workload) {
  if (workload.string_or("task", "train") != "train") {
    workload.at("task").fault("is not \"train\"", "only training is predicted");
  }
  if (const auto sample = workload.find("sample")) {
    sample->fault("is not read yet", "a graph states its own sample; sequences are sequence_length",
                  "Remove it");
  }
}

}  // namespace

Workload read_workload(const JsonReader& workload, std::vector<std::string>& defaults_taken) {
  Workload out;
  read_model(workload, out);
  if (stated(workload, "sequence_length")) {
    out.sequence_length = static_cast<int>(workload.integer("sequence_length", {0, 1e9}));
  }
  if (stated(workload, "global_batch")) {
    out.global_batch = static_cast<int>(workload.integer("global_batch", {1, 1e9}));
  }
  if (stated(workload, "precision")) {
    out.precision = static_cast<DType>(workload.one_of("precision", kDTypeNames));
  } else {
    defaults_taken.emplace_back("precision: bf16");
  }
  if (workload.has("optimizer")) {
    out.optimizer = static_cast<OptimizerKind>(workload.one_of("optimizer", kOptimizerNames));
  }
  if (workload.has("train_tokens")) out.train_tokens = workload.number("train_tokens", kPositive);
  out.input_bytes = read_input(workload);
  out.expert_load = workload.number_or("expert_load", 1.0, {1.0, 1e6});
  refuse_reserved(workload);
  workload.no_other_keys();
  return out;
}

Json to_json(const Workload& workload) {
  Json json = Json::object();
  json["name"] = workload.model_name;
  json["model"] = Json::parse(workload.model_json);
  json["sequence_length"] = nullptr;
  if (workload.sequence_length > 0) json["sequence_length"] = workload.sequence_length;
  json["global_batch"] = workload.global_batch;
  json["precision"] = to_text(workload.precision);
  json["optimizer"] = kOptimizerNames[static_cast<std::size_t>(workload.optimizer)];
  if (workload.train_tokens) json["train_tokens"] = *workload.train_tokens;
  if (workload.input_bytes) json["input_bytes"] = workload.input_bytes->value;
  if (workload.expert_load != 1.0) json["expert_load"] = workload.expert_load;
  return json;
}

PlanFile read_plan_body(const JsonReader& root) {
  PlanFile file;
  file.workload = read_workload(root.at("workload"), file.defaults_taken);
  const JsonReader platform = root.at("platform");
  if (platform.is_object()) {
    file.platform_inline = platform.dump();
  } else {
    file.platform_name = platform.as_string();
  }
  file.platform_hash = root.string_or("platform_hash", "");
  file.devices = static_cast<int>(root.integer("devices", {1, 2147483647}));
  file.plan = read_plan(root.at("plan"), file.defaults_taken);
  if (file.workload.global_batch == 0) {
    const std::int64_t batch =
        static_cast<std::int64_t>(file.plan.data) * file.plan.microbatch * file.plan.pipeline;
    file.workload.global_batch =
        static_cast<int>(std::min<std::int64_t>(batch, std::numeric_limits<int>::max()));
    file.defaults_taken.push_back("global_batch: " + std::to_string(batch) +
                                  " (data * microbatch * pipeline)");
  }
  return file;
}

PlanFile parse_plan_file(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format(kFormat, kVersion);
  PlanFile plan = read_plan_body(root);
  plan.generated_by = root.string_or("generated_by", "");
  root.no_other_keys();
  file.finish();
  return plan;
}

Json to_json(const PlanFile& file) {
  EXPECTS(file.platform_name.empty() != file.platform_inline.empty());
  Json json = Json::object();
  json["format"] = kFormat;
  json["version"] = kVersion;
  if (!file.generated_by.empty()) json["generated_by"] = file.generated_by;
  json["workload"] = to_json(file.workload);
  if (file.platform_inline.empty()) {
    json["platform"] = file.platform_name;
  } else {
    json["platform"] = Json::parse(file.platform_inline);
  }
  if (!file.platform_hash.empty()) json["platform_hash"] = file.platform_hash;
  json["devices"] = file.devices;
  json["plan"] = to_json(file.plan);
  return json;
}

}  // namespace towtank
