// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One deterministic order of the layers of a directed graph, or why there is none.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace towtank {

struct OrderNode {
  std::string name;
  int rank = 0;  ///< lower ranks come first; an edge into a lower rank is a fault
};

struct GraphOrder {
  std::vector<std::size_t> order;  ///< indices of nodes; empty if there are faults
  std::vector<std::string> faults;
};

/// Topological order; of the nodes that could come next, the one of the lowest rank, then the
/// first. Faults: a cycle (its names in order), nodes that no path joins to the rest, edges against
/// ranks. Pre: edges are index pairs within nodes.
[[nodiscard]] GraphOrder order_graph(const std::vector<OrderNode>& nodes,
                                     const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace towtank
