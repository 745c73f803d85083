// SPDX-License-Identifier: Apache-2.0
#include "model/cost/calibration_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace towtank {
namespace {

constexpr std::string_view kFormat = "towtank-calibration";
constexpr int kVersion = 1;
constexpr int kDigits = 5;
constexpr std::array<std::string_view, 3> kTopologyNames{"switch", "mesh", "pcie"};
constexpr JsonRange kAny{-1e18, 1e18}, kNotNegative{0, 1e18}, kCount{0, 1e12}, kTime{0, 10};
constexpr JsonRange kRatio{-10, 10};

// --- in ---

Estimate read_estimate(const JsonReader& r, const JsonRange& range) {
  Estimate e;
  e.value = r.number("value", range);
  e.fitted = r.boolean_or("fitted", true);
  e.error = e.fitted ? r.number("error", kNotNegative) : 0.0;
  r.no_other_keys();
  return e;
}

Range read_range(const JsonReader& r) {
  const std::vector<JsonReader> ends = r.elements();
  if (ends.size() != 2) {
    r.fault("does not have two numbers", "a range is [low, high]");
    return {};
  }
  const Range range{ends[0].as_number(kAny), ends[1].as_number(kAny)};
  if (range.low > range.high) r.fault("is not in order", "low <= high");
  return range;
}

FitEvidence read_evidence(const JsonReader& r) {
  FitEvidence e;
  for (const JsonReader& name : r.array("profiles")) e.profiles.push_back(name.as_string());
  e.rows = static_cast<int>(r.integer("rows", kCount));
  e.host_bound = static_cast<int>(r.integer_or("host_bound", 0, kCount));
  e.outliers = static_cast<int>(r.integer("outliers", kCount));
  e.held_out = r.string("held_out");
  e.held_out_rows = static_cast<int>(r.integer("held_out_rows", kCount));
  e.bias = r.number("bias", kRatio);
  e.spread = r.number("spread", {0, 10});
  e.median = r.number("median", {0, 10});
  r.no_other_keys();
  return e;
}

ShapeFamily read_family(const JsonReader& r) {
  ShapeFamily family;
  family.batch = r.integer("batch", {1, 1e12});
  family.n = r.integer("n", {1, 1e12});
  family.k = r.integer("k", {1, 1e12});
  for (const JsonReader& knot : r.array("m_and_log_ratio")) {
    const std::vector<JsonReader> pair = knot.elements();
    if (pair.size() != 2) {
      knot.fault("does not have two numbers", "[m, log(measured / fitted)]");
      continue;
    }
    const ShapeFamily::Knot next{pair[0].as_integer({1, 1e12}), pair[1].as_number(kRatio)};
    if (!family.knots.empty() && family.knots.back().m >= next.m)
      knot.fault("is not in order of m");
    family.knots.push_back(next);
  }
  if (family.knots.empty()) r.fault("has no measured shape");
  r.no_other_keys();
  return family;
}

void read_terms(const JsonReader& r, OpRecord& record) {
  const JsonReader terms = r.at("terms");
  for (const OpTerm term : terms_of(record.kind, record.fused)) {
    const auto i = static_cast<std::size_t>(term);
    record.terms[i] = read_estimate(terms.at(kOpTermNames[i]), kNotNegative);
  }
  terms.no_other_keys();
}

OpRecord read_op(const JsonReader& r) {
  OpRecord record;
  record.device_kind = r.string("device_kind");
  record.generation = r.string("generation");
  record.memory_bandwidth = {r.number("memory_bandwidth_bytes_per_s", {1, 1e18})};
  record.peak = {r.number("peak_flop_per_s", {1, 1e21})};
  record.kind = static_cast<OpKind>(r.one_of("op", kOpKindNames));
  if (record.kind == OpKind::kAttention) record.fused = r.boolean("fused");
  const std::vector<JsonReader> names = r.array("dtypes");
  for (const JsonReader& name : names) {
    if (const auto d = dtype_from(name.as_string())) {
      record.dtypes.push_back(*d);
    } else {
      name.fault("is not a number format",
                 "one of " + join({kDTypeNames.begin(), kDTypeNames.end()}, ", "));
    }
  }
  if (names.empty() && r.has("dtypes")) r.fault("serves no dtype");
  read_terms(r, record);
  const JsonReader rows = r.at("rows");
  if (rows.has("m")) {
    record.m = read_range(rows.at("m"));
    record.n = read_range(rows.at("n"));
    record.k = read_range(rows.at("k"));
  }
  record.traffic = read_range(rows.at("traffic_bytes"));
  rows.no_other_keys();
  if (r.has("shapes")) {
    for (const JsonReader& item : r.array("shapes")) record.families.push_back(read_family(item));
  }
  record.evidence = read_evidence(r.at("evidence"));
  r.no_other_keys();
  return record;
}

CollectiveRecord read_collective(const JsonReader& r) {
  CollectiveRecord record;
  record.fabric = r.string("fabric");
  record.level = static_cast<FabricLevel>(r.one_of("level", kFabricLevelNames));
  if (record.level == FabricLevel::kIntranode) {
    record.topology = static_cast<IntranodeTopology>(r.one_of("topology", kTopologyNames));
  }
  record.node_devices = static_cast<int>(r.integer_or("node_devices", 0, {1, 1e6}));
  record.op = static_cast<Collective>(r.one_of("collective", kCollectiveNames));
  record.launch = read_estimate(r.at("launch_s"), kTime);
  record.step = read_estimate(r.at("step_s"), kTime);
  if (r.has("low_share")) {
    record.low_step = read_estimate(r.at("low_step_s"), kTime);
    record.low_share = read_estimate(r.at("low_share"), {0, 1});
  }
  if (r.has("group_limit_bytes_per_s")) {
    record.group_limit = read_estimate(r.at("group_limit_bytes_per_s"), {1, 1e15});
  }
  for (const JsonReader& item : r.array("shares")) {
    CollectiveRecord::Share share;
    share.ranks = static_cast<int>(item.integer("ranks", {2, 1e7}));
    share.share = read_estimate(item.at("share"), {1e-4, 10});
    item.no_other_keys();
    if (!record.shares.empty() && record.shares.back().ranks >= share.ranks) {
      item.fault("is not in order of ranks");
    }
    record.shares.push_back(share);
  }
  if (record.shares.empty()) r.fault("has no share", "one for each number of ranks measured");
  record.payload = read_range(r.at("payload_bytes"));
  record.evidence = read_evidence(r.at("evidence"));
  r.no_other_keys();
  return record;
}

// --- out ---

double rounded(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::scientific, kDigits - 1);
  double out = value;
  std::from_chars(text.data(), end.ptr, out);
  return out;
}

Json estimate_json(const Estimate& e) {
  if (!e.fitted) return {{"value", rounded(e.value)}, {"fitted", false}};
  return {{"value", rounded(e.value)}, {"error", rounded(e.error)}};
}

Json range_json(const Range& range) { return Json::array({range.low, range.high}); }

Json evidence_json(const FitEvidence& e) {
  Json out{{"profiles", e.profiles}, {"rows", e.rows}};
  if (e.host_bound > 0) out["host_bound"] = e.host_bound;
  out["outliers"] = e.outliers;
  out["held_out"] = e.held_out;
  out["held_out_rows"] = e.held_out_rows;
  out["bias"] = rounded(e.bias);
  out["spread"] = rounded(e.spread);
  out["median"] = rounded(e.median);
  return out;
}

Json family_json(const ShapeFamily& family) {
  Json knots = Json::array();
  for (const auto& knot : family.knots) {
    knots.push_back(Json::array({knot.m, std::round(knot.log_ratio * 1e4) / 1e4}));
  }
  return {{"batch", family.batch}, {"n", family.n}, {"k", family.k}, {"m_and_log_ratio", knots}};
}

Json op_json(const OpRecord& record) {
  Json out{{"device_kind", record.device_kind},
           {"generation", record.generation},
           {"memory_bandwidth_bytes_per_s", record.memory_bandwidth.value},
           {"peak_flop_per_s", record.peak.value},
           {"op", to_text(record.kind)}};
  if (record.kind == OpKind::kAttention) out["fused"] = record.fused;
  out["dtypes"] = Json::array();
  for (const DType d : record.dtypes) out["dtypes"].push_back(to_text(d));
  for (std::size_t i = 0; i < kOpTermCount; ++i) {
    if (record.terms[i])
      out["terms"][std::string(kOpTermNames[i])] = estimate_json(*record.terms[i]);
  }
  if (record.m.high > 0.0) {
    out["rows"]["m"] = range_json(record.m);
    out["rows"]["n"] = range_json(record.n);
    out["rows"]["k"] = range_json(record.k);
  }
  out["rows"]["traffic_bytes"] = range_json(record.traffic);
  if (!record.families.empty()) {
    out["shapes"] = Json::array();
    for (const ShapeFamily& family : record.families) out["shapes"].push_back(family_json(family));
  }
  out["evidence"] = evidence_json(record.evidence);
  return out;
}

Json collective_json(const CollectiveRecord& record) {
  Json out{{"fabric", record.fabric},
           {"level", kFabricLevelNames[static_cast<std::size_t>(record.level)]}};
  if (record.level == FabricLevel::kIntranode) {
    out["topology"] = kTopologyNames[static_cast<std::size_t>(record.topology)];
  }
  if (record.node_devices > 0) out["node_devices"] = record.node_devices;
  out["collective"] = kCollectiveNames[static_cast<std::size_t>(record.op)];
  out["launch_s"] = estimate_json(record.launch);
  out["step_s"] = estimate_json(record.step);
  if (record.low_share.value > 0.0) {
    out["low_step_s"] = estimate_json(record.low_step);
    out["low_share"] = estimate_json(record.low_share);
  }
  if (record.group_limit) out["group_limit_bytes_per_s"] = estimate_json(*record.group_limit);
  out["shares"] = Json::array();
  for (const auto& share : record.shares) {
    out["shares"].push_back({{"ranks", share.ranks}, {"share", estimate_json(share.share)}});
  }
  out["payload_bytes"] = range_json(record.payload);
  out["evidence"] = evidence_json(record.evidence);
  return out;
}

std::string line_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Calibration parse_calibration(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format(kFormat, kVersion);
  Calibration out;
  out.name = root.string("name");
  out.command = root.string("command");
  out.source = root.string("source");
  out.hash = file.hash();
  const auto each = [&](const char* key, auto take) {
    if (!root.has(key)) return;
    for (const JsonReader& item : root.array(key)) take(item);
  };
  each("ops", [&](const JsonReader& item) { out.ops.push_back(read_op(item)); });
  each("collectives",
       [&](const JsonReader& item) { out.collectives.push_back(read_collective(item)); });
  each("frameworks",
       [&](const JsonReader& item) { out.frameworks.push_back(read_runtime_record(item)); });
  root.no_other_keys();
  file.finish();
  return out;
}

Calibration load_calibration(const std::string& name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string::npos ||
                       name_or_path.ends_with(".json") || name_or_path == "-";
  if (is_path) return parse_calibration(JsonFile::load(name_or_path));
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_calibrations()) {
    if (file.name == name_or_path) {
      return parse_calibration(JsonFile::parse(std::string(file.text), name_or_path + ".json"));
    }
    names.emplace_back(file.name);
  }
  const auto near = nearest(name_or_path, names);
  throw InputError({.where = "calibration",
                    .problem = in_quotes(name_or_path) + " is not shipped",
                    .why = "",
                    .hint = near ? "Did you mean \"" + *near + "\"? A file is given by its path."
                                 : "A file is given by its path."});
}

Json to_json(const Calibration& calibration) {
  Json out{{"format", kFormat},
           {"version", kVersion},
           {"name", calibration.name},
           {"command", calibration.command},
           {"source", calibration.source}};
  const auto each = [&](const char* key, const auto& records, auto json) {
    if (records.empty()) return;
    out[key] = Json::array();
    for (const auto& record : records) out[key].push_back(json(record));
  };
  each("ops", calibration.ops, op_json);
  each("collectives", calibration.collectives, collective_json);
  each("frameworks", calibration.frameworks, [](const RuntimeRecord& r) { return to_json(r); });
  return out;
}

std::string calibration_text(const Calibration& calibration) {
  const Json whole = to_json(calibration);
  std::string text = "{";
  const char* comma = "\n  ";
  for (const auto& [key, value] : whole.items()) {
    text += comma + line_of(Json(key)) + ": ";
    comma = ",\n  ";
    if (!value.is_array()) {
      text += line_of(value);
      continue;
    }
    const char* separator = "[\n    ";
    for (const Json& record : value) {
      text += separator + line_of(record);
      separator = ",\n    ";
    }
    text += "\n  ]";
  }
  return text + "\n}\n";
}

}  // namespace towtank
