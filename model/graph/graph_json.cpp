// SPDX-License-Identifier: Apache-2.0
#include "model/graph/graph_json.h"

#include <map>
#include <utility>

#include "core/text.h"
#include "model/graph/graph_names.h"
#include "model/graph/graph_order.h"
#include "model/graph/graph_read.h"

namespace towtank {
namespace {

constexpr std::size_t kMostLayers = 100'000;

/// Names of kinds or layers and their positions; a second one of a name is a fault.
class Names {
 public:
  void add(const JsonReader& item, const std::string& name) {
    if (!positions_.emplace(name, all_.size()).second) {
      item.fault("there is another one named " + in_quotes(name), "names differ");
    }
    all_.push_back(name);
  }
  /// The position of the name at a key; 0 after a fault.
  [[nodiscard]] std::size_t find(const JsonReader& object, std::string_view key,
                                 const char* what) const {
    const JsonReader value = object.at(key);
    const std::string name = value.as_string();
    const auto found = positions_.find(name);
    if (found != positions_.end()) return found->second;
    if (value.is_string()) {
      const auto near = nearest(name, all_);
      value.fault("there is no " + std::string(what) + " " + in_quotes(name), "",
                  near ? "Did you mean " + in_quotes(*near) + "?" : "");
    }
    return 0;
  }

 private:
  std::vector<std::string> all_;
  std::map<std::string, std::size_t> positions_;
};

/// Layers and edges as the file has them, by position in it.
struct FileGraph {
  std::vector<Layer> layers;
  struct FileEdge {
    std::size_t from = 0, to = 0;
    double elements = 0;
  };
  std::vector<FileEdge> edges;
};

void read_sample(const JsonReader& root, ModelGraph& graph) {
  const JsonReader sample = root.at("sample");
  graph.sample_tokens =
      static_cast<int>(sample.integer_or("tokens", 0, {.low = 0, .high = 1 << 26}));
  if (sample.has("shape")) {
    for (const JsonReader& size : sample.array("shape")) {
      graph.sample_shape.push_back(size.as_integer({.low = 1, .high = 1 << 30}));
    }
  } else if (graph.sample_tokens > 0) {
    graph.sample_shape = {graph.sample_tokens};
  } else {
    sample.fault("says neither tokens nor shape", "a sample has one of them");
  }
  sample.no_other_keys();
}

Names read_kinds(const JsonReader& root, ModelGraph& graph) {
  Names names;
  for (const JsonReader& item : root.array("kinds")) {
    const LayerKindId id = graph.kinds.push_back(detail::read_kind(item));
    names.add(item, graph.kinds[id].name);
  }
  return names;
}

FileGraph read_layers(const JsonReader& root, const Names& kinds) {
  FileGraph file;
  Names names;
  const auto items = root.array("layers");
  if (items.empty() || items.size() > kMostLayers) {
    root.at("layers").fault("has " + std::to_string(items.size()) + " layers",
                            "1 to " + std::to_string(kMostLayers));
    return file;
  }
  for (const JsonReader& item : items) {
    Layer layer;
    layer.name = item.string("name");
    layer.kind = LayerKindId{static_cast<std::int32_t>(kinds.find(item, "kind", "kind"))};
    if (item.has("pin")) layer.pin = static_cast<Pin>(item.one_of("pin", detail::kPinNames));
    layer.beyond_total = item.boolean_or("beyond_total", false);
    item.no_other_keys();
    names.add(item, layer.name);
    file.layers.push_back(std::move(layer));
  }
  if (!root.has("edges")) return file;
  for (const JsonReader& item : root.array("edges")) {
    FileGraph::FileEdge edge;
    edge.from = names.find(item, "from", "layer");
    edge.to = names.find(item, "to", "layer");
    edge.elements = item.number("elements", detail::kCount);
    item.no_other_keys();
    file.edges.push_back(edge);
  }
  return file;
}

int rank_of(Pin pin) {
  switch (pin) {
    case Pin::kFirst:
      return 0;
    case Pin::kFree:
      return 1;
    case Pin::kLast:
      return 2;
  }
  return 1;
}

/// Puts layers and edges into the graph in topological order; faults where there is none.
void order_layers(const JsonReader& root, FileGraph file, ModelGraph& graph) {
  std::vector<OrderNode> nodes;
  for (const Layer& layer : file.layers) nodes.push_back({layer.name, rank_of(layer.pin)});
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& edge : file.edges) pairs.emplace_back(edge.from, edge.to);
  const GraphOrder order = order_graph(nodes, pairs);
  const auto edges = root.find("edges");
  for (const std::string& fault : order.faults) (edges ? *edges : root).fault(fault);
  if (!order.faults.empty()) return;
  std::vector<LayerId> position(file.layers.size());
  for (const std::size_t i : order.order) {
    position[i] = graph.layers.push_back(std::move(file.layers[i]));
  }
  for (const auto& edge : file.edges) {
    graph.edges.push_back({position[edge.from], position[edge.to], edge.elements});
  }
}

double beyond_total(const ModelGraph& graph) {
  double sum = 0;
  for (const Layer& layer : graph.layers) {
    if (!layer.beyond_total) continue;
    for (const Op& op : graph.kinds[layer.kind].ops) {
      sum += op.parameters + op.replicated_parameters;
    }
  }
  return sum;
}

}  // namespace

ModelGraph parse_graph(const JsonFile& file) {
  const JsonReader root = file.root();
  root.expect_format("towtank-graph", 1);
  ModelGraph graph;
  graph.name = root.string("name");
  graph.family = root.string_or("family", "graph");
  read_sample(root, graph);
  if (const auto tied = root.find("tied_parameters")) {
    graph.tied_embedding = true;
    graph.tied_parameters = tied->as_number(detail::kCount);
  }
  if (root.has("assumptions")) {
    for (const JsonReader& item : root.array("assumptions")) {
      graph.assumptions.push_back(item.as_string());
    }
  }
  const Names kinds = read_kinds(root, graph);
  FileGraph layers = read_layers(root, kinds);
  root.no_other_keys();
  // Order means nothing where names are wrong.
  if (file.faults().empty()) order_layers(root, std::move(layers), graph);
  file.finish();
  graph.mtp_parameters = beyond_total(graph);
  return graph;
}

}  // namespace towtank
