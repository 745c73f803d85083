// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Traces written in tests, as text and as a Trace.
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/import/trace_reader.h"

namespace towtank::testing {

/// The one trace that a text holds.
inline Trace trace_of(std::string text, std::string name = "t.json") {
  ByteSource source = ByteSource::of_text(std::move(name), std::move(text));
  const auto reader = reader_of(source.peek(1 << 16));
  if (!reader) return {};
  return reader->read(source);
}

/// Rows counted under a reason.
inline long counted(const ImportStats& stats, std::string_view what) {
  for (const ImportStats::Count& count : stats.counts) {
    if (count.what == what) return count.rows;
  }
  return 0;
}

inline std::filesystem::path shared_traces() {
  return std::filesystem::path(TOWTANK_SOURCE_DIR) / ".." / "shared" / "data" / "traces";
}

}  // namespace towtank::testing
