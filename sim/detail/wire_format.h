// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What passes between towtank and towtank-sim: one request, one reply, in the byte order of the
/// machine that runs both. A message is its length (8 bytes), then its fields; arrays are their
/// count (8 bytes), then their values.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/longest_path.h"

namespace towtank::detail {

/// The part of a task graph and a network that the engine reads.
struct SimulationRequest {
  bool contention = true;
  std::vector<double> duration;                 ///< by task
  std::vector<std::int32_t> first_flow, flows;  ///< by task
  std::vector<Flow> flow;
  std::vector<std::int32_t> first_successor, successors, predecessors;
  std::vector<double> capacity;  ///< by link
  std::vector<std::int32_t> first_route_link, route_links;
  std::vector<LinkTraffic> background;
};
[[nodiscard]] SimulationRequest request_of(const TaskGraph&, const Network&, bool contention);

/// Times, or why there are none.
using SimulationReply = std::variant<TaskTimes, std::string>;

inline constexpr std::size_t kLengthBytes = 8;  ///< in front of every message

[[nodiscard]] std::string encode(const SimulationRequest&);
[[nodiscard]] std::string encode(const SimulationReply&);
/// Of a message without its length. Throws std::runtime_error on one that is cut short.
[[nodiscard]] SimulationRequest decode_request(const std::string&);
[[nodiscard]] SimulationReply decode_reply(const std::string&);

/// Whole messages through a file descriptor. False at the end of the stream, or where it breaks.
[[nodiscard]] bool write_message(int descriptor, const std::string& message);
[[nodiscard]] bool read_message(int descriptor, std::string& message);

}  // namespace towtank::detail
