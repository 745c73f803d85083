// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The answers that people want of a job's traces, as numbers to print.
///
/// Times of a step are means over all steps of all ranks, but for its length, of which the median,
/// the least and the largest are given. Rates are work or traffic of all runs over their time.
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "profiler/analysis/job_trace.h"
#include "profiler/analysis/trace_ops.h"
#include "profiler/profile.h"

namespace towtank {

struct StepSummary {
  StepSource source = StepSource::kWholeTrace;
  int steps = 0;                                      ///< on all ranks
  Duration length;                                    ///< of a window
  Seconds compute, exposed_comm, exposed_copy, idle;  ///< means; they sum to the mean length
  Seconds comm;                                       ///< of all collectives, hidden or not
  /// From the first device event of a step on any rank to the last on all, clocks aligned; of
  /// several steps the mean. nullopt: one rank only, or ranks with unlike numbers of steps.
  std::optional<Seconds> job;
};

struct OpClassTime {
  std::string name;  ///< "matmul forward bf16", "optimizer", "unknown: aten::topk"
  long runs = 0;
  Seconds time;      ///< of a step
  double share = 0;  ///< of all device time of ops
  std::optional<FlopPerSecond> flops;
  std::optional<BytesPerSecond> bandwidth;
};

struct CollectiveClassTime {
  std::string name;  ///< "all_reduce"
  std::optional<Collective> op;
  int ranks = -1;
  std::optional<Bytes> payload;
  long calls = 0;     ///< on one rank
  Seconds in_kernel;  ///< mean duration of its kernels, waiting included
  Seconds wire;       ///< median of the least durations over the ranks; of one rank: the least
  bool several_ranks = false;
  std::optional<BytesPerSecond> bus;  ///< of `wire`, as nccl-tests counts it
};

struct RankRow {
  std::string name;
  Seconds step;  ///< median
  Seconds compute, exposed_comm, idle;
  long last = 0;
  Seconds waited, held_up;
  Seconds clock_ahead;
};

struct TraceSummary {
  StepSummary step;
  std::vector<OpClassTime> ops;  ///< longest first
  std::optional<LayerTimes> layers;
  int layer_steps = 0;  ///< steps that `layers` sums over
  std::vector<CollectiveClassTime> collectives;
  std::vector<RankRow> ranks;
  int straggler = -1;  ///< into ranks; -1: nothing to tell it by
  long device_events = 0;
};

[[nodiscard]] TraceSummary summarise(const JobTrace&);

/// nccl-tests doc/PERFORMANCE.md: bus bandwidth over algorithm bandwidth.
[[nodiscard]] double bus_factor(Collective op, int ranks);

}  // namespace towtank
