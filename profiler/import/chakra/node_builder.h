// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Nodes of execution traces as events: what both readers share.
#include <map>
#include <string>
#include <string_view>

#include "profiler/trace.h"

namespace towtank::chakra {

struct Node {
  std::int64_t id = -1, parent = -1;
  std::int64_t duration_us = 0;
  std::int64_t thread = 0;
  bool on_host = true;
  std::string name;
  std::string shapes, types;  ///< JSON or Python lists: "[[64, 32], []]"
  // Of a collective; empty name: none.
  std::string collective, group;
  std::int64_t collective_bytes = -1;
};

class NodeBuilder {
 public:
  explicit NodeBuilder(Trace& trace);
  void add(const Node&);
  void finish();

 private:
  Trace& trace_;
  TextIndex texts_;
  std::map<std::pair<bool, std::int64_t>, std::int32_t> tracks_;
  std::map<std::int32_t, std::int64_t> ends_;  ///< by track
  std::map<std::string, std::int32_t> inputs_;
};

/// Whether a text begins as a Chakra file does: a length, then its GlobalMetadata.
[[nodiscard]] bool looks_like_chakra(std::string_view head);
/// Number at the end of a file's name: "dlrm_eg_3.json", "chakra.0.et"; -1: none.
[[nodiscard]] int rank_of_name(std::string_view name);

}  // namespace towtank::chakra
