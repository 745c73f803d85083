// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Times of the collectives of a job that are alike: one name, number of ranks and payload.
///
///   traces of    time of one collective
///   two ranks    wire time: the least duration over the ranks that were given (rank_skew.h)
///   one rank     unknown: its kernels wait for ranks that nobody recorded. The least of all
///                repeats is the best that can be said
#include <optional>
#include <string>
#include <vector>

#include "profiler/analysis/job_trace.h"
#include "profiler/profile.h"

namespace towtank {

struct CollectiveTimes {
  std::string name;
  std::optional<Collective> op;
  std::optional<Bytes> payload;
  int ranks = -1;
  bool ranks_assumed = false;
  bool several_ranks = false;
  std::vector<Seconds> wire;  ///< of each collective; of one rank the durations of its kernels
  std::int64_t in_kernel_ns = 0;
  long kernels = 0;

  [[nodiscard]] Duration wire_time() const;
};

/// By name, ranks, payload. Pre: analyse_traces made it.
[[nodiscard]] std::vector<CollectiveTimes> collective_times(const JobTrace&);

}  // namespace towtank
