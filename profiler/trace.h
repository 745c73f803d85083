// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Events as a profiler recorded them, one process (rank) of a job: what importers of traces make,
/// and what profiler/trace_analysis.h reads.
///
/// Times are whole nanoseconds of one clock, which the trace names: two ranks may be laid beside
/// each other only on kEpoch, or after their clocks have been aligned. Nothing is derived here: an
/// event keeps the ids by which it can be joined to others, and -1 where the file states none.
///
///   device event    kKernel, kCopy, kFill: ran on a device stream
///   host call       a runtime or driver call; its `correlation` is that of the device work that
///                   it launched
///   cpu op          an operator of the framework; on device events, calls and ops `external_id`
///                   names the op
///
/// A trace of whole ops without times (an execution trace) has `timed` false and durations of 0.
///
/// Not recorded: counters, instants, flows (they repeat correlations), call stacks.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/collective.h"
#include "profiler/profile.h"

namespace towtank {

enum class TraceCategory : std::uint8_t {
  kCpuOp,
  kAnnotation,  ///< a range that the program or the framework marked on the host
  kModule,      ///< a forward of a module of the network
  kHostCall,    ///< runtime and driver calls
  kKernel,
  kCopy,
  kFill,
  kDeviceSync,        ///< a wait that the profiler recorded for a stream or device
  kDeviceAnnotation,  ///< a host annotation as the profiler projected it on a stream
};
inline constexpr std::size_t kTraceCategoryCount = 9;
inline constexpr std::array<std::string_view, kTraceCategoryCount> kTraceCategoryNames{
    "cpu op", "annotation", "module",      "host call",        "kernel",
    "copy",   "fill",       "device sync", "device annotation"};

/// Whether an event of the category ran on a device stream.
[[nodiscard]] constexpr bool on_device(TraceCategory c) {
  return c == TraceCategory::kKernel || c == TraceCategory::kCopy || c == TraceCategory::kFill;
}

enum class TraceClock : std::uint8_t {
  kEpoch,    ///< since 1970-01-01
  kCapture,  ///< since the start of the capture, or another origin of this file alone
};

/// Index into Trace::texts.
using TextId = std::int32_t;

struct TraceEvent {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;  ///< >= 0
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;
  std::int64_t sequence = -1;  ///< of an autograd function: backward ops have their forward op's
  std::int64_t bytes = -1;     ///< of a copy or fill
  TextId name = 0;
  std::int32_t track = 0;        ///< into Trace::tracks
  std::int32_t inputs = -1;      ///< into Trace::inputs
  std::int32_t collective = -1;  ///< into Trace::collectives
  TraceCategory category = TraceCategory::kCpuOp;

  [[nodiscard]] std::int64_t end_ns() const { return start_ns + duration_ns; }
};

/// What runs one event after the other: a host thread, or a stream of a device.
struct TraceTrack {
  std::string process, thread;  ///< as the file names them
  int device = -1;              ///< of a stream
  std::int64_t stream = -1;
};

/// One argument of an op.
struct TraceInput {
  std::string type;  ///< "float", "c10::BFloat16", "TensorList", "Scalar"
  std::vector<std::int64_t> shape;
  std::vector<std::vector<std::int64_t>> list;  ///< shapes of a tensor list, where recorded
  std::string value;                            ///< of a scalar or list of scalars: "[1, 1]"
};

/// What the framework says of a collective. Elements and sizes are -1 where it says nothing.
struct TraceCollective {
  std::string name;  ///< "allreduce", "_allgather_base"
  std::string dtype;
  std::string group;  ///< name of the process group
  std::vector<int> ranks;
  std::int64_t in_elements = -1, out_elements = -1;
  std::int64_t sequence = -1;  ///< counts the collectives of a group, equal on all its ranks
  int group_size = -1;
};

struct TraceDevice {
  int id = 0;
  std::string name;
  std::int64_t memory_bytes = 0;
};

struct Trace {
  std::string name;    ///< file, as the user gave it
  std::string format;  ///< "Kineto", "Chakra", "Nsight Systems"
  TraceClock clock = TraceClock::kCapture;
  bool timed = true;
  std::optional<int> rank, world_size;
  std::vector<TraceDevice> devices;
  std::vector<std::string> software;  ///< "CUDA 12.4": versions that the file states
  std::deque<std::string> texts;
  std::vector<TraceTrack> tracks;
  std::vector<TraceEvent> events;  ///< by start; at one start longer ones first
  std::vector<std::vector<TraceInput>> inputs;
  std::vector<TraceCollective> collectives;
  ImportStats stats;

  [[nodiscard]] const std::string& text(TextId id) const {
    return texts[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const std::string& name_of(const TraceEvent& event) const {
    return text(event.name);
  }
};

/// Puts events in the order that Trace::events promises.
void sort_events(Trace&);

/// Adds texts to a trace, each once. The trace must outlive it and stay where it is.
class TextIndex {
 public:
  explicit TextIndex(Trace& trace) : trace_(&trace) {}
  [[nodiscard]] TextId id(std::string_view text);
  /// nullopt if the text was not added.
  [[nodiscard]] std::optional<TextId> find(std::string_view text) const;

 private:
  Trace* trace_;
  std::unordered_map<std::string_view, TextId> ids_;
};

}  // namespace towtank
