// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The traces of one job's ranks, with everything that is derived from them.
#include <string>
#include <vector>

#include "profiler/analysis/rank_skew.h"
#include "profiler/analysis/trace_collectives.h"
#include "profiler/analysis/trace_joins.h"
#include "profiler/analysis/trace_steps.h"
#include "profiler/trace.h"

namespace towtank {

struct RankTrace {
  Trace trace;
  TraceJoins joins;
  std::vector<TraceCollectiveCall> calls;
  std::vector<bool> is_collective;  ///< by event
  TraceSteps steps;
};

struct JobTrace {
  std::vector<RankTrace> ranks;  ///< by rank; those of no stated rank last, in the order given
  RankSkew skew;                 ///< of `ranks`, by index
  /// Two traces state the same rank: then they are several captures, and nothing is matched.
  bool ranks_repeat = false;
};

struct JobTraceOptions {
  std::string step_marker;  ///< annotations whose name begins so are steps; empty: ProfilerStep#
};

/// Pre: traces is not empty.
[[nodiscard]] JobTrace analyse_traces(std::vector<Trace> traces, const JobTraceOptions& = {});

/// "rank 3", or the file where no rank is stated.
[[nodiscard]] std::string rank_name(const RankTrace&);

/// All that was counted: of reading, joining, and finding steps.
[[nodiscard]] ImportStats trace_stats(const JobTrace&);

}  // namespace towtank
