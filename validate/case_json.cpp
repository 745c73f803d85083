// SPDX-License-Identifier: Apache-2.0
#include "validate/case_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr std::string_view kFormat = "towtank-case";
constexpr int kVersion = 1;
constexpr JsonRange kTime{1e-9, 1e9};
constexpr JsonRange kMemory{1, 1e15};

/// Keys sorted, so that equal values have equal text whatever their order in the file.
nlohmann::json sorted(const Json& value) { return nlohmann::json::parse(value.dump()); }

CaseMeasurement read_measured(const JsonReader& object) {
  CaseMeasurement out;
  const JsonReader time = object.at("step_time_s");
  if (!time.is_null()) out.step_time = Seconds{time.as_number(kTime)};
  const JsonReader memory = object.at("peak_memory_bytes");
  if (!memory.is_null()) out.peak_memory = Bytes{memory.as_integer(kMemory)};
  out.outcome = static_cast<CaseOutcome>(object.one_of("outcome", kCaseOutcomeNames));
  if (out.outcome == CaseOutcome::kOom && out.step_time) {
    time.fault("is stated", "a run that was out of memory has no step time");
  }
  object.no_other_keys();
  return out;
}

std::vector<std::string> read_assumed(const JsonReader& root) {
  std::vector<std::string> names;
  for (const JsonReader& name : root.array("assumed")) names.push_back(name.as_string());
  return names;
}

void read_keys(const JsonReader& root, Case& out) {
  const Json& raw = root.raw();
  const auto part = [&raw](const char* key) {
    return raw.contains(key) ? sorted(raw[key]) : nlohmann::json();
  };
  out.group_key =
      nlohmann::json::array({part("workload"), part("platform"), part("devices")}).dump();
  out.plan_key = part("plan").dump();
}

}  // namespace

Case parse_case(const std::string& line, const std::string& where) {
  const JsonFile file = JsonFile::parse(line, where);
  const JsonReader root = file.root();
  root.expect_format(kFormat, kVersion);
  Case out;
  out.where = where;
  out.id = root.string("id");
  out.source = root.string("source");
  out.body = read_plan_body(root);
  out.measured = read_measured(root.at("measured"));
  out.confidence = static_cast<CaseConfidence>(root.one_of("confidence", kCaseConfidenceNames));
  out.assumed = read_assumed(root);
  const JsonReader notes = root.at("notes");
  out.notes = notes.as_string();
  out.tokens = read_notes(notes);
  root.no_other_keys();
  file.finish();
  read_keys(root, out);
  return out;
}

std::vector<Case> parse_cases(std::string_view text, const std::string& name) {
  std::vector<Case> cases;
  std::set<std::string> ids;
  Faults faults;
  std::size_t line = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string row(text.substr(start, end - start));
    start = end + 1;
    ++line;
    if (row.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = name + ":" + std::to_string(line);
    // One line's faults must not hide the next line's.
    try {
      cases.push_back(parse_case(row, where));
    } catch (const InputError& error) {
      for (const Fault& fault : error.faults()) faults.add(fault);
      continue;
    }
    if (!ids.insert(cases.back().id).second) {
      faults.add({where + ": /id", in_quotes(cases.back().id) + " is given twice", "", ""});
    }
  }
  faults.throw_if_any();
  return cases;
}

std::vector<Case> load_cases(const std::string& path) { return parse_cases(read_file(path), path); }

}  // namespace towtank
