// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What must run in one step, and after what: the same tasks that the closed form times, written
/// out. Times are found by longest_path (every communication alone on its links) or by simulate
/// (links shared).
///
///   kind           takes
///   compute        `duration` on its actor's compute stream
///   communication  `duration` (launch and latency, a timer), then its flows; alone they take
///                  `transfer`
///   delay          `duration`: host gaps, buckets becoming ready, joins (zero)
///
/// An actor is a set of ranks that behave alike: one pipeline rank of one replica, or of all
/// replicas folded together (lower.h). A stream runs one task at a time where the dependencies say
/// so; pipeline sends of one actor may overlap, as they do in the closed form.
///
/// A flow moves bytes over one route of the Network. Its rate is the most that it reaches alone,
/// bytes / transfer. Bytes are those of one copy of a folded link, not of one device.
///
/// Not modelled: sharing of a device between tasks of one actor (interference is inside durations).
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace towtank {

enum class TaskKind : std::uint8_t { kCompute, kCommunication, kDelay };

enum class Stream : std::uint8_t { kCompute, kTensor, kContext, kExpert, kPipeline, kData };
inline constexpr std::size_t kStreamCount = 6;
inline constexpr std::array<std::string_view, kStreamCount> kStreamNames{"compute", "tp", "cp",
                                                                         "ep",      "pp", "dp"};

/// What time on the critical path is spent on.
enum class TimeComponent : std::uint8_t {
  kCompute,
  kRecompute,
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kData,
  kOptimizer,
  kHost,
  kInput,
};
inline constexpr std::size_t kComponentCount = 10;
inline constexpr std::array<std::string_view, kComponentCount> kComponentNames{
    "compute",       "recompute", "tensor comm", "context comm", "expert comm",
    "pipeline comm", "data comm", "optimizer",   "host gaps",    "input"};

/// What a task is, for reports and traces.
enum class Label : std::uint8_t {
  kForward,
  kBackward,
  kInputGrad,
  kWeightGrad,
  kSend,
  kBucketReady,
  kReduce,
  kGather,
  kTiedReduce,
  kNorm,
  kOptimizer,
  kExchange,  ///< tensor, context or expert collective between nodes
  kHostGap,
  kInput,
  kJoin,
  kKernel,      ///< replay: a kernel, copy or fill of a trace
  kCollective,  ///< replay: a collective of a trace
  kHostCall,    ///< replay: a call of the host, and what it does before the next one
};
inline constexpr std::array<std::string_view, 18> kLabelNames{
    "F",        "B",      "I",    "W",         "send",       "bucket ready",
    "reduce",   "gather", "tied", "grad norm", "optimizer",  "exchange",
    "host gap", "input",  "join", "kernel",    "collective", "host call"};

/// Seconds of one task by component; sums to its duration.
using TimeSplit = std::array<double, kComponentCount>;

struct Flow {
  double bytes = 0;        ///< > 0
  double rate = 0;         ///< bytes/s alone; > 0
  std::int32_t route = 0;  ///< into Network::routes
};

struct Task {
  TaskKind kind = TaskKind::kDelay;
  Stream stream = Stream::kCompute;
  TimeComponent component = TimeComponent::kCompute;
  Label label = Label::kJoin;
  std::int32_t job = 0;  ///< several jobs may share a network
  double duration = 0;   ///< s, >= 0
  double transfer = 0;   ///< s alone on its links, >= 0; communication only
  std::int32_t first_flow = 0, flows = 0;
  std::int32_t first_member = 0, members = 0;  ///< actors; of a send: the sender, the receiver
  std::int32_t stage = -1, microbatch = -1;
  std::int32_t part = -1;   ///< bucket of a reduction
  std::int32_t split = -1;  ///< into TaskGraph::splits; -1: all `component`

  [[nodiscard]] double lone() const { return duration + transfer; }
};

struct Actor {
  int pipeline_rank = 0;
  int first_replica = 0;
  int replicas = 1;     ///< folded together
  int ranks = 1;        ///< in all of them
  int first_rank = 0;   ///< global rank
  double slowdown = 1;  ///< of its computation
  [[nodiscard]] std::string name() const;
};

struct TaskGraph {
  std::vector<Actor> actors;
  std::vector<Task> tasks;
  std::vector<Flow> flows;
  std::vector<std::int32_t> members;  ///< actors of tasks
  std::vector<TimeSplit> splits;
  // Successors of task i: successors[first_successor[i] .. first_successor[i + 1]).
  std::vector<std::int32_t> first_successor, successors;
  std::vector<std::int32_t> predecessors;  ///< number of each task's

  [[nodiscard]] std::span<const std::int32_t> after(std::size_t task) const {
    return std::span(successors)
        .subspan(static_cast<std::size_t>(first_successor[task]),
                 static_cast<std::size_t>(first_successor[task + 1] - first_successor[task]));
  }
  [[nodiscard]] std::span<const std::int32_t> members_of(const Task& task) const {
    return std::span(members).subspan(static_cast<std::size_t>(task.first_member),
                                      static_cast<std::size_t>(task.members));
  }
  [[nodiscard]] std::span<const Flow> flows_of(const Task& task) const {
    return std::span(flows).subspan(static_cast<std::size_t>(task.first_flow),
                                    static_cast<std::size_t>(task.flows));
  }
};

/// A link, or a set of links that carry the same load at the same times, simulated as one.
struct SharedLink {
  std::string name;     ///< "node 0 up"
  int level = 0;        ///< of the NetworkView
  bool up = true;       ///< away from the devices; false: towards them
  double capacity = 0;  ///< bytes/s of one copy: the hardware rate; > 0
  int copies = 1;       ///< links that it stands for
};

/// What others send over one link as long as the step lasts: one flow after the other, which shares
/// the link as any flow does. A folded link carries it in each copy.
struct LinkTraffic {
  std::int32_t link = 0;
  double bytes = 0;        ///< of one flow; > 0
  double rate = 0;         ///< bytes/s, the most that it takes; > 0
  double mean_gap = 0;     ///< s from the end of one to the start of the next, exponentially
                           ///< distributed, one before the first too; 0: none
  std::uint64_t seed = 0;  ///< of the gaps
};

struct Network {
  std::vector<SharedLink> links;
  std::vector<std::vector<std::int32_t>> routes;  ///< links that a flow shares; may be empty
  std::vector<LinkTraffic> background;
};

/// Adds tasks and dependencies one by one, then makes the graph.
class TaskGraphBuilder {
 public:
  /// Sets the task's members. Its flows are those of add_flows, which tasks may share.
  std::int32_t add(const Task& task, std::span<const std::int32_t> members);
  std::int32_t add_flows(std::span<const Flow> flows);
  std::int32_t add_split(const TimeSplit& split);
  void depend(std::int32_t before, std::int32_t after);
  std::int32_t add_actor(const Actor& actor);
  [[nodiscard]] const Task& task(std::int32_t id) const {
    return graph_.tasks[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] TaskGraph build() &&;

 private:
  TaskGraph graph_;
  std::vector<std::array<std::int32_t, 2>> edges_;
};

/// "2F0", "reduce 3", "send 2F0": short names for people.
[[nodiscard]] std::string task_text(const Task&);

}  // namespace towtank
