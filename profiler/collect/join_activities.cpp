// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/join_activities.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace towtank {
namespace {

using Severity = ImportStats::Severity;

Seconds seconds_of(std::int64_t ns) { return Seconds{static_cast<double>(ns) * 1e-9}; }

bool on_device(const Activity& a) {
  switch (a.kind) {
    case ActivityKind::kKernel:
    case ActivityKind::kCopy:
    case ActivityKind::kSet:
      return true;
    case ActivityKind::kSynchronization:
    case ActivityKind::kOverhead:
      return false;
  }
  return false;  // not reached: the switch is exhaustive
}

auto time_order(const Activity& a) {
  return std::tuple(a.start_ns, a.stream, a.correlation, a.graph_node, a.end_ns);
}

/// Time covered by intervals that come in order of their starts.
class Cover {
 public:
  void add(const Activity& a) {
    const std::int64_t from = any_ ? std::max(a.start_ns, last_) : a.start_ns;
    if (!any_) first_ = a.start_ns;
    covered_ += std::max<std::int64_t>(0, a.end_ns - from);
    last_ = any_ ? std::max(last_, a.end_ns) : a.end_ns;
    any_ = true;
  }
  [[nodiscard]] Seconds covered() const { return seconds_of(covered_); }
  [[nodiscard]] Seconds span() const { return any_ ? seconds_of(last_ - first_) : Seconds{}; }

 private:
  bool any_ = false;
  std::int64_t first_ = 0, last_ = 0, covered_ = 0;
};

/// Activities that have times, sorted.
std::vector<Activity> sound_activities(const ActivityRecording& recording, ImportStats& stats) {
  std::vector<Activity> out;
  out.reserve(recording.activities.size());
  long out_of_order = 0;
  std::int64_t latest = 0;
  for (const Activity& a : recording.activities) {
    ++stats.rows_read;
    if (a.start_ns <= 0 || a.end_ns <= 0) {
      stats.add("records without times", Severity::kLoss);
      continue;
    }
    if (a.end_ns < a.start_ns) {
      stats.add("records that end before they start", Severity::kError);
      continue;
    }
    if (a.start_ns < latest) ++out_of_order;
    latest = std::max(latest, a.start_ns);
    out.push_back(a);
  }
  stats.add("records out of order", Severity::kInfo, out_of_order);
  std::sort(out.begin(), out.end(),
            [](const Activity& a, const Activity& b) { return time_order(a) < time_order(b); });
  stats.rows_kept = static_cast<long>(out.size());
  return out;
}

/// The mark of each launch. Of several, the last one delivered: CUPTI writes the innermost last.
std::map<std::uint32_t, std::uint64_t> marks_of(const ActivityRecording& recording,
                                                ImportStats& stats) {
  std::map<std::uint32_t, std::uint64_t> out;
  for (const MarkLink& link : recording.links) {
    const auto [at, fresh] = out.try_emplace(link.correlation, link.mark);
    if (fresh || at->second == link.mark) continue;
    stats.add("several marks of one launch", Severity::kInfo);
    at->second = link.mark;
  }
  return out;
}

void count_losses(const ActivityRecording& recording, ImportStats& stats) {
  stats.add("records lost by the driver", Severity::kLoss, recording.lost);
  stats.add("buffers refused: all were in use", Severity::kLoss, recording.refused);
  stats.add("records beyond the limit of the recording", Severity::kLoss, recording.beyond);
  stats.add("unreadable records", Severity::kError, recording.unreadable);
}

struct MarkSum {
  MarkedTime time;
  Cover cover;
};

void add_to_mark(MarkSum& sum, const Activity& a) {
  sum.cover.add(a);
  switch (a.kind) {
    case ActivityKind::kKernel:
      ++sum.time.kernels;
      sum.time.kernel += seconds_of(a.end_ns - a.start_ns);
      break;
    case ActivityKind::kCopy:
      ++sum.time.copies;
      sum.time.copied += Bytes{a.bytes};
      break;
    case ActivityKind::kSet:
      ++sum.time.sets;
      break;
    case ActivityKind::kSynchronization:
    case ActivityKind::kOverhead:
      break;
  }
}

}  // namespace

JoinedActivities join_activities(const ActivityRecording& recording) {
  JoinedActivities out;
  out.activities = sound_activities(recording, out.stats);
  const std::map<std::uint32_t, std::uint64_t> marks = marks_of(recording, out.stats);
  std::map<std::uint64_t, MarkSum> sums;
  std::map<std::uint32_t, bool> active;
  Cover all;
  long without = 0;
  for (Activity& a : out.activities) {
    if (a.kind == ActivityKind::kOverhead) out.overhead += seconds_of(a.end_ns - a.start_ns);
    if (!on_device(a)) continue;
    all.add(a);
    const auto mark = marks.find(a.correlation);
    if (mark == marks.end()) {
      if (a.kind == ActivityKind::kKernel) ++without;
      continue;
    }
    active[a.correlation] = true;
    a.mark = mark->second;
    add_to_mark(sums[mark->second], a);
  }
  out.stats.add("kernels without a mark", Severity::kInfo, without);
  out.stats.add("marks without an activity", Severity::kInfo,
                static_cast<long>(marks.size() - active.size()));
  count_losses(recording, out.stats);
  for (auto& [mark, sum] : sums) {
    sum.time.mark = mark;
    sum.time.busy = sum.cover.covered();
    sum.time.span = sum.cover.span();
    out.marks.push_back(sum.time);
  }
  out.busy = all.covered();
  return out;
}

}  // namespace towtank
