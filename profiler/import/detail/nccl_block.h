// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One run of one test, whatever the format it was read from, and its way into a profile.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank::detail {

/// One side (out of place or in place) of a row. A number that is not there is NaN.
struct NcclSide {
  double time_us = 0, algbw = 0, busbw = 0;  ///< bandwidths in GB/s, GB = 1e9
  double wrong = 0;
};

struct NcclRow {
  std::int64_t size = 0;  ///< bytes
  std::string type, redop;
  std::vector<NcclSide> sides;
  long line = 0;  ///< 0: no line
};

struct NcclBlock {
  std::string file;
  std::string test;                  ///< "all_reduce_perf", "AllReduce"; empty: unknown
  std::map<int, std::string> hosts;  ///< by rank
  int stated_ranks = 0, stated_ranks_per_node = 0;  ///< of formats without device lines
  std::string device;                               ///< as the driver names it
  std::string versions;
  bool graph = false;  ///< replayed from a CUDA graph
  bool has_header = false;
  std::vector<NcclRow> rows;
};

/// A number, or NaN ("nan", "N/A", text); a trailing * (old versions mark errors so) is ignored.
[[nodiscard]] double nccl_number(std::string_view text);
/// A whole number in [0, most]; 0 for anything else.
[[nodiscard]] std::int64_t nccl_count(double value, double most);
inline constexpr double kMostNcclRanks = 1e7;
inline constexpr double kMostNcclBytes = 1e17;
/// Adds the rows of a run, each oddity counted. Throws InputError where the ranks or the collective
/// cannot be known.
void add_block(Profile& profile, const NcclBlock& block, const ImportOptions& options);
/// Runs in a JSON file or in JSON lines.
[[nodiscard]] std::vector<NcclBlock> nccl_json_blocks(const SourceText& file, ImportStats& stats);
/// The catalogue's name for a device as the driver names it; empty if it has none.
[[nodiscard]] std::string device_kind_of(std::string_view driver_name);

}  // namespace towtank::detail
