// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Recorded activities in order of time, each with the mark of its launch, and what was done under
/// each mark.
///
///   busy    time in which at least one kernel, copy or set of the mark ran: overlap of streams
///           counts once
///   kernel  sum of kernel times: overlap counts twice
///
/// Records arrive in any order, and a mark's record before or after its activities. Counted, never
/// dropped in silence:
///
///   what                              severity   consequence
///   out of order                      info       sorted
///   kernels without a mark            info       in no mark's time
///   marks without an activity         info       launches that did nothing on the device
///   several marks of one launch       info       the innermost one, which comes last, counts
///   records without times             loss       left out (the device was still running)
///   records that end before they start    error  left out
///   lost, refused, beyond, unreadable     loss   not there: the times are too short
#include <cstdint>
#include <vector>

#include "core/units.h"
#include "profiler/collect/activity.h"
#include "profiler/profile.h"

namespace towtank {

struct MarkedTime {
  std::uint64_t mark = 0;
  int kernels = 0, copies = 0, sets = 0;
  Seconds kernel;  ///< sum over kernels
  Seconds busy;    ///< union over streams
  Seconds span;    ///< from the first start to the last end
  Bytes copied;
  friend bool operator==(const MarkedTime&, const MarkedTime&) = default;
};

struct JoinedActivities {
  std::vector<Activity> activities;  ///< by start, then stream, then correlation; marks filled in
  std::vector<MarkedTime> marks;     ///< by number
  Seconds busy;                      ///< of all kernels, copies and sets
  Seconds overhead;                  ///< what the recording itself is known to have taken
  ImportStats stats;
};

[[nodiscard]] JoinedActivities join_activities(const ActivityRecording& recording);

}  // namespace towtank
