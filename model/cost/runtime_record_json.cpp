// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "model/cost/runtime_record.h"

namespace towtank {
namespace {

constexpr std::string_view kFormat = "towtank-calibration";
constexpr int kVersion = 1;

RuntimeCosts read_costs(const JsonReader& r) {
  constexpr JsonRange kFactor{0.1, 100}, kSeconds{0, 3600}, kRatio{1e-3, 1e3};
  RuntimeCosts c;
  c.compute_factor = r.number("compute_factor", kFactor);
  c.attention_factor = r.number("attention_factor", kFactor);
  c.host_per_kernel = {r.number("host_per_kernel_s", kSeconds)};
  c.per_microbatch = {r.number("per_microbatch_s", kSeconds)};
  c.per_step = {r.number("per_step_s", kSeconds)};
  c.interference = r.number("interference", {0, 1});
  if (r.has("context_bytes")) c.context_bytes = Bytes{r.integer("context_bytes", {0, 1e12})};
  if (r.has("reserved_factor")) c.reserved_factor = r.number("reserved_factor", {1, 10});
  const JsonReader interval = r.at("measured_over_predicted");
  c.low90 = interval.number("p05", kRatio);
  c.low50 = interval.number("p25", kRatio);
  c.high50 = interval.number("p75", kRatio);
  c.high90 = interval.number("p95", kRatio);
  interval.no_other_keys();
  c.basis = Basis::kInterpolated;
  return c;
}

std::vector<std::string> read_texts(const JsonReader& r, std::string_view key) {
  std::vector<std::string> out;
  for (const JsonReader& item : r.array(key)) out.push_back(item.as_string());
  return out;
}

}  // namespace

RuntimeRecord read_runtime_record(const JsonReader& r) {
  constexpr JsonRange kCount{0, 1e9};
  RuntimeRecord out;
  out.framework = static_cast<Framework>(r.one_of("framework", kFrameworkNames));
  out.device_kind = r.string_or("device_kind", "");
  out.generation = r.string("generation");
  out.costs = read_costs(r);
  out.identified = read_texts(r, "identified");
  out.sets = read_texts(r, "sets");
  out.rows = static_cast<int>(r.integer("rows", kCount));
  out.folds = static_cast<int>(r.integer("folds", kCount));
  out.bias = r.number("bias", {-10, 10});
  out.spread = r.number("spread", {0, 10});
  r.no_other_keys();
  return out;
}

Json to_json(const RuntimeRecord& r) {
  const RuntimeCosts& c = r.costs;
  Json out = Json::object();
  out["framework"] = kFrameworkNames[static_cast<std::size_t>(r.framework)];
  out["device_kind"] = r.device_kind.empty() ? Json(nullptr) : Json(r.device_kind);
  out["generation"] = r.generation;
  out["compute_factor"] = c.compute_factor;
  out["attention_factor"] = c.attention_factor;
  out["host_per_kernel_s"] = c.host_per_kernel.value;
  out["per_microbatch_s"] = c.per_microbatch.value;
  out["per_step_s"] = c.per_step.value;
  out["interference"] = c.interference;
  out["context_bytes"] = c.context_bytes ? Json(c.context_bytes->value) : Json(nullptr);
  out["reserved_factor"] = c.reserved_factor ? Json(*c.reserved_factor) : Json(nullptr);
  out["measured_over_predicted"] = {
      {"p05", c.low90}, {"p25", c.low50}, {"p75", c.high50}, {"p95", c.high90}};
  out["identified"] = r.identified;
  out["sets"] = r.sets;
  out["rows"] = r.rows;
  out["folds"] = r.folds;
  out["bias"] = r.bias;
  out["spread"] = r.spread;
  return out;
}

RuntimeCalibration parse_runtime_calibration(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format(kFormat, kVersion);
  RuntimeCalibration out;
  out.name = root.string("name");
  out.command = root.string("command");
  out.source = root.string("source");
  for (const JsonReader& item : root.array("frameworks"))
    out.records.push_back(read_runtime_record(item));
  for (const char* key : {"ops", "collectives"}) root.ignore(key);
  root.no_other_keys();
  file.finish();
  return out;
}

Json to_json(const RuntimeCalibration& calibration) {
  Json out = Json::object();
  out["format"] = kFormat;
  out["version"] = kVersion;
  out["name"] = calibration.name;
  out["command"] = calibration.command;
  out["source"] = calibration.source;
  out["frameworks"] = Json::array();
  for (const RuntimeRecord& r : calibration.records) out["frameworks"].push_back(to_json(r));
  return out;
}

}  // namespace towtank
