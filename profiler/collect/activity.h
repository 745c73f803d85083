// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a device did, as its driver reports it: one record an activity, before anything is joined.
///
///   correlation   number of the launch that caused it; all nodes of a graph share that of the
///                 graph's launch
///   mark          number that the program pushed before the launch: which layer, which pass
///
/// Times are nanoseconds of the driver's clock: differences mean something, values do not.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace towtank {

enum class ActivityKind : std::uint8_t {
  kKernel,
  kCopy,
  kSet,
  kSynchronization,  ///< a wait of the host
  kOverhead,         ///< time that the recording itself took
};

struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;  ///< 0: none
  std::uint32_t device = 0, context = 0, stream = 0;
  std::uint32_t graph = 0;  ///< 0: not launched from a graph
  std::uint64_t graph_node = 0;
  std::int64_t bytes = 0;  ///< copies and sets
  std::uint32_t name = 0;  ///< index into ActivityRecording::names
  std::optional<std::uint64_t> mark;
  friend bool operator==(const Activity&, const Activity&) = default;
};

/// The innermost mark that stood when a launch was made.
struct MarkLink {
  std::uint32_t correlation = 0;
  std::uint64_t mark = 0;
  friend bool operator==(const MarkLink&, const MarkLink&) = default;
};

/// As the driver delivered it; in no order.
struct ActivityRecording {
  std::vector<Activity> activities;
  std::vector<MarkLink> links;
  std::vector<std::string> names{""};
  long lost = 0;        ///< records that the driver had no buffer for
  long refused = 0;     ///< buffers that it asked for while all were in use
  long beyond = 0;      ///< records beyond the limit of the recording
  long unreadable = 0;  ///< records of an unknown or broken form
};

}  // namespace towtank
