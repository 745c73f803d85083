// SPDX-License-Identifier: Apache-2.0
#include "sim/export/chrome_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace towtank {
namespace {

using Event = nlohmann::ordered_json;

constexpr double kMicro = 1e6;
constexpr int kLanes = 64;  ///< threads kept for one stream
constexpr int kLinkProcess = 1'000'000;

/// One slice of a track before it is written.
struct Slice {
  double start = 0, end = 0;
  std::string name;
  std::size_t task = 0;
  bool receive = false;
};

class Trace {
 public:
  Trace(const LoweredStep& step, const StepResult& result) : step_(step), result_(result) {}

  std::string text(int counters) {
    for (std::size_t a = 0; a < step_.tasks.actors.size(); ++a) add_actor(static_cast<int>(a));
    add_counters(counters);
    std::string out = "[\n";
    for (std::size_t i = 0; i < events_.size(); ++i) {
      out += events_[i].dump();
      out += i + 1 < events_.size() ? ",\n" : "\n";
    }
    return out + "]\n";
  }

 private:
  void name(const char* what, int process, int thread, const std::string& text) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", process},
                       {"tid", thread},
                       {"args", {{"name", text}}}});
  }

  const std::vector<std::vector<Slice>>& slices_of_actors(Stream stream);
  void add_actor(int actor);
  void add_compute(int actor, const std::vector<Slice>& slices);
  void add_lanes(int actor, Stream stream, std::vector<Slice> slices);
  void add_slice(const Slice&, int process, int thread);
  void add_counters(int most);

  const LoweredStep& step_;
  const StepResult& result_;
  std::vector<Event> events_;
  std::map<Stream, std::vector<std::vector<Slice>>> slices_;
};

const std::vector<std::vector<Slice>>& Trace::slices_of_actors(Stream stream) {
  const auto [at, added] = slices_.try_emplace(stream);
  if (!added) return at->second;
  at->second.resize(step_.tasks.actors.size());
  for (std::size_t t = 0; t < step_.tasks.tasks.size(); ++t) {
    const Task& task = step_.tasks.tasks[t];
    const double start = result_.times.start[t];
    const double end = result_.times.end[t];
    if (task.stream != stream || task.kind == TaskKind::kDelay || end <= start) continue;
    const auto members = step_.tasks.members_of(task);
    for (std::size_t m = 0; m < members.size(); ++m) {
      const bool receive = task.label == Label::kSend && m == 1;
      std::string name = task_text(task);
      if (receive) name.replace(0, 4, "receive");
      at->second[static_cast<std::size_t>(members[m])].push_back(
          {start, end, std::move(name), t, receive});
    }
  }
  for (auto& slices : at->second) {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Slice& a, const Slice& b) { return a.start < b.start; });
  }
  return at->second;
}

void Trace::add_slice(const Slice& s, int process, int thread) {
  const Task& task = step_.tasks.tasks[s.task];
  Event args;
  if (task.stage >= 0) args["stage"] = task.stage;
  if (task.microbatch >= 0) args["microbatch"] = task.microbatch;
  if (task.kind == TaskKind::kCommunication) {
    args["alone_us"] = kMicro * task.lone();
    double bytes = 0;
    for (const Flow& f : step_.tasks.flows_of(task)) bytes = std::max(bytes, f.bytes);
    args["link_bytes"] = bytes;
  }
  events_.push_back({{"ph", "X"},
                     {"name", s.name},
                     {"cat", kStreamNames[static_cast<std::size_t>(task.stream)]},
                     {"pid", process},
                     {"tid", thread},
                     {"ts", kMicro * s.start},
                     {"dur", kMicro * (s.end - s.start)},
                     {"args", args}});
  if (task.label != Label::kSend) return;
  Event flow{{"ph", s.receive ? "f" : "s"},
             {"name", "send"},
             {"cat", "pp"},
             {"id", s.task},
             {"pid", process},
             {"tid", thread},
             {"ts", kMicro * (s.receive ? 0.5 * (s.start + s.end) : s.start)}};
  if (s.receive) flow["bp"] = "e";
  events_.push_back(std::move(flow));
}

/// An action that has several parts is a slice around them: the stream runs one action at a time.
void Trace::add_compute(int actor, const std::vector<Slice>& slices) {
  const auto same = [&](const Slice& a, const Slice& b) {
    const Task& x = step_.tasks.tasks[a.task];
    const Task& y = step_.tasks.tasks[b.task];
    return std::tie(x.label, x.stage, x.microbatch) == std::tie(y.label, y.stage, y.microbatch);
  };
  for (std::size_t i = 0; i < slices.size();) {
    std::size_t j = i + 1;
    while (j < slices.size() && same(slices[i], slices[j])) ++j;
    if (j > i + 1) {
      Slice whole = slices[i];
      whole.end = slices[j - 1].end;
      add_slice(whole, actor, 0);
    }
    for (std::size_t k = i; k < j; ++k) {
      Slice part = slices[k];
      if (j > i + 1) part.name += " part " + std::to_string(k - i);
      add_slice(part, actor, 0);
    }
    i = j;
  }
}

/// Slices of a track may not overlap: those that do go on the next free thread of the stream.
void Trace::add_lanes(int actor, Stream stream, std::vector<Slice> slices) {
  std::vector<double> free;
  std::vector<std::vector<Slice>> lanes;
  for (Slice& s : slices) {
    std::size_t lane = 0;
    while (lane < free.size() && free[lane] > s.start) ++lane;
    if (lane == free.size()) {
      free.push_back(0);
      lanes.emplace_back();
    }
    free[lane] = s.end;
    lanes[lane].push_back(std::move(s));
  }
  const std::string stream_name(kStreamNames[static_cast<std::size_t>(stream)]);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const int thread = static_cast<int>(stream) * kLanes + static_cast<int>(lane);
    name("thread_name", actor, thread,
         lane == 0 ? stream_name : stream_name + " " + std::to_string(lane + 1));
    for (const Slice& s : lanes[lane]) add_slice(s, actor, thread);
  }
}

void Trace::add_actor(int actor) {
  const Actor& a = step_.tasks.actors[static_cast<std::size_t>(actor)];
  name("process_name", actor, 0, a.name());
  name("thread_name", actor, 0, "compute");
  const auto at = static_cast<std::size_t>(actor);
  add_compute(actor, slices_of_actors(Stream::kCompute)[at]);
  for (std::size_t s = 1; s < kStreamCount; ++s) {
    add_lanes(actor, static_cast<Stream>(s), slices_of_actors(static_cast<Stream>(s))[at]);
  }
}

void Trace::add_counters(int most) {
  std::map<std::int32_t, std::map<double, double>> changes;  // link, time: rate that begins
  for (std::size_t i = 0; i < result_.links.size() && i < static_cast<std::size_t>(most); ++i) {
    changes[result_.links[i].link];
  }
  for (std::size_t t = 0; t < step_.tasks.tasks.size(); ++t) {
    const Task& task = step_.tasks.tasks[t];
    const double start = result_.times.start[t] + task.duration;
    const double end = result_.times.end[t];
    if (end <= start) continue;
    for (const Flow& flow : step_.tasks.flows_of(task)) {
      for (const auto link : step_.network.routes[static_cast<std::size_t>(flow.route)]) {
        const auto at = changes.find(link);
        if (at == changes.end()) continue;
        at->second[start] += flow.bytes / (end - start);
        at->second[end] -= flow.bytes / (end - start);
      }
    }
  }
  if (changes.empty()) return;
  name("process_name", kLinkProcess, 0, "links");
  constexpr double kGiga = 1e9;
  for (const auto& [link, steps] : changes) {
    double rate = 0;
    for (const auto& [time, change] : steps) {
      rate += change;
      events_.push_back({{"ph", "C"},
                         {"name", step_.network.links[static_cast<std::size_t>(link)].name},
                         {"pid", kLinkProcess},
                         {"ts", kMicro * time},
                         {"args", {{"GB/s", std::max(0.0, rate / kGiga)}}}});
    }
  }
}

}  // namespace

std::string chrome_trace(const LoweredStep& step, const StepResult& result,
                         const ChromeTraceOptions& options) {
  return Trace(step, result).text(options.counters);
}

}  // namespace towtank
