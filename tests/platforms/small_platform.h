// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A small platform as text, so that a test can change one thing in it.
///
///   4 nodes of 8 devices; NVLink 100 GB/s a device; 8 NICs of 400 Gbit/s: 50 GB/s a device;
///   leaf of 2 nodes at 50 GB/s, 2:1 oversubscribed; spine over all at 50 GB/s
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "platforms/platform_json.h"

namespace towtank::testing {

inline constexpr std::string_view kSmallPlatform = R"({
  "format": "towtank-platform", "version": 1, "name": "small", "description": "for tests",
  "device_kinds": {
    "d": { "generation": "g", "peak": { "fp32": "10 TFLOP/s", "bf16": "100 TFLOP/s" },
           "vector_peak": "10 TFLOP/s", "memory": "80 GiB", "memory_bandwidth": "2 TB/s",
           "source": "made up" } },
  "node_kinds": {
    "n": { "device": "d", "devices": 8, "topology": "switch",
           "intranode": { "fabric": "nvlink", "bandwidth": "100 GB/s", "latency": "1 us",
                          "source": "made up" },
           "nics": { "count": 8, "bandwidth": "400 Gbit/s", "source": "made up" },
           "pcie": "32 GB/s", "source": "made up" } },
  "levels": [
    { "name": "leaf", "fabric": "ib", "bandwidth": "50 GB/s", "latency": "2 us", "group_nodes": 2,
      "oversubscription": 2, "source": "made up" },
    { "name": "spine", "fabric": "ib", "bandwidth": "50 GB/s", "latency": "3 us",
      "source": "made up" } ],
  "nodes": [ { "kind": "n", "count": 4, "source": "made up" } ]
})";

/// The small platform with every `from` replaced by `to`; `from` must be there.
[[nodiscard]] inline std::string small_platform(std::string_view from = "",
                                                std::string_view to = "") {
  std::string text(kSmallPlatform);
  if (from.empty()) return text;
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  while (at != std::string::npos) {
    text.replace(at, from.size(), to);
    at = text.find(from, at + to.size());
  }
  return text;
}

[[nodiscard]] inline Platform read_platform(std::string text) {
  return parse_platform(JsonFile::parse(std::move(text), "p.json"));
}

}  // namespace towtank::testing
