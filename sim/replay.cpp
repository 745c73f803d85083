// SPDX-License-Identifier: Apache-2.0
#include "sim/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/contracts.h"
#include "sim/detail/recorded_step.h"

namespace towtank {
namespace {

using detail::RecordedCall;
using detail::RecordedRank;
using detail::RecordedWork;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// Starts that nothing explains by more than this are counted.
constexpr std::int64_t kUnexplainedNs = 20'000;

class Lowering {
 public:
  enum class Meetings { kMatched, kNone };

  Lowering(const JobTrace& job, const ReplayOptions& options, std::size_t index, Meetings meetings)
      : job_(job), options_(options), meetings_(meetings) {
    out_.index = index;
    out_.name = job.ranks.front().steps.steps[index].name;
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
      ranks_.push_back(detail::recorded_rank(job.ranks[r], index));
    }
  }

  Replay run() {
    set_origin();
    add_collectives();
    for (std::size_t r = 0; r < ranks_.size(); ++r) add_rank(r);
    out_.step.tasks = std::move(builder_).build();
    return std::move(out_);
  }

 private:
  /// Tasks of one rank: where its calls begin and end, where its device work ends.
  struct Tasks {
    std::int32_t actor = 0, first = 0;
    std::vector<std::int32_t> call_begin, call_end, work;
  };

  [[nodiscard]] std::int64_t aligned(std::size_t rank, std::int64_t ns) const {
    return ns - job_.skew.offset_ns[rank];
  }

  void set_origin() {
    std::int64_t end = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::int64_t from = aligned(r, ranks_[r].begin_ns), to = aligned(r, ranks_[r].end_ns);
      origin_ = r == 0 ? from : std::min(origin_, from);
      end = r == 0 ? to : std::max(end, to);
    }
    out_.recorded = Seconds{seconds(end - origin_)};
  }

  /// One task for each matched collective of the step, before the ranks that meet in it.
  void add_collectives() {
    std::vector<std::int32_t> actors;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Actor actor;
      const Trace& trace = job_.ranks[r].trace;
      actor.first_rank = trace.rank.value_or(static_cast<int>(r));
      actor.first_replica = static_cast<int>(r);
      actors.push_back(builder_.add_actor(actor));
    }
    out_.collectives_apart = meetings_ == Meetings::kNone;
    if (out_.collectives_apart) return;
    std::int32_t number = 0;
    for (const MatchedCollective& one : job_.skew.collectives) {
      std::vector<std::int32_t> members;
      std::vector<std::pair<std::size_t, std::int32_t>> events;
      for (const auto& part : one.parts) {
        const std::int32_t event = job_.ranks[part.rank].calls[part.call].event;
        if (ranks_[part.rank].work_of.count(event) == 0) continue;
        members.push_back(actors[part.rank]);
        events.emplace_back(part.rank, event);
      }
      if (members.size() != one.parts.size()) continue;
      Task task = communication(one.wire_ns);
      task.part = number++;
      const std::int32_t id = builder_.add(task, members);
      for (const auto& where : events) meeting_.emplace(where, id);
    }
  }

  static Task communication(std::int64_t ns) {
    Task task;
    task.kind = TaskKind::kCommunication;
    task.stream = Stream::kData;
    task.component = TimeComponent::kData;
    task.label = Label::kCollective;
    task.duration = seconds(ns);
    return task;
  }

  std::int32_t delay(std::int32_t actor, std::int64_t ns, TimeComponent component, Label label) {
    Task task;
    task.kind = TaskKind::kDelay;
    task.component = component;
    task.label = label;
    task.duration = seconds(std::max<std::int64_t>(ns, 0));
    return builder_.add(task, std::span(&actor, 1));
  }
  std::int32_t host(std::int32_t actor, std::int64_t ns) {
    return delay(actor, ns, TimeComponent::kHost, Label::kHostCall);
  }

  [[nodiscard]] double slowdown(std::size_t rank) const {
    double out = 1;
    for (const Straggler& s : options_.stragglers) {
      if (job_.ranks[rank].trace.rank.value_or(static_cast<int>(rank)) == s.rank) out *= s.slowdown;
    }
    return out;
  }

  void add_rank(std::size_t r) {
    const RecordedRank& rank = ranks_[r];
    Tasks tasks;
    tasks.actor = static_cast<std::int32_t>(r);
    tasks.first = host(tasks.actor, aligned(r, rank.begin_ns) - origin_);
    tasks.call_begin.assign(rank.calls.size(), -1);
    tasks.call_end.assign(rank.calls.size(), -1);
    tasks.work.assign(rank.work.size(), -1);
    // Calls need work that they waited for, work needs calls that launched it: by time.
    std::size_t c = 0, w = 0;
    while (c < rank.calls.size() || w < rank.work.size()) {
      const bool call_next =
          w == rank.work.size() ||
          (c < rank.calls.size() && rank.calls[c].begin_ns <= rank.work[w].begin_ns);
      if (call_next) {
        add_call(rank, c++, tasks);
      } else {
        add_work(r, w++, tasks);
      }
    }
    for (std::size_t i = 0; i < rank.calls.size(); ++i) add_wait(rank, i, tasks);
  }

  void add_call(const RecordedRank& rank, std::size_t c, Tasks& tasks) {
    const RecordedCall& call = rank.calls[c];
    const std::int64_t since =
        call.after >= 0 ? rank.calls[static_cast<std::size_t>(call.after)].end_ns : rank.begin_ns;
    tasks.call_begin[c] = host(tasks.actor, call.begin_ns - since);
    builder_.depend(
        call.after >= 0 ? end_of(rank, static_cast<std::size_t>(call.after), tasks) : tasks.first,
        tasks.call_begin[c]);
  }

  /// The end of a call that waits is bound to what it waited for in add_wait.
  std::int32_t end_of(const RecordedRank& rank, std::size_t c, Tasks& tasks) {
    if (tasks.call_end[c] < 0) {
      const RecordedCall& call = rank.calls[c];
      tasks.call_end[c] = host(tasks.actor, call.waits_for >= 0 ? 0 : call.end_ns - call.begin_ns);
      builder_.depend(tasks.call_begin[c], tasks.call_end[c]);
    }
    return tasks.call_end[c];
  }

  void add_wait(const RecordedRank& rank, std::size_t c, Tasks& tasks) {
    const RecordedCall& call = rank.calls[c];
    if (call.waits_for < 0 || tasks.call_end[c] < 0) return;
    const auto w = static_cast<std::size_t>(call.waits_for);
    const std::int32_t tail = host(tasks.actor, call.end_ns - rank.work[w].end_ns);
    builder_.depend(tasks.work[w], tail);
    builder_.depend(tail, tasks.call_end[c]);
  }

  void add_work(std::size_t r, std::size_t w, Tasks& tasks) {
    const RecordedRank& rank = ranks_[r];
    const RecordedWork& work = rank.work[w];
    const auto meeting = meeting_.find({r, work.event});
    std::int32_t id = 0;
    std::int32_t begin = 0;
    if (meeting != meeting_.end()) {
      id = meeting->second;
      begin = host(tasks.actor, 0);  // this rank is there
      builder_.depend(begin, id);
    } else {
      id = begin = builder_.add(work_task(r, work), std::span(&tasks.actor, 1));
    }
    tasks.work[w] = id;
    add_reasons(rank, work, begin, tasks);
  }

  [[nodiscard]] Task work_task(std::size_t r, const RecordedWork& work) const {
    const std::int64_t ns = work.end_ns - work.begin_ns;
    if (work.collective) return communication(ns);
    Task task;
    task.kind = TaskKind::kCompute;
    task.label = Label::kKernel;
    task.duration = seconds(ns) * slowdown(r);
    return task;
  }

  /// Everything that device work waits for; the rest of its lateness behind the last of it.
  void add_reasons(const RecordedRank& rank, const RecordedWork& work, std::int32_t begin,
                   Tasks& tasks) {
    struct Reason {
      std::int32_t task;
      std::int64_t at_ns;  ///< when it let the work begin
    };
    std::vector<Reason> reasons;
    for (const std::int32_t before : {work.after_on_stream, work.after_elsewhere}) {
      if (before < 0) continue;
      const auto b = static_cast<std::size_t>(before);
      reasons.push_back({tasks.work[b], rank.work[b].end_ns});
    }
    if (work.launch >= 0) {
      const auto c = static_cast<std::size_t>(work.launch);
      const std::int32_t launched =
          delay(tasks.actor, rank.launch_ns, TimeComponent::kHost, Label::kHostGap);
      builder_.depend(tasks.call_begin[c], launched);
      reasons.push_back({launched, rank.calls[c].begin_ns + rank.launch_ns});
    }
    if (reasons.empty()) reasons.push_back({tasks.first, rank.begin_ns});
    const auto last =
        std::max_element(reasons.begin(), reasons.end(),
                         [](const Reason& a, const Reason& b) { return a.at_ns < b.at_ns; });
    const std::int64_t rest = work.begin_ns - last->at_ns;
    if (rest > 0) {
      const std::int32_t late = delay(tasks.actor, rest, TimeComponent::kHost, Label::kHostGap);
      builder_.depend(last->task, late);
      last->task = late;
    }
    if (rest > kUnexplainedNs) {
      ++out_.unexplained;
      out_.unexplained_time = out_.unexplained_time + Seconds{seconds(rest)};
    }
    for (const Reason& reason : reasons) builder_.depend(reason.task, begin);
  }

  const JobTrace& job_;
  const ReplayOptions& options_;
  Meetings meetings_;
  std::vector<RecordedRank> ranks_;
  std::map<std::pair<std::size_t, std::int32_t>, std::int32_t> meeting_;  ///< rank, event
  TaskGraphBuilder builder_;
  std::int64_t origin_ = 0;
  Replay out_;
};

bool can_finish(const TaskGraph& graph) {
  std::vector<std::int32_t> open = graph.predecessors;
  std::vector<std::size_t> ready;
  for (std::size_t t = 0; t < open.size(); ++t) {
    if (open[t] == 0) ready.push_back(t);
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    for (const std::int32_t next : graph.after(ready[done])) {
      if (--open[static_cast<std::size_t>(next)] == 0) {
        ready.push_back(static_cast<std::size_t>(next));
      }
    }
  }
  return done == open.size();
}

/// The step whose length, over all ranks, is the median.
std::size_t median_step(const JobTrace& job, std::size_t steps) {
  std::vector<std::pair<std::int64_t, std::size_t>> lengths;
  for (std::size_t s = 0; s < steps; ++s) {
    std::int64_t longest = 0;
    for (const RankTrace& rank : job.ranks) {
      longest = std::max(longest, rank.steps.steps[s].length_ns());
    }
    lengths.emplace_back(longest, s);
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths[(lengths.size() - 1) / 2].second;
}

}  // namespace

std::size_t replayable_steps(const JobTrace& job) {
  std::size_t out = job.ranks.front().steps.steps.size();
  for (const RankTrace& rank : job.ranks) {
    out = std::min(out, rank.steps.steps.size());
    if (rank.joins.device_events == 0) return 0;
  }
  return out;
}

Replay replay(const JobTrace& job, const ReplayOptions& options) {
  const std::size_t steps = replayable_steps(job);
  EXPECTS(steps > 0 && options.step.value_or(0) < steps);
  const std::size_t index = options.step.value_or(median_step(job, steps));
  Replay out = Lowering(job, options, index, Lowering::Meetings::kMatched).run();
  if (can_finish(out.step.tasks)) return out;
  return Lowering(job, options, index, Lowering::Meetings::kNone).run();
}

}  // namespace towtank
