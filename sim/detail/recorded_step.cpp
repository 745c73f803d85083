// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/recorded_step.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

namespace towtank::detail {
namespace {

/// Old traces have whole microseconds: two ends that are one may differ by that.
constexpr std::int64_t kClockNs = 1'000;
/// Work of another stream explains a start that follows no later than this upon it.
constexpr std::int64_t kEventNs = 20'000;
/// Work of another stream that is looked at, from its end.
constexpr std::size_t kLookBack = 64;
/// What calls that can wait for the device have in their names, on NVIDIA and AMD.
constexpr std::array<std::string_view, 4> kWaiting{"Synchronize", "Memcpy", "Malloc", "Free"};

bool may_wait(std::string_view name) {
  return std::any_of(kWaiting.begin(), kWaiting.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

class Recording {
 public:
  Recording(const RankTrace& rank, const TraceStep& step) : rank_(rank), step_(step) {}

  RecordedRank run() {
    add_work();
    add_calls();
    set_launches();
    set_waits();
    set_order_of_calls();
    set_order_of_work();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const TraceEvent& event(std::int32_t e) const {
    return rank_.trace.events[static_cast<std::size_t>(e)];
  }
  [[nodiscard]] std::int32_t launch_event(std::int32_t e) const {
    return rank_.joins.launch[static_cast<std::size_t>(e)];
  }

  void add_work() {
    for (const std::int32_t e : step_.events) {
      out_.work_of.emplace(e, static_cast<std::int32_t>(out_.work.size()));
      const TraceEvent& work = event(e);
      out_.work.push_back({e, work.start_ns, work.end_ns(),
                           rank_.is_collective[static_cast<std::size_t>(e)], -1, -1, -1});
      out_.end_ns = out_.work.size() == 1 ? work.end_ns() : std::max(out_.end_ns, work.end_ns());
    }
  }

  /// Calls that launched work of the step, and those in its time that can wait.
  void add_calls() {
    std::vector<std::int32_t> calls;
    std::int64_t begin = out_.work.empty() ? 0 : out_.work.front().begin_ns;
    for (const RecordedWork& work : out_.work) {
      if (launch_event(work.event) < 0) continue;
      calls.push_back(launch_event(work.event));
      begin = std::min(begin, event(calls.back()).start_ns);
    }
    const bool annotated = step_.host_end_ns > step_.host_begin_ns;
    out_.begin_ns = annotated ? std::min(begin, step_.host_begin_ns) : begin;
    for (std::size_t i = 0; i < rank_.trace.events.size(); ++i) {
      const TraceEvent& call = rank_.trace.events[i];
      if (call.category != TraceCategory::kHostCall || call.start_ns < out_.begin_ns ||
          call.end_ns() > out_.end_ns + kClockNs) {
        continue;
      }
      if (may_wait(rank_.trace.name_of(call))) calls.push_back(static_cast<std::int32_t>(i));
    }
    std::sort(calls.begin(), calls.end());  // events are by start
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    for (const std::int32_t c : calls) {
      call_of_.emplace(c, static_cast<std::int32_t>(out_.calls.size()));
      out_.calls.push_back({event(c).start_ns, event(c).end_ns(), -1, -1});
      waiting_.push_back(may_wait(rank_.trace.name_of(event(c))));
    }
  }

  void set_launches() {
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (RecordedWork& work : out_.work) {
      const auto call = call_of_.find(launch_event(work.event));
      if (call == call_of_.end()) continue;
      const std::int64_t latency =
          work.begin_ns - out_.calls[static_cast<std::size_t>(call->second)].begin_ns;
      // Work that began before its launch has a clock of its own.
      if (latency < 0) continue;
      work.launch = call->second;
      shortest = std::min(shortest, latency);
    }
    out_.launch_ns = shortest == std::numeric_limits<std::int64_t>::max() ? 0 : shortest;
  }

  void set_waits() {
    std::vector<std::int32_t> by_end(out_.work.size());
    std::iota(by_end.begin(), by_end.end(), 0);
    std::stable_sort(by_end.begin(), by_end.end(), [&](std::int32_t a, std::int32_t b) {
      return work(a).end_ns < work(b).end_ns;
    });
    for (std::size_t c = 0; c < out_.calls.size(); ++c) {
      if (!waiting_[c]) continue;
      RecordedCall& call = out_.calls[c];
      auto after =
          std::upper_bound(by_end.begin(), by_end.end(), call.end_ns + kClockNs,
                           [&](std::int64_t t, std::int32_t w) { return t < work(w).end_ns; });
      while (after != by_end.begin()) {
        const std::int32_t w = *--after;
        if (work(w).end_ns <= call.begin_ns) break;
        // Launched by this call or before it.
        if (work(w).launch >= 0 && work(w).launch <= static_cast<std::int32_t>(c)) {
          call.waits_for = w;
          break;
        }
      }
    }
  }

  [[nodiscard]] const RecordedWork& work(std::int32_t w) const {
    return out_.work[static_cast<std::size_t>(w)];
  }

  void set_order_of_calls() {
    std::vector<std::int32_t> by_end(out_.calls.size());
    std::iota(by_end.begin(), by_end.end(), 0);
    std::stable_sort(by_end.begin(), by_end.end(), [&](std::int32_t a, std::int32_t b) {
      return out_.calls[static_cast<std::size_t>(a)].end_ns <
             out_.calls[static_cast<std::size_t>(b)].end_ns;
    });
    std::size_t ended = 0;
    for (std::size_t c = 0; c < out_.calls.size(); ++c) {
      while (ended < by_end.size() && by_end[ended] < static_cast<std::int32_t>(c) &&
             out_.calls[static_cast<std::size_t>(by_end[ended])].end_ns <= out_.calls[c].begin_ns) {
        ++ended;
      }
      if (ended > 0) out_.calls[c].after = by_end[ended - 1];
    }
  }

  void set_order_of_work() {
    std::map<std::int32_t, std::vector<std::int32_t>> on;  // by track
    for (std::size_t w = 0; w < out_.work.size(); ++w) {
      RecordedWork& next = out_.work[w];
      const std::int32_t track = event(next.event).track;
      std::vector<std::int32_t>& own = on[track];
      if (!own.empty()) next.after_on_stream = own.back();
      for (const auto& [other, list] : on) {
        if (other != track) consider(next, last_before(list, next));
      }
      own.push_back(static_cast<std::int32_t>(w));
    }
  }

  /// The last of a stream's work that ended before `next` began and was launched before it.
  [[nodiscard]] std::int32_t last_before(const std::vector<std::int32_t>& list,
                                         const RecordedWork& next) const {
    const std::size_t tried = std::min<std::size_t>(list.size(), kLookBack);
    for (std::size_t i = 1; i <= tried; ++i) {
      const RecordedWork& before = work(list[list.size() - i]);
      const bool launched_later = next.launch >= 0 && before.launch >= next.launch;
      if (before.end_ns <= next.begin_ns + kClockNs && !launched_later) {
        return list[list.size() - i];
      }
    }
    return -1;
  }

  /// Whether work follows upon `last` of another stream: for a collective whenever that
  /// had ended (its stream waits for the other's work), else if nothing known explains its start.
  void consider(RecordedWork& next, std::int32_t last) const {
    if (last < 0) return;
    const RecordedWork& before = work(last);
    std::int64_t known = out_.begin_ns;
    if (next.after_on_stream >= 0) known = std::max(known, work(next.after_on_stream).end_ns);
    if (next.launch >= 0) {
      known = std::max(known,
                       out_.calls[static_cast<std::size_t>(next.launch)].begin_ns + out_.launch_ns);
    }
    const bool explains = before.end_ns > known && next.begin_ns - before.end_ns <= kEventNs;
    if (!explains && !next.collective) return;
    if (next.after_elsewhere >= 0 && work(next.after_elsewhere).end_ns >= before.end_ns) return;
    next.after_elsewhere = last;
  }

  const RankTrace& rank_;
  const TraceStep& step_;
  std::unordered_map<std::int32_t, std::int32_t> call_of_;
  std::vector<bool> waiting_;
  RecordedRank out_;
};

}  // namespace

RecordedRank recorded_rank(const RankTrace& rank, std::size_t step) {
  return Recording(rank, rank.steps.steps[step]).run();
}

}  // namespace towtank::detail
