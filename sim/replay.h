// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A recorded step made into tasks, so that the engine can run it again, as it was or with ranks
/// that are faster or slower.
///
/// What a trace records are times; what is kept are reasons. Per rank:
///
///   host call     after the call that ended last before it, and the pause between them
///   waiting call  a synchronisation or blocking copy that ended with device work: ends with it
///   device work   after its launch, after the work before it on its stream, and after work of
///                 another stream that ended just before it began, if nothing else explains its
///                 start. What then remains is kept as a delay behind the last of these
///   collective    one task of all ranks that have it (profiler/analysis/rank_skew.h): begins when
///                 the last rank is there, takes the wire time. Waiting is found, not copied
///   first call    as long after that of the first rank as recorded, clocks aligned
///
/// Launches take the shortest time from call to start that the rank shows. Calls that neither
/// launch work nor wait for it are part of the pauses.
///
/// Not modelled: contention (wire times are those recorded), what the host does differently when
/// calls come at other times, launches that wait for room in a queue.
#include <optional>
#include <vector>

#include "profiler/analysis/job_trace.h"
#include "sim/lower.h"

namespace towtank {

struct ReplayOptions {
  /// Which step, from 0; nullopt: the one of median length.
  std::optional<std::size_t> step;
  /// Device work of these ranks takes so many times as long; by the ranks of the traces.
  std::vector<Straggler> stragglers;
};

struct Replay {
  LoweredStep step;
  std::size_t index = 0;  ///< of the step
  std::string name;       ///< of the step on the first rank
  /// From the first rank's first call to the end of the last device work on any, as recorded.
  Seconds recorded;
  /// The ranks' collectives cannot be one after the other as they were matched: each runs as long
  /// as its own kernel did, waiting included.
  bool collectives_apart = false;
  long unexplained = 0;      ///< device events that began more than 20 us after all known reasons
  Seconds unexplained_time;  ///< of them
};

/// Steps that all ranks have; 0: nothing to replay.
[[nodiscard]] std::size_t replayable_steps(const JobTrace&);

/// Pre: options.step < replayable_steps(job), which is not 0.
[[nodiscard]] Replay replay(const JobTrace&, const ReplayOptions& = {});

}  // namespace towtank
