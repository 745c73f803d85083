// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/csv_mapping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace towtank {
namespace {

constexpr int kVersion = 1;

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr std::array<TimeUnit, 4> kTimeUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<std::string_view, 4> kTimeUnitNames{"ns", "us", "ms", "s"};

/// The text that a look-up looks up.
std::string look_up_pattern(const JsonReader& object) {
  if (object.find("text")) return object.string("text");
  return "{" + object.string("column") + "}";
}

NumberRule read_number(const JsonReader& value) {
  NumberRule out;
  out.where = value.where();
  if (value.is_number()) {
    out.expression = Expression::constant(value.as_number());
  } else if (value.is_object() && value.has("file")) {
    out.file_pattern = value.string("file");
    if (std::count(out.file_pattern.begin(), out.file_pattern.end(), '*') != 1) {
      value.fault("has not one *", "it stands for the number in the file's name");
    }
    value.no_other_keys();
  } else if (value.is_object()) {
    out.pattern = look_up_pattern(value);
    const JsonReader values = value.at("values");
    for (const std::string& key : values.keys()) out.values[key] = values.number(key);
    value.no_other_keys();
  } else {
    const std::string text = value.as_string();
    auto parsed = Expression::parse(text);
    if (const auto* why = std::get_if<std::string>(&parsed)) {
      if (value.is_string()) value.fault(in_quotes(text) + " is not an expression", *why);
      out.expression = Expression::constant(0);
    } else {
      out.expression = std::get<Expression>(std::move(parsed));
    }
  }
  return out;
}

TextRule read_text(const JsonReader& value) {
  TextRule out;
  out.where = value.where();
  if (!value.is_object()) {
    out.pattern = value.as_string();
    return out;
  }
  out.is_look_up = true;
  out.pattern = look_up_pattern(value);
  const JsonReader values = value.at("values");
  for (const std::string& key : values.keys()) out.values[key] = values.string(key);
  value.no_other_keys();
  return out;
}

std::optional<TextRule> optional_text(const JsonReader& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found) return std::nullopt;
  return read_text(*found);
}

std::optional<double> optional_limit(const JsonReader& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found) return std::nullopt;
  return found->as_number();
}

std::vector<std::string> texts_of(const JsonReader& value) {
  if (!value.is_array()) return {value.as_string()};
  std::vector<std::string> out;
  for (const JsonReader& item : value.elements()) out.push_back(item.as_string());
  return out;
}

RowCondition read_condition(const JsonReader& object) {
  RowCondition out;
  out.where = object.where();
  if (const auto value = object.find("value")) {
    out.value = read_number(*value);
    out.at_least = optional_limit(object, "at_least");
    out.above = optional_limit(object, "above");
    out.at_most = optional_limit(object, "at_most");
    out.below = optional_limit(object, "below");
    if (!out.at_least && !out.above && !out.at_most && !out.below) {
      object.fault("has no limit", "at_least, above, at_most or below");
    }
  } else {
    out.column = object.string("column");
    const auto equals = object.find("equals");
    const auto differs = object.find("not");
    if (equals.has_value() == differs.has_value()) {
      object.fault("needs one of \"equals\" and \"not\"", "a column is compared with texts");
    }
    out.negated = differs.has_value();
    if (equals) out.texts = texts_of(*equals);
    if (differs) out.texts = texts_of(*differs);
  }
  object.no_other_keys();
  return out;
}

RowConditions read_conditions(const JsonReader& object) {
  RowConditions out;
  if (!object.find("where")) return out;
  for (const JsonReader& item : object.array("where")) out.push_back(read_condition(item));
  return out;
}

std::vector<DropRule> read_drops(const JsonReader& object) {
  std::vector<DropRule> out;
  if (!object.find("drop")) return out;
  for (const JsonReader& item : object.array("drop")) {
    DropRule rule;
    rule.conditions = read_conditions(item);
    rule.because = item.string("because");
    if (item.find("severity")) {
      rule.severity = static_cast<ImportStats::Severity>(item.one_of("severity", kSeverityNames));
    }
    item.no_other_keys();
    out.push_back(std::move(rule));
  }
  return out;
}

/// Keys of an entry, with the file's defaults behind them.
class Entry {
 public:
  Entry(const JsonReader& own, std::optional<JsonReader> defaults)
      : own_(own), defaults_(std::move(defaults)) {}

  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const {
    auto found = own_.find(key);
    return !found && defaults_ ? defaults_->find(key) : found;
  }
  [[nodiscard]] JsonReader at(std::string_view key) const {
    const auto found = find(key);
    return found ? *found : own_.at(key);
  }
  [[nodiscard]] std::optional<NumberRule> number(std::string_view key) const {
    const auto found = find(key);
    if (!found) return std::nullopt;
    return read_number(*found);
  }
  [[nodiscard]] TextRule text(std::string_view key, std::string_view fallback) const {
    const auto found = find(key);
    if (found) return read_text(*found);
    TextRule out;
    out.pattern = fallback;
    return out;
  }
  [[nodiscard]] bool boolean(std::string_view key, bool fallback) const {
    const auto found = find(key);
    return found ? found->as_bool() : fallback;
  }
  [[nodiscard]] const JsonReader& own() const { return own_; }

 private:
  JsonReader own_;
  std::optional<JsonReader> defaults_;
};

TimeRule read_time(const JsonReader& object) {
  TimeRule out;
  const JsonReader value = object.at("value");
  if (value.is_array()) {
    for (const JsonReader& item : value.elements()) out.values.push_back(read_number(item));
    if (out.values.empty()) value.fault("is empty", "a time needs a value");
  } else {
    out.values.push_back(read_number(value));
  }
  out.seconds_per_unit = kTimeUnits[object.one_of("unit", kTimeUnitNames)].seconds;
  const auto optional = [&](std::string_view key) -> std::optional<NumberRule> {
    const auto found = object.find(key);
    if (!found) return std::nullopt;
    return read_number(*found);
  };
  out.low = optional("low");
  out.high = optional("high");
  out.repeats = optional("repeats");
  object.no_other_keys();
  return out;
}

OpRule read_op(const Entry& entry) {
  OpRule out;
  out.conditions = read_conditions(entry.own());
  out.drops = read_drops(entry.own());
  out.label = read_text(entry.at("label"));
  out.kind = read_text(entry.at("kind"));
  out.dtype = read_text(entry.at("dtype"));
  out.pass = entry.text("pass", "forward");
  out.group = entry.text("group", "{file}");
  out.batch = entry.number("batch");
  out.m = entry.number("m");
  out.n = entry.number("n");
  out.k = entry.number("k");
  out.work = entry.number("work_flop");
  out.traffic = entry.number("traffic_bytes");
  out.extra_work = entry.number("extra_work_flop");
  out.extra_traffic = entry.number("extra_traffic_bytes");
  out.kernels = entry.number("kernels");
  out.causal = entry.boolean("causal", false);
  out.fused = entry.boolean("fused", true);
  out.both_gradients = entry.boolean("both_gradients", false);
  out.time = read_time(entry.at("time"));
  entry.own().no_other_keys();
  return out;
}

CollectiveRule read_collective(const JsonReader& object) {
  const Entry entry(object, std::nullopt);
  CollectiveRule out;
  out.conditions = read_conditions(object);
  out.drops = read_drops(object);
  out.op = read_text(object.at("op"));
  out.group = entry.text("group", "{file}");
  out.payload = read_number(object.at("payload_bytes"));
  out.ranks = entry.number("ranks");
  out.ranks_per_node = entry.number("ranks_per_node");
  out.time = read_time(object.at("time"));
  object.no_other_keys();
  return out;
}

void read_layout(const JsonReader& root, CsvMapping& out) {
  const std::string separator = root.string_or("separator", ",");
  if (separator.size() == 1) {
    out.separator = separator[0];
  } else {
    root.at("separator").fault(in_quotes(separator) + " is not one character");
  }
  out.header = root.boolean_or("header", true);
  if (root.find("columns")) {
    for (const JsonReader& item : root.array("columns")) out.columns.push_back(item.as_string());
  } else if (!out.header) {
    root.fault("has neither a header nor \"columns\"", "columns need names");
  }
}

}  // namespace

CsvMapping parse_csv_mapping(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format("towtank-csv-mapping", kVersion);
  CsvMapping out;
  out.name = root.string("name");
  out.source = root.string("source");
  out.machine = root.string_or("machine", "");
  out.launch_included = root.boolean("launch_included");
  root.ignore("about");
  out.device_kind = optional_text(root, "device_kind");
  out.fabric_intranode = optional_text(root, "fabric_intranode");
  out.fabric_internode = optional_text(root, "fabric_internode");
  read_layout(root, out);
  out.conditions = read_conditions(root);
  out.drops = read_drops(root);
  if (const auto lets = root.find("let")) {
    for (const std::string& key : lets->keys())
      out.lets.emplace_back(key, read_number(lets->at(key)));
  }
  const auto defaults = root.find("op_defaults");
  if (root.find("ops")) {
    for (const JsonReader& item : root.array("ops")) out.ops.push_back(read_op({item, defaults}));
  }
  if (root.find("collectives")) {
    for (const JsonReader& item : root.array("collectives")) {
      out.collectives.push_back(read_collective(item));
    }
  }
  if (out.ops.empty() && out.collectives.empty()) {
    root.fault("has neither ops nor collectives", "a mapping says what rows measure");
  }
  if (defaults) defaults->no_other_keys();
  root.no_other_keys();
  file.finish();
  return out;
}

}  // namespace towtank
