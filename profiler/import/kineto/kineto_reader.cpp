// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/kineto/kineto_reader.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/input_error.h"
#include "core/json.h"
#include "core/text.h"
#include "profiler/import/kineto/json_stream.h"
#include "profiler/import/kineto/trace_builder.h"

namespace towtank {
namespace {

using kineto::RawEvent;
using kineto::TraceBuilder;
using Severity = ImportStats::Severity;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::int64_t kLatestBase = std::numeric_limits<std::int64_t>::max() / 4;

Json quiet_parse(std::string_view text) { return Json::parse(text, nullptr, false); }

template <class T>
T value_or(const Json& object, const char* key, T fallback) {
  const auto at = object.find(key);
  if (at == object.end()) return fallback;
  if constexpr (std::is_same_v<T, std::string>) {
    return at->is_string() ? at->template get<T>() : fallback;
  } else {
    return at->is_number_integer() ? at->template get<T>() : fallback;
  }
}

void read_devices(const Json& list, Trace& trace) {
  if (!list.is_array()) return;
  for (const Json& device : list) {
    if (!device.is_object()) continue;
    trace.devices.push_back({value_or(device, "id", 0),
                             printable(value_or(device, "name", std::string())),
                             value_or(device, "totalGlobalMem", std::int64_t{0})});
  }
}

void read_distributed(const Json& info, Trace& trace) {
  if (!info.is_object()) return;
  const int rank = value_or(info, "rank", -1), world = value_or(info, "world_size", -1);
  if (rank >= 0) trace.rank = rank;
  if (world > 0) trace.world_size = world;
  const std::string nccl = value_or(info, "nccl_version", std::string());
  if (!nccl.empty()) trace.software.push_back("NCCL " + printable(nccl));
}

/// "12040" -> "12.4"
std::string cuda_version(std::string_view text) {
  const auto number = kineto::whole_number(text);
  if (!number || number->value <= 0) return "";
  return std::to_string(number->value / 1000) + "." + std::to_string(number->value % 1000 / 10);
}

class Reading {
 public:
  Reading(ByteSource& source, Trace& trace)
      : source_(source), stream_(source), trace_(trace), builder_(trace) {}

  void run() {
    if (stream_.peek() == kByteOrderMark[0]) stream_.take(kByteOrderMark.size());
    if (stream_.peek() == '[') {
      trace_.stats.add("files that are a bare array of events", Severity::kInfo);
      events();
      any_events_ = true;
    } else {
      top_level();
    }
    builder_.finish();
    if (source_.cut_off()) {
      trace_.stats.add("files whose compressed data end early", Severity::kError);
    }
    if (!any_events_) {
      throw InputError({trace_.name, "has no traceEvents", "it is JSON, but no trace", ""});
    }
  }

 private:
  void cut(std::uint64_t offset) {
    if (std::exchange(cut_, true)) return;
    builder_.count("files that end before their JSON does", Severity::kError, offset);
  }

  void top_level() {
    const auto opened = stream_.parse([](JsonCursor& cursor) { cursor.need('{'); });
    if (opened != JsonStream::Result::kOk) {
      throw InputError({trace_.name, "is no JSON object or array", "", ""});
    }
    while (true) {
      const char next = stream_.peek();
      if (next == '}') return;
      if (next == '\0') return cut(stream_.offset());
      if (next == ',') {
        stream_.take();
        continue;
      }
      std::string key;
      const auto found = stream_.parse([&](JsonCursor& cursor) {
        key.assign(cursor.string());
        cursor.need(':');
        cursor.peek();
      });
      if (found == JsonStream::Result::kEnd) return cut(stream_.offset());
      if (found != JsonStream::Result::kOk) {
        builder_.count("places that are no JSON, behind which nothing is read", Severity::kError,
                       stream_.bad_offset());
        return;
      }
      if (key == "traceEvents" && stream_.peek() == '[') {
        any_events_ = true;
        events();
      } else if (!property(key)) {
        return;
      }
    }
  }

  /// False if the file cannot be read further.
  bool property(const std::string& key) {
    std::string text;
    const auto result = stream_.parse([&](JsonCursor& cursor) { text.assign(cursor.value()); });
    if (result == JsonStream::Result::kOk) {
      set_property(key, text);
      return true;
    }
    builder_.count(result == JsonStream::Result::kEnd
                       ? "files that end before their JSON does"
                       : "places that are no JSON, behind which nothing is read",
                   Severity::kError, stream_.offset());
    return false;
  }

  void set_property(const std::string& key, std::string_view text) {
    if (key == "deviceProperties") return read_devices(quiet_parse(text), trace_);
    if (key == "distributedInfo") return read_distributed(quiet_parse(text), trace_);
    if (key == "baseTimeNanoseconds") {
      const auto base = kineto::whole_number(text);
      if (base && !base->wide && base->value >= 0 && base->value <= kLatestBase) {
        builder_.set_base(base->value);
      } else {
        builder_.count("base times that cannot be read", Severity::kError, stream_.offset());
      }
      return;
    }
    const auto software = [&](const char* name) {
      if (const std::string version = cuda_version(text); !version.empty()) {
        trace_.software.push_back(name + version);
      }
    };
    if (key == "cuda_runtime_version") software("CUDA ");
    if (key == "cuda_driver_version") software("CUDA driver ");
  }

  void events() {
    stream_.take();
    while (true) {
      const char next = stream_.peek();
      if (next == ',') {
        stream_.take();
      } else if (next == ']') {
        stream_.take();
        return;
      } else if (next == '\0') {
        return cut(stream_.offset());
      } else if (next == '{') {
        if (!event()) return;
      } else if (!other_element()) {
        return;
      }
    }
  }

  bool event() {
    const std::uint64_t offset = stream_.offset();
    RawEvent raw;
    const auto result = stream_.parse([&](JsonCursor& cursor) {
      raw = {};
      kineto::read_event(cursor, raw);
    });
    if (result == JsonStream::Result::kOk) {
      builder_.add(raw, offset);
      return true;
    }
    return lost(result, offset);
  }

  bool other_element() {
    const std::uint64_t offset = stream_.offset();
    const auto result = stream_.parse([](JsonCursor& cursor) { cursor.skip_value(); });
    if (result != JsonStream::Result::kOk) return lost(result, offset);
    builder_.add({}, offset);
    return true;
  }

  /// Counts what cannot be read and finds the next event; false if there is none.
  bool lost(JsonStream::Result result, std::uint64_t offset) {
    const bool at_end = result == JsonStream::Result::kEnd;
    if (!at_end) builder_.count("events that are no JSON", Severity::kError, stream_.bad_offset());
    const bool more = stream_.resynchronise();
    if (at_end && more) builder_.count("events that are no JSON", Severity::kError, offset);
    if (at_end && !more) cut(offset);
    return more;
  }

  ByteSource& source_;
  JsonStream stream_;
  Trace& trace_;
  TraceBuilder builder_;
  bool any_events_ = false, cut_ = false;
};

class KinetoReader final : public TraceReader {
 public:
  [[nodiscard]] std::string_view format() const override { return "Kineto"; }

  [[nodiscard]] bool recognises(std::string_view head) const override {
    if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    if (head[first] == '[') {
      const std::size_t next = head.find_first_not_of(" \t\r\n", first + 1);
      return next != std::string_view::npos && head[next] == '{' &&
             head.find("\"ph\"") != std::string_view::npos;
    }
    if (head[first] != '{') return false;
    return head.find("\"traceEvents\"") != std::string_view::npos ||
           head.find("\"schemaVersion\"") != std::string_view::npos ||
           head.find("\"deviceProperties\"") != std::string_view::npos;
  }

  [[nodiscard]] Trace read(ByteSource& source) const override {
    Trace trace;
    trace.name = source.name();
    trace.format = format();
    Reading(source, trace).run();
    return trace;
  }
};

}  // namespace

std::unique_ptr<TraceReader> kineto_reader() { return std::make_unique<KinetoReader>(); }

}  // namespace towtank
