// SPDX-License-Identifier: Apache-2.0
#include "model/graph/graph_order.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <queue>

#include "core/text.h"

namespace towtank {
namespace {

using Directed = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::size_t kMostNames = 12;  ///< in one message

std::string shown(const std::vector<OrderNode>& nodes, std::size_t i) {
  return printable(nodes[i].name);
}

/// Remembers the tree and the first edge that closes a cycle.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  CycleFinder(std::vector<std::size_t>& parent, std::vector<std::size_t>& cycle)
      : parent_(parent), cycle_(cycle) {}

  void tree_edge(const Directed::edge_descriptor& e, const Directed& g) {
    parent_[boost::target(e, g)] = boost::source(e, g);
  }
  void back_edge(const Directed::edge_descriptor& e, const Directed& g) {
    if (!cycle_.empty()) return;
    const std::size_t first = boost::target(e, g);
    for (std::size_t at = boost::source(e, g); at != first; at = parent_[at]) cycle_.push_back(at);
    cycle_.push_back(first);
    std::reverse(cycle_.begin(), cycle_.end());
  }

 private:
  std::vector<std::size_t>& parent_;
  std::vector<std::size_t>& cycle_;
};

void check_cycle(const std::vector<OrderNode>& nodes, const Directed& graph,
                 std::vector<std::string>& faults) {
  std::vector<std::size_t> parent(nodes.size());
  std::vector<std::size_t> cycle;
  boost::depth_first_search(graph, boost::visitor(CycleFinder(parent, cycle)));
  if (cycle.empty()) return;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (i + 1 < cycle.size() && i + 1 == kMostNames) names.emplace_back("...");
    if (i + 1 < kMostNames || i + 1 == cycle.size()) names.push_back(shown(nodes, cycle[i]));
  }
  names.push_back(shown(nodes, cycle.front()));
  faults.push_back("the layers form a cycle: " + join(names, " -> "));
}

void check_connected(const std::vector<OrderNode>& nodes, const Edges& edges,
                     std::vector<std::string>& faults) {
  Undirected graph(nodes.size());
  for (const auto& [from, to] : edges) boost::add_edge(from, to, graph);
  std::vector<std::size_t> piece(nodes.size());
  const std::size_t pieces = boost::connected_components(graph, piece.data());
  if (pieces <= 1) return;
  // Name the layers outside the largest piece.
  std::vector<std::size_t> sizes(pieces);
  for (const std::size_t p : piece) ++sizes[p];
  const auto main =
      static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size() && names.size() < kMostNames; ++i) {
    if (piece[i] != main) names.push_back(shown(nodes, i));
  }
  const std::size_t others = nodes.size() - sizes[main];
  if (others > names.size()) names.push_back(std::to_string(others - names.size()) + " more");
  faults.push_back("no edge joins " + join_and(names) + " to the other layers");
}

void check_ranks(const std::vector<OrderNode>& nodes, const Edges& edges,
                 std::vector<std::string>& faults) {
  for (const auto& [from, to] : edges) {
    if (nodes[from].rank > nodes[to].rank) {
      faults.push_back(shown(nodes, to) + " reads " + shown(nodes, from) +
                       ", which is pinned behind it");
    }
  }
}

std::vector<std::size_t> topological(const std::vector<OrderNode>& nodes, const Directed& graph) {
  using Next = std::pair<int, std::size_t>;  // rank, position in the file
  std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
  std::vector<std::size_t> waits(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = boost::in_degree(i, graph);
    if (waits[i] == 0) ready.emplace(nodes[i].rank, i);
  }
  std::vector<std::size_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const std::size_t at = ready.top().second;
    ready.pop();
    order.push_back(at);
    const auto [first, last] = boost::out_edges(at, graph);
    for (auto e = first; e != last; ++e) {
      const std::size_t to = boost::target(*e, graph);
      if (--waits[to] == 0) ready.emplace(nodes[to].rank, to);
    }
  }
  return order;
}

}  // namespace

GraphOrder order_graph(const std::vector<OrderNode>& nodes, const Edges& edges) {
  GraphOrder result;
  Directed graph(nodes.size());
  for (const auto& [from, to] : edges) boost::add_edge(from, to, graph);
  check_cycle(nodes, graph, result.faults);
  check_connected(nodes, edges, result.faults);
  check_ranks(nodes, edges, result.faults);
  if (result.faults.empty()) result.order = topological(nodes, graph);
  return result;
}

}  // namespace towtank
