// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/contracts.h"
#include "placement/recurrence.h"

namespace towtank {
namespace {

Seconds whole(const StageTime& t) { return t.forward + t.input_grad + t.weight_grad; }

/// Rank r of a schedule that keeps few forwards in flight waits twice, once while the first
/// microbatch and once while the last one passes through the later stages (`away`). In the first
/// window it runs at most `others` forwards, in the second as many backwards, nothing else. The
/// windows are disjoint if the last forward comes after the first backward.
Seconds idle_while_away(Seconds away, Seconds forward, Seconds backward, int others,
                        int microbatches) {
  Seconds idle = std::max(Seconds{}, away - others * forward);
  if (microbatches - 1 > others) idle += std::max(Seconds{}, away - others * backward);
  return idle;
}

/// On the last rank every forward precedes the first backward, so the round trip of the last
/// microbatch through the stages after rank r is idle on rank r.
Seconds gpipe_bound(const PipelineShape& shape, std::span<const StageTime> stages) {
  Seconds sum;
  Seconds longest;
  for (const StageTime& t : stages) {
    sum += whole(t);
    longest = std::max(longest, whole(t));
  }
  return sum + (shape.microbatches - 1) * longest;
}

Seconds one_f_one_b_bound(const PipelineShape& shape, std::span<const StageTime> stages) {
  Seconds away;
  for (const StageTime& t : stages) away += whole(t);
  Seconds around;  // head + tail
  Seconds bound;
  for (int r = 0; r < shape.ranks; ++r) {
    const StageTime& t = stages[static_cast<std::size_t>(r)];
    away -= whole(t);
    const int others = std::min(shape.ranks - r - 1, shape.microbatches - 1);
    const Seconds idle =
        idle_while_away(away, t.forward, t.input_grad + t.weight_grad, others, shape.microbatches);
    bound = std::max(bound, around + shape.microbatches * whole(t) + idle);
    around += whole(t);
  }
  return bound;
}

/// Weight gradients do not delay the rank before: the head is forwards, the way back input
/// gradients. The tail is the later of rank r's own weight gradients and what follows upstream.
Seconds zb_h1_bound(const PipelineShape& shape, std::span<const StageTime> stages) {
  const int m = shape.microbatches;
  Seconds away;
  for (const StageTime& t : stages) away += t.forward + t.input_grad;
  Seconds head;
  Seconds tail;
  Seconds bound;
  for (int r = 0; r < shape.ranks; ++r) {
    const StageTime& t = stages[static_cast<std::size_t>(r)];
    away -= t.forward + t.input_grad;
    const int drained = std::min(shape.ranks - r - 1, m);
    const int pending = std::min({r, m - drained, m - 1});  // before the last input gradient
    const int done = m - 1 - pending;
    tail = std::max(tail, (m - done) * t.weight_grad);
    const Seconds idle = idle_while_away(away, t.forward, t.input_grad + t.weight_grad,
                                         std::min(shape.ranks - r - 1, m - 1), m);
    bound =
        std::max(bound, head + m * (t.forward + t.input_grad) + done * t.weight_grad + idle + tail);
    head += t.forward;
    tail += t.input_grad;
  }
  return bound;
}

Seconds interleaved_bound(const PipelineShape& shape, std::span<const StageTime> stages) {
  const auto p = static_cast<std::size_t>(shape.ranks);
  Seconds around;
  Seconds bound;
  for (std::size_t r = 0; r < p; ++r) {
    Seconds busy;
    for (std::size_t g = r; g < stages.size(); g += p) busy += whole(stages[g]);
    bound = std::max(bound, around + shape.microbatches * busy);
    around += whole(stages[r]);
  }
  return bound;
}

}  // namespace

Seconds makespan_bound(ScheduleKind kind, const PipelineShape& shape,
                       std::span<const StageTime> stages) {
  EXPECTS(shape.ranks >= 1 && shape.microbatches >= 1);
  EXPECTS(stages.size() ==
          static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.stages_per_rank));
  switch (kind) {
    case ScheduleKind::kNone:
    case ScheduleKind::kOneFOneB:
      return one_f_one_b_bound(shape, stages);
    case ScheduleKind::kGpipe:
      return gpipe_bound(shape, stages);
    case ScheduleKind::kInterleaved:
      return interleaved_bound(shape, stages);
    case ScheduleKind::kZbH1:
      return zb_h1_bound(shape, stages);
  }
  contract_violated("EXPECTS", "a known schedule kind", __FILE__, __LINE__);
}

Seconds equal_stage_makespan(ScheduleKind kind, const PipelineShape& shape, const StageTime& rank) {
  const double m = shape.microbatches;
  const double p = shape.ranks;
  const Seconds rank_time = whole(rank);
  switch (kind) {
    case ScheduleKind::kNone:
    case ScheduleKind::kGpipe:
    case ScheduleKind::kOneFOneB:
      return (m + p - 1) * rank_time;
    case ScheduleKind::kInterleaved:
      return (m + (p - 1) / shape.stages_per_rank) * rank_time;
    case ScheduleKind::kZbH1:
      return (m + p - 1) * (rank.forward + rank.input_grad) +
             std::max(1.0, m - p + 1) * rank.weight_grad;
  }
  contract_violated("EXPECTS", "a known schedule kind", __FILE__, __LINE__);
}

}  // namespace towtank
