// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/kineto/trace_builder.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/text.h"
#include "profiler/import/source_text.h"

namespace towtank::kineto {
namespace {

using Severity = ImportStats::Severity;

constexpr std::int64_t kLongestNs = 7LL * 24 * 3600 * 1'000'000'000;
/// Times beyond this are since the epoch: 2001 in microseconds.
constexpr std::int64_t kEpochNs = 1'000'000'000LL * 1'000'000'000;
/// Whole numbers of this many digits are nanoseconds: microseconds so large lie in the year 5138.
constexpr std::size_t kNanosecondDigits = 18;
/// Of flows, metadata, instants, counters, objects, clocks, samples, asynchronous ranges.
constexpr std::string_view kOtherPhases = "stfMiIRCnebPNODcvV()SFTp";
constexpr std::int64_t kLatestNs = std::numeric_limits<std::int64_t>::max() / 4;

Json parsed(std::string_view text) {
  return text.empty() ? Json() : Json::parse(text, nullptr, false);
}

std::vector<std::int64_t> shape_of(const Json& dims, bool& odd) {
  std::vector<std::int64_t> out;
  for (const Json& d : dims) {
    if (d.is_number_integer()) {
      out.push_back(d.get<std::int64_t>());
    } else {
      odd = true;
    }
  }
  return out;
}

/// Shapes of one argument: "[2, 3]" of a tensor, "[[2, 3], [4]]" of a list.
void add_shapes(const Json& dims, TraceInput& input, bool& odd) {
  if (!dims.is_array()) {
    odd = true;
    return;
  }
  if (dims.empty() || !dims[0].is_array()) {
    input.shape = shape_of(dims, odd);
    return;
  }
  for (const Json& one : dims) {
    odd = odd || !one.is_array();
    if (one.is_array()) input.list.push_back(shape_of(one, odd));
  }
}

std::vector<TraceInput> inputs_of(const RawEvent& raw, bool& odd) {
  const Json shapes = parsed(raw.shapes), types = parsed(raw.types), values = parsed(raw.values);
  odd = shapes.is_discarded() || types.is_discarded() || values.is_discarded();
  std::vector<TraceInput> out;
  const auto at_least = [&](std::size_t size) { out.resize(std::max(out.size(), size)); };
  if (shapes.is_array()) {
    at_least(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) add_shapes(shapes[i], out[i], odd);
  }
  const auto texts = [&](const Json& list, std::string TraceInput::*member) {
    if (!list.is_array()) return;
    at_least(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].is_string()) out[i].*member = list[i].get<std::string>();
    }
  };
  texts(types, &TraceInput::type);
  texts(values, &TraceInput::value);
  return out;
}

int small_number(std::string_view text) {
  const auto number = whole_number(text);
  if (!number || number->wide || number->value < 0 || number->value > (1 << 30)) return -1;
  return static_cast<int>(number->value);
}

std::int64_t amount(std::string_view text) {
  const auto number = whole_number(text);
  return number && !number->wide && number->value >= 0 ? number->value : -1;
}

/// "[0, 1, 2]"; long lists end in "...", then the ranks are not known.
std::vector<int> rank_list(std::string_view text) {
  std::vector<int> out;
  if (text.find("...") != std::string_view::npos) return out;
  while (!text.empty()) {
    const std::size_t first = text.find_first_of("0123456789");
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
    out.push_back(small_number(text.substr(0, size)));
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace

void TraceBuilder::count(std::string_view what, Severity severity, std::uint64_t offset) {
  trace_.stats.add(what, severity, 1, base_name(trace_.name) + ": byte " + std::to_string(offset));
}

TextId TraceBuilder::name(std::string_view raw, std::uint64_t offset) {
  key_.assign(raw);
  const auto known = names_.find(key_);
  if (known != names_.end()) return known->second;
  bool broken = false;
  std::string text = unescaped(raw, broken);
  if (broken) count("names with an escape that is none", Severity::kInfo, offset);
  if (auto mended = mended_utf8(text)) {
    count("names that are not UTF-8", Severity::kInfo, offset);
    text = std::move(*mended);
  }
  const TextId id = texts_.id(text);
  names_.emplace(key_, id);
  return id;
}

bool TraceBuilder::set_times(const RawEvent& raw, TraceEvent& event, std::uint64_t offset) {
  if (!unit_known_ && !raw.start.empty()) {
    unit_known_ = true;
    in_ns_ = raw.start.size() >= kNanosecondDigits &&
             raw.start.find_first_not_of("0123456789") == std::string_view::npos;
    if (in_ns_) count("files whose times are nanoseconds", Severity::kInfo, offset);
  }
  const auto time = [&](std::string_view text) -> std::optional<std::int64_t> {
    if (!in_ns_) return thousandths(text);
    const auto number = whole_number(text);
    if (!number || number->wide) return std::nullopt;
    return number->value;
  };
  const auto start = time(raw.start);
  if (!start || *start > kLatestNs || *start < -kLatestNs) {
    count("events without a time", Severity::kError, offset);
    return false;
  }
  event.start_ns = *start;
  if (raw.phase == "B") return true;
  const auto duration = raw.duration.empty() ? std::optional<std::int64_t>(0) : time(raw.duration);
  if (!duration || *duration > kLongestNs) {
    count("durations over 7 days", Severity::kLoss, offset);
    return false;
  }
  if (*duration < 0) {
    count("durations under 0", Severity::kLoss, offset);
    return false;
  }
  if (raw.duration.empty()) count("events without a duration", Severity::kInfo, offset);
  event.duration_ns = *duration;
  return true;
}

std::int64_t TraceBuilder::id(std::string_view text, std::uint64_t offset) {
  if (text.empty()) return -1;
  const auto number = whole_number(text);
  if (!number) {
    count("ids that are no numbers", Severity::kInfo, offset);
    return -1;
  }
  if (number->wide) count("ids beyond int64", Severity::kInfo, offset);
  return number->value;
}

void TraceBuilder::set_ids(const RawEvent& raw, TraceEvent& event, std::uint64_t offset) {
  event.correlation = id(raw.correlation, offset);
  event.external_id = id(raw.external_id, offset);
  event.sequence = id(raw.sequence, offset);
  event.bytes = amount(raw.bytes);
}

std::int32_t TraceBuilder::track(const RawEvent& raw, bool device_track) {
  key_.assign(raw.process);
  key_ += '\x1f';
  key_ += raw.thread;
  if (device_track) {
    key_ += '\x1f';
    key_ += raw.device;
    key_ += '\x1f';
    key_ += raw.stream;
  }
  if (key_ == last_track_key_) return last_track_;
  const auto [at, added] = tracks_.emplace(key_, static_cast<std::int32_t>(trace_.tracks.size()));
  if (added) {
    TraceTrack& track = trace_.tracks.emplace_back();
    track.process = printable(raw.process);
    track.thread = printable(raw.thread);
    if (device_track) {
      track.device = small_number(raw.device.empty() ? raw.process : raw.device);
      const auto stream = whole_number(raw.stream.empty() ? raw.thread : raw.stream);
      track.stream = stream ? stream->value : -1;
    }
  }
  last_track_key_ = key_;
  last_track_ = at->second;
  return last_track_;
}

std::int32_t TraceBuilder::inputs(const RawEvent& raw, std::uint64_t offset) {
  if (raw.shapes.empty() && raw.types.empty()) return -1;
  key_.assign(raw.shapes);
  key_ += raw.types;
  key_ += raw.values;
  const auto [at, added] = inputs_.emplace(key_, static_cast<std::int32_t>(trace_.inputs.size()));
  if (added) {
    bool odd = false;
    trace_.inputs.push_back(inputs_of(raw, odd));
    if (odd) count("inputs that cannot be read", Severity::kLoss, offset);
  }
  return at->second;
}

std::int32_t TraceBuilder::collective(const RawEvent& raw) {
  if (raw.collective.empty()) return -1;
  TraceCollective& c = trace_.collectives.emplace_back();
  c.name = printable(raw.collective);
  c.dtype = printable(raw.dtype);
  c.group = printable(raw.group);
  c.ranks = rank_list(raw.ranks);
  c.in_elements = amount(raw.in_elements);
  c.out_elements = amount(raw.out_elements);
  c.sequence = amount(raw.seq);
  c.group_size = small_number(raw.group_size);
  return static_cast<std::int32_t>(trace_.collectives.size() - 1);
}

void TraceBuilder::keep(TraceEvent& event) {
  ++trace_.stats.rows_kept;
  trace_.events.push_back(event);
}

void TraceBuilder::end_pair(const RawEvent& raw, std::uint64_t offset) {
  std::vector<TraceEvent>& open = open_[track(raw, false)];
  TraceEvent end;
  if (open.empty() || !set_times(raw, end, offset)) {
    count("ends without a begin", Severity::kLoss, offset);
    return;
  }
  TraceEvent event = open.back();
  open.pop_back();
  event.duration_ns = end.start_ns - event.start_ns;
  if (event.duration_ns < 0 || event.duration_ns > kLongestNs) {
    count(event.duration_ns < 0 ? "durations under 0" : "durations over 7 days", Severity::kLoss,
          offset);
    return;
  }
  keep(event);
}

void TraceBuilder::add(const RawEvent& raw, std::uint64_t offset) {
  ++trace_.stats.rows_read;
  const bool complete = raw.phase == "X", begin = raw.phase == "B", end = raw.phase == "E";
  if (end) return end_pair(raw, offset);
  if (!complete && !begin) {
    const bool known =
        raw.phase.size() == 1 && kOtherPhases.find(raw.phase[0]) != std::string_view::npos;
    if (known) {
      others_.add(offset);
    } else {
      count("elements that are no events", Severity::kError, offset);
    }
    return;
  }
  const auto category = category_of(raw);
  if (!category && raw.category == "python_function") return python_.add(offset);
  if (!category && is_harmless(raw.category)) return markers_.add(offset);
  if (!category) {
    return count("events of category " + in_quotes(raw.category, 30), Severity::kLoss, offset);
  }
  TraceEvent event;
  event.category = *category;
  if (!set_times(raw, event, offset)) return;
  const bool device_track = on_device(*category) || *category == TraceCategory::kDeviceSync ||
                            *category == TraceCategory::kDeviceAnnotation;
  event.track = track(raw, device_track && !begin);
  set_ids(raw, event, offset);
  event.name = name(raw.name, offset);
  event.inputs = inputs(raw, offset);
  event.collective = collective(raw);
  if (begin) {
    open_[event.track].push_back(event);
  } else {
    keep(event);
  }
}

void TraceBuilder::flush(const Tally& tally, std::string_view what) {
  if (tally.rows == 0) return;
  trace_.stats.add(what, Severity::kInfo, tally.rows,
                   base_name(trace_.name) + ": byte " + std::to_string(tally.first));
}

void TraceBuilder::finish() {
  flush(others_, "flows, instants, counters and metadata");
  flush(python_, "Python calls that are no modules");
  flush(markers_, "markers of the profiler itself");
  for (const auto& [track, open] : open_) {
    trace_.stats.add("begins without an end", Severity::kLoss, static_cast<long>(open.size()));
  }
  std::int64_t least = kLatestNs;
  for (const TraceEvent& event : trace_.events) least = std::min(least, event.start_ns);
  const bool epoch = !trace_.events.empty() && least > kEpochNs;
  if (epoch || base_ns_ > 0) trace_.clock = TraceClock::kEpoch;
  if (!epoch && base_ns_ > 0) {
    for (TraceEvent& event : trace_.events) event.start_ns += base_ns_;
  } else if (epoch && base_ns_ > 0) {
    trace_.stats.add("base times that the events do not need", Severity::kInfo);
  }
  sort_events(trace_);
}

}  // namespace towtank::kineto
