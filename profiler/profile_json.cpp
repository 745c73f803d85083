// SPDX-License-Identifier: Apache-2.0
#include "profiler/profile_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "core/file.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr int kVersion = 1;
constexpr Bytes kMaxProfileBytes{1LL << 30};
constexpr std::array<std::string_view, 3> kPassNames{"forward", "input_grad", "weight_grad"};

constexpr std::array<std::string_view, 18> kOpColumns{
    "kind",     "pass",      "dtype",         "batch",   "m",      "n",
    "k",        "work_flop", "traffic_bytes", "kernels", "causal", "fused",
    "median_s", "low_s",     "high_s",        "repeats", "label",  "group"};
constexpr std::array<std::string_view, 9> kCollectiveColumns{
    "op",    "payload_bytes", "ranks",   "ranks_per_node", "median_s",
    "low_s", "high_s",        "repeats", "group"};

constexpr JsonRange kShape{0, 1e15};
constexpr JsonRange kBytes{0, 1e18};
constexpr JsonRange kFlop{0, 1e30};
constexpr JsonRange kTime{1e-12, 1e7};  // a picosecond to four months
constexpr JsonRange kCount{1, 1e9};
constexpr JsonRange kRanks{1, 1e7};

/// One row of a table: cells by the number of their column in the list of known ones.
class Row {
 public:
  Row(const JsonReader& table, const Json& cells, const std::vector<std::size_t>& place,
      std::span<const std::string_view> names, std::size_t number)
      : table_(&table), cells_(&cells), place_(&place), names_(names), number_(number) {}

  [[nodiscard]] bool is_null(std::size_t column) const { return cell(column).is_null(); }

  [[nodiscard]] double number(std::size_t column, const JsonRange& range) const {
    const Json& value = cell(column);
    if (!value.is_number()) return wrong(column, "must be a number", range.low);
    const auto real = value.get<double>();
    if (!(real >= range.low && real <= range.high)) {
      const bool small = real < range.low;
      return wrong(
          column,
          (small ? "must be >= " : "must be <= ") + Json(small ? range.low : range.high).dump(),
          range.low);
    }
    return real;
  }
  [[nodiscard]] std::int64_t integer(std::size_t column, const JsonRange& range) const {
    const Json& value = cell(column);
    if (!value.is_number_integer()) {
      return static_cast<std::int64_t>(wrong(column, "must be a whole number", range.low));
    }
    static_cast<void>(number(column, range));
    return value.get<std::int64_t>();
  }
  [[nodiscard]] bool boolean(std::size_t column) const {
    const Json& value = cell(column);
    return value.is_boolean() ? value.get<bool>() : wrong(column, "must be true or false", 0) > 0;
  }
  [[nodiscard]] std::string text(std::size_t column) const {
    const Json& value = cell(column);
    if (value.is_string()) return value.get<std::string>();
    static_cast<void>(wrong(column, "must be a string", 0));
    return "";
  }
  [[nodiscard]] std::size_t one_of(std::size_t column,
                                   std::span<const std::string_view> known) const {
    const std::string word = text(column);
    const auto it = std::find(known.begin(), known.end(), word);
    if (it != known.end()) return static_cast<std::size_t>(it - known.begin());
    static_cast<void>(
        wrong(column, "must be one of " + join({known.begin(), known.end()}, ", "), 0));
    return 0;
  }
  void fault(std::string problem, std::string why) const {
    table_->fault("row " + std::to_string(number_) + ": " + std::move(problem), std::move(why));
  }

 private:
  [[nodiscard]] const Json& cell(std::size_t column) const { return (*cells_)[(*place_)[column]]; }
  double wrong(std::size_t column, const std::string& why, double harmless) const {
    fault(std::string(names_[column]) + " is " + printable(cell(column).dump(), 40), why);
    return harmless;
  }

  const JsonReader* table_;
  const Json* cells_;
  const std::vector<std::size_t>* place_;
  std::span<const std::string_view> names_;
  std::size_t number_;
};

/// Where each known column stands in the rows; empty, with faults, if one is missing or unknown.
std::vector<std::size_t> column_places(const JsonReader& table,
                                       std::span<const std::string_view> names) {
  std::vector<std::size_t> places(names.size(), names.size());
  const std::vector<JsonReader> columns = table.array("columns");
  bool good = true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string name = columns[i].as_string();
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      const auto near = nearest(name, names);
      columns[i].fault(in_quotes(name) + " is not a known column", "",
                       near ? "Did you mean \"" + *near + "\"?" : "");
      good = false;
      continue;
    }
    places[static_cast<std::size_t>(known - names.begin())] = i;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (places[i] != names.size()) continue;
    table.fault("has no column \"" + std::string(names[i]) + "\"", "every column is needed");
    good = false;
  }
  return good ? places : std::vector<std::size_t>{};
}

/// Calls `take(row)` for each row of the table at a key; an absent table has none.
template <class Take>
void for_each_row(const JsonReader& root, std::string_view key,
                  std::span<const std::string_view> names, Take take) {
  const auto table = root.find(key);
  if (!table) return;
  const std::vector<std::size_t> places = column_places(*table, names);
  const JsonReader rows = table->at("rows");
  table->no_other_keys();
  if (places.empty()) return;
  if (!rows.is_array()) {
    rows.fault("is not an array", "rows are arrays in an array");
    return;
  }
  std::size_t number = 0;
  for (const Json& cells : rows.raw()) {
    if (cells.is_array() && cells.size() == names.size()) {
      take(Row(rows, cells, places, names, number));
    } else {
      rows.fault("row " + std::to_string(number) + " does not have a cell for each column",
                 std::to_string(names.size()) + " are needed");
    }
    ++number;
  }
}

Duration read_duration(const Row& row, std::size_t first) {
  Duration time;
  time.median = Seconds{row.number(first, kTime)};
  if (!row.is_null(first + 1)) time.low = Seconds{row.number(first + 1, kTime)};
  if (!row.is_null(first + 2)) time.high = Seconds{row.number(first + 2, kTime)};
  time.repeats = static_cast<int>(row.integer(first + 3, kCount));
  if (time.low.value_or(time.median) > time.median ||
      time.median > time.high.value_or(time.median)) {
    row.fault("times are not in order", "low_s <= median_s <= high_s");
  }
  return time;
}

OpMeasurement read_op(const Row& row) {
  OpMeasurement op;
  OpSignature& s = op.signature;
  s.kind = static_cast<OpKind>(row.one_of(0, kOpKindNames));
  s.pass = static_cast<Pass>(row.one_of(1, kPassNames));
  s.dtype = static_cast<DType>(row.one_of(2, kDTypeNames));
  s.batch = row.integer(3, kShape);
  s.m = row.integer(4, kShape);
  s.n = row.integer(5, kShape);
  s.k = row.integer(6, kShape);
  s.work = Flop{row.number(7, kFlop)};
  s.traffic = Bytes{row.integer(8, kBytes)};
  s.kernels = static_cast<int>(row.integer(9, {0, 1e9}));
  s.causal = row.boolean(10);
  s.fused = row.boolean(11);
  op.time = read_duration(row, 12);
  op.label = row.text(16);
  op.group = row.text(17);
  return op;
}

CollectiveMeasurement read_collective(const Row& row) {
  CollectiveMeasurement out;
  out.op = static_cast<Collective>(row.one_of(0, kCollectiveNames));
  out.payload = Bytes{row.integer(1, kBytes)};
  out.ranks = static_cast<int>(row.integer(2, kRanks));
  out.ranks_per_node = static_cast<int>(row.integer(3, kRanks));
  if (out.ranks_per_node > out.ranks) row.fault("ranks_per_node > ranks", "must be <= ranks");
  out.time = read_duration(row, 4);
  out.group = row.text(8);
  return out;
}

ImportStats read_stats(const JsonReader& root) {
  ImportStats stats;
  const auto object = root.find("import");
  if (!object) return stats;
  stats.rows_read = static_cast<long>(object->integer("rows_read", {0, 1e12}));
  stats.rows_kept = static_cast<long>(object->integer("rows_kept", {0, 1e12}));
  for (const JsonReader& item : object->array("counts")) {
    ImportStats::Count count;
    count.what = item.string("what");
    count.severity = static_cast<ImportStats::Severity>(item.one_of("severity", kSeverityNames));
    count.rows = static_cast<long>(item.integer("rows", {0, 1e12}));
    count.first = item.string_or("first", "");
    item.no_other_keys();
    stats.counts.push_back(std::move(count));
  }
  object->no_other_keys();
  return stats;
}

// --- out ---

Json optional_seconds(const std::optional<Seconds>& time) {
  return time ? Json(time->value) : Json(nullptr);
}

void append_duration(Json& row, const Duration& time) {
  row.push_back(time.median.value);
  row.push_back(optional_seconds(time.low));
  row.push_back(optional_seconds(time.high));
  row.push_back(time.repeats);
}

Json to_row(const OpMeasurement& op) {
  const OpSignature& s = op.signature;
  Json row = Json::array({to_text(s.kind), kPassNames[static_cast<std::size_t>(s.pass)],
                          to_text(s.dtype), s.batch, s.m, s.n, s.k, s.work.value, s.traffic.value,
                          s.kernels, s.causal, s.fused});
  append_duration(row, op.time);
  row.push_back(op.label);
  row.push_back(op.group);
  return row;
}

Json to_row(const CollectiveMeasurement& c) {
  Json row = Json::array({kCollectiveNames[static_cast<std::size_t>(c.op)], c.payload.value,
                          c.ranks, c.ranks_per_node});
  append_duration(row, c.time);
  row.push_back(c.group);
  return row;
}

std::string line_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Item>
std::string table_text(std::string_view key, std::span<const std::string_view> columns,
                       const std::vector<Item>& items) {
  Json names = Json::array();
  for (const std::string_view name : columns) names.push_back(name);
  std::string text = ",\n  \"" + std::string(key) + "\": {\n    \"columns\": " + line_of(names) +
                     ",\n    \"rows\": [";
  const char* separator = "\n      ";
  for (const Item& item : items) {
    text += separator + line_of(to_row(item));
    separator = ",\n      ";
  }
  return text + (items.empty() ? "]\n  }" : "\n    ]\n  }");
}

Json to_json(const ImportStats& stats) {
  Json counts = Json::array();
  for (const ImportStats::Count& count : stats.counts) {
    Json item{{"what", count.what},
              {"severity", kSeverityNames[static_cast<std::size_t>(count.severity)]},
              {"rows", count.rows}};
    if (!count.first.empty()) item["first"] = count.first;
    counts.push_back(std::move(item));
  }
  return Json{{"rows_read", stats.rows_read}, {"rows_kept", stats.rows_kept}, {"counts", counts}};
}

}  // namespace

Profile parse_profile(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format("towtank-profile", kVersion);
  Profile out;
  out.name = root.string("name");
  out.device_kind = root.string("device_kind");
  out.fabric_intranode = root.string("fabric_intranode");
  out.fabric_internode = root.string("fabric_internode");
  out.launch_included = root.boolean("launch_included");
  out.source = root.string("source");
  out.machine = root.string("machine");
  out.stats = read_stats(root);
  for_each_row(root, "ops", kOpColumns, [&](const Row& row) { out.ops.push_back(read_op(row)); });
  for_each_row(root, "collectives", kCollectiveColumns,
               [&](const Row& row) { out.collectives.push_back(read_collective(row)); });
  root.no_other_keys();
  file.finish();
  return out;
}

Profile load_profile(const std::string& path) {
  return parse_profile(JsonFile::parse(read_file(path, kMaxProfileBytes),
                                       path == "-" ? "standard input" : printable(path, 400)));
}

std::string profile_text(const Profile& profile) {
  std::string text =
      "{\n  \"format\": \"towtank-profile\",\n  \"version\": " + std::to_string(kVersion);
  const auto add = [&](std::string_view key, const Json& value) {
    text += ",\n  \"" + std::string(key) + "\": " + line_of(value);
  };
  add("name", profile.name);
  add("device_kind", profile.device_kind);
  add("fabric_intranode", profile.fabric_intranode);
  add("fabric_internode", profile.fabric_internode);
  add("launch_included", profile.launch_included);
  add("source", profile.source);
  add("machine", profile.machine);
  add("import", to_json(profile.stats));
  text += table_text("ops", kOpColumns, profile.ops);
  text += table_text("collectives", kCollectiveColumns, profile.collectives);
  return text + "\n}\n";
}

}  // namespace towtank
