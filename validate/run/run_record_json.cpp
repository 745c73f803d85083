// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "validate/run/run_record.h"

namespace towtank {
namespace {

constexpr std::string_view kFormat = "towtank-run";
constexpr int kVersion = 1;
constexpr JsonRange kTime{0, 1e12};
constexpr std::size_t kSpanFields = 8;

Json span_json(const Span& s) {
  return Json::array({kSpanNames[static_cast<std::size_t>(s.kind)], s.stage, s.microbatch, s.peer,
                      s.tag, s.begin, s.end, s.cpu});
}

Span read_span(const JsonReader& reader) {
  Span out;
  const std::vector<JsonReader> fields = reader.elements();
  if (fields.size() != kSpanFields) {
    reader.fault("is not a span", "[kind, stage, microbatch, peer, tag, begin, end, cpu]");
    return out;
  }
  const std::string name = fields[0].as_string();
  const auto found = std::find(kSpanNames.begin(), kSpanNames.end(), name);
  if (found == kSpanNames.end()) {
    fields[0].fault("\"" + name + "\" is not a kind of span");
    return out;
  }
  out.kind = static_cast<SpanKind>(found - kSpanNames.begin());
  out.stage = static_cast<int>(fields[1].as_integer({-1, 1e6}));
  out.microbatch = static_cast<int>(fields[2].as_integer({-1, 1e9}));
  out.peer = static_cast<int>(fields[3].as_integer({-1, 1e9}));
  out.tag = static_cast<int>(fields[4].as_integer({-1, 2e9}));
  out.begin = fields[5].as_number(kTime);
  out.end = fields[6].as_number(kTime);
  out.cpu = fields[7].as_number(kTime);
  return out;
}

Json slice(const std::string& name, int rank, double begin, double duration) {
  return {{"name", name}, {"ph", "X"}, {"pid", rank}, {"tid", 0}, {"ts", begin}, {"dur", duration}};
}

std::string slice_name(const Span& s) {
  std::string name(kSpanNames[static_cast<std::size_t>(s.kind)]);
  if (s.microbatch >= 0) {
    name += " " + std::to_string(s.stage) + "." + std::to_string(s.microbatch);
  }
  return name;
}

}  // namespace

Json to_json(const RankRecord& rank) {
  Json json{{"rank", rank.rank}, {"host", rank.host}};
  json["memory"] = Json::object();
  for (const auto& [name, bytes] : rank.memory) json["memory"][name + "_bytes"] = bytes;
  json["steps"] = Json::array();
  for (const StepRecord& step : rank.steps) {
    Json spans = Json::array();
    for (const Span& s : step.spans) spans.push_back(span_json(s));
    json["steps"].push_back({{"loss", step.loss}, {"spans", std::move(spans)}});
  }
  return json;
}

Json to_json(const RunRecord& run) {
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"backend", run.backend},
            {"torch", run.torch},
            {"learning_rate", run.adam_learning_rate},
            {"seed", run.seed}};
  json["step_time_s"] = median_step_time(run).value;
  json["losses"] = losses(run);
  json["ranks"] = Json::array();
  for (const RankRecord& rank : run.ranks) json["ranks"].push_back(to_json(rank));
  return json;
}

RankRecord read_rank_record(const JsonReader& reader) {
  RankRecord rank;
  rank.rank = static_cast<int>(reader.integer("rank", {0, 1e9}));
  rank.host = reader.string("host");
  const JsonReader memory = reader.at("memory");
  for (const std::string& key : memory.keys()) {
    constexpr std::string_view kSuffix = "_bytes";
    if (!key.ends_with(kSuffix)) continue;  // no_other_keys() tells it
    rank.memory.emplace_back(key.substr(0, key.size() - kSuffix.size()),
                             memory.integer(key, {0, 1e18}));
  }
  memory.no_other_keys();
  for (const JsonReader& step : reader.array("steps")) {
    StepRecord out;
    out.loss = step.number("loss");
    for (const JsonReader& span : step.array("spans")) out.spans.push_back(read_span(span));
    if (out.spans.empty() || out.spans.front().kind != SpanKind::kStep) {
      step.fault("does not begin with the span of the step");
    }
    step.no_other_keys();
    rank.steps.push_back(std::move(out));
  }
  reader.no_other_keys();
  return rank;
}

RunRecord parse_run_record(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format(kFormat, kVersion);
  RunRecord run;
  run.backend = root.string("backend");
  run.torch = root.string("torch");
  run.adam_learning_rate = root.number("learning_rate");
  run.seed = static_cast<std::uint64_t>(root.integer("seed", {0, 9e15}));
  root.ignore("step_time_s");
  root.ignore("losses");
  for (const JsonReader& rank : root.array("ranks")) run.ranks.push_back(read_rank_record(rank));
  for (const RankRecord& rank : run.ranks) {
    if (rank.steps.size() != run.ranks.front().steps.size()) {
      root.fault("has ranks with different numbers of steps");
      break;
    }
  }
  root.no_other_keys();
  file.finish();
  return run;
}

std::string run_trace(const RunRecord& run, std::size_t step) {
  constexpr double kMicro = 1e6;
  double start = 1e300;
  for (const RankRecord& rank : run.ranks) {
    start = std::min(start, rank.steps[step].spans.front().begin);
  }
  Json events = Json::array();
  for (const RankRecord& rank : run.ranks) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank.rank},
                      {"args", {{"name", "rank " + std::to_string(rank.rank)}}}});
    for (const Span& s : rank.steps[step].spans) {
      if (s.kind == SpanKind::kSend) continue;
      events.push_back(
          slice(slice_name(s), rank.rank, (s.begin - start) * kMicro, (s.end - s.begin) * kMicro));
    }
  }
  return events.dump(1) + "\n";
}

}  // namespace towtank
