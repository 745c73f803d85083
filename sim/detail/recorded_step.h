// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One step of one rank's trace as calls of the host and work of the device, with what each of them
/// followed upon.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiler/analysis/job_trace.h"

namespace towtank::detail {

/// A call that launched device work of the step, or waited for it.
struct RecordedCall {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t after = -1;      ///< the call that ended last before it began
  std::int32_t waits_for = -1;  ///< the device work with which it ended
};

struct RecordedWork {
  std::int32_t event = 0;  ///< of the trace
  std::int64_t begin_ns = 0, end_ns = 0;
  bool collective = false;
  std::int32_t launch = -1;           ///< into calls
  std::int32_t after_on_stream = -1;  ///< into work
  std::int32_t after_elsewhere = -1;  ///< into work: on another stream
};

struct RecordedRank {
  std::vector<RecordedCall> calls;                         ///< by begin
  std::vector<RecordedWork> work;                          ///< by begin
  std::unordered_map<std::int32_t, std::int32_t> work_of;  ///< by event
  std::int64_t begin_ns = 0;   ///< of the step on the host, or of its first call or work
  std::int64_t end_ns = 0;     ///< of the last work
  std::int64_t launch_ns = 0;  ///< shortest from a call to the work that it launched; >= 0
};

/// Pre: step < rank.steps.steps.size().
[[nodiscard]] RecordedRank recorded_rank(const RankTrace& rank, std::size_t step);

}  // namespace towtank::detail
