// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Raw events made into a Trace: names and inputs interned, tracks found, times converted, oddities
/// counted.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/import/kineto/raw_event.h"
#include "profiler/trace.h"

namespace towtank::kineto {

class TraceBuilder {
 public:
  explicit TraceBuilder(Trace& trace) : trace_(trace), texts_(trace) {}

  /// `offset`: of the event in the file, for the statistics.
  void add(const RawEvent&, std::uint64_t offset);
  /// "baseTimeNanoseconds" of the file.
  void set_base(std::int64_t base_ns) { base_ns_ = base_ns; }
  /// An oddity.
  void count(std::string_view what, ImportStats::Severity, std::uint64_t offset);
  /// After the last event: puts them in order and on their clock.
  void finish();

 private:
  /// What every file has many of, counted without cost.
  struct Tally {
    long rows = 0;
    std::uint64_t first = 0;
    void add(std::uint64_t offset) {
      if (rows++ == 0) first = offset;
    }
  };
  void flush(const Tally&, std::string_view what);
  bool set_times(const RawEvent&, TraceEvent&, std::uint64_t offset);
  void set_ids(const RawEvent&, TraceEvent&, std::uint64_t offset);
  std::int64_t id(std::string_view text, std::uint64_t offset);
  TextId name(std::string_view raw, std::uint64_t offset);
  std::int32_t track(const RawEvent&, bool on_device);
  std::int32_t inputs(const RawEvent&, std::uint64_t offset);
  std::int32_t collective(const RawEvent&);
  void end_pair(const RawEvent&, std::uint64_t offset);
  void keep(TraceEvent&);

  Trace& trace_;
  TextIndex texts_;
  std::unordered_map<std::string, TextId> names_;  ///< by the text in the file
  std::unordered_map<std::string, std::int32_t> tracks_, inputs_;
  std::map<std::int32_t, std::vector<TraceEvent>> open_;  ///< begun and not ended, by track
  std::string key_;
  std::string last_track_key_;
  std::int32_t last_track_ = -1;
  Tally others_, python_, markers_;
  std::int64_t base_ns_ = 0;
  bool unit_known_ = false, in_ns_ = false;
};

}  // namespace towtank::kineto
