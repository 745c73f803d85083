// SPDX-License-Identifier: Apache-2.0
// Only what differs from a field's default is written, so that a file shows what a person would
// have said.
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/graph/graph_json.h"
#include "model/graph/graph_names.h"

namespace towtank {
namespace {

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

/// Whole numbers without a decimal point.
Json number(double value) {
  constexpr double kExact = 0x1p53;
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) {}
  void real(const char* key, double value) {
    if (value != 0) object_[key] = number(value);
  }
  template <class T>
  void value(const char* key, const T& value, const T& otherwise) {
    if (value != otherwise) object_[key] = value;
  }
  void yes(const char* key, bool value) {
    if (value) object_[key] = true;
  }
  template <class Names>
  void word(const char* key, const Names& names, auto value) {
    if (index_of(value) != 0) object_[key] = names[index_of(value)];
  }

 private:
  Json& object_;
};

Json to_json(const SavedTensor& tensor) {
  Json json;
  json["elements"] = number(tensor.elements);
  Writer w(json);
  w.word("element", detail::kElementNames, tensor.element);
  json["split"] = kSplitNames[index_of(tensor.split)];
  w.yes("key_value", tensor.key_value);
  w.yes("expert", tensor.expert);
  w.yes("layer_input", tensor.layer_input);
  w.yes("logits", tensor.logits);
  w.word("when", detail::kWhenNames, tensor.when);
  w.word("recompute", kRecomputeGroupNames, tensor.group);
  return json;
}

Json to_json(const Op& op) {
  Json json;
  json["name"] = op.name;
  json["op"] = to_text(op.kind);
  Writer w(json);
  w.word("split", kSplitNames, op.split);
  w.yes("expert", op.expert);
  w.yes("vocabulary", op.vocabulary);
  w.yes("dropout_only", op.dropout_only);
  w.word("recompute", kRecomputeGroupNames, op.group);
  w.real("rows", op.rows);
  w.value<std::int64_t>("inner", op.inner, 0);
  w.value<std::int64_t>("columns", op.columns, 0);
  w.value<std::int64_t>("groups", op.groups, 1);
  w.value<std::int64_t>("key_value_columns", op.key_value_columns, 0);
  w.value("heads", op.heads, 0);
  w.value("kv_heads", op.kv_heads, 0);
  w.value("query_length", op.query_length, 0);
  w.value("key_length", op.key_length, 0);
  w.value("head_width", op.head_width, 0);
  w.value("value_width", op.value_width, 0);
  w.yes("causal", op.causal);
  if (op.window) json["window"] = *op.window;
  w.real("moved_elements", op.moved_elements);
  // Absent means as forward, and the parameters of a product follow from its shape.
  if (op.moved_elements_backward != op.moved_elements) {
    json["moved_elements_backward"] = number(op.moved_elements_backward);
  }
  w.real("flop", op.flop);
  if (op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution) {
    json["parameters"] = number(op.parameters);
  } else {
    w.real("parameters", op.parameters);
  }
  w.real("replicated_parameters", op.replicated_parameters);
  for (const SavedTensor& tensor : op.saved) json["saved"].push_back(to_json(tensor));
  return json;
}

Json to_json(const LayerCollective& call) {
  Json json;
  json["name"] = call.name;
  json["axis"] = detail::kAxisNames[index_of(call.axis)];
  json["forward"] = kCollectiveNames[index_of(call.forward)];
  json["forward_count"] = call.forward_count;
  json["backward"] = kCollectiveNames[index_of(call.backward)];
  json["backward_count"] = call.backward_count;
  if (const auto& with = call.with_sequence_parallel) {
    json["with_sequence_parallel"] = {{"forward", kCollectiveNames[index_of(with->forward)]},
                                      {"forward_count", with->forward_count},
                                      {"backward", kCollectiveNames[index_of(with->backward)]},
                                      {"backward_count", with->backward_count},
                                      {"hidden_backward_count", with->hidden_backward_count}};
  }
  json["elements"] = number(call.elements);
  Writer w(json);
  w.yes("divided_by_tensor", call.divided_by_tensor);
  w.yes("divided_by_kv_heads", call.divided_by_kv_heads);
  w.yes("overlaps_attention", call.overlaps_attention);
  return json;
}

Json to_json(const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
  Json json = Json::object();
  for (const auto& [what, size] : sizes) json[what] = size;
  return json;
}

Json to_json(const ShardLimits& limits) {
  Json json;
  json["tensor"] = limits.tensor;
  json["context"] = limits.context;
  if (!limits.tensor_divides.empty()) json["tensor_divides"] = to_json(limits.tensor_divides);
  if (!limits.context_divides.empty()) json["context_divides"] = to_json(limits.context_divides);
  Writer w(json);
  w.value<std::int64_t>("kv_heads", limits.kv_heads, 0);
  w.value<std::int64_t>("experts", limits.experts, 0);
  return json;
}

Json to_json(const LayerKind& kind) {
  Json json;
  json["name"] = kind.name;
  json["limits"] = to_json(kind.limits);
  json["ops"] = Json::array();
  for (const Op& op : kind.ops) json["ops"].push_back(to_json(op));
  for (const LayerCollective& call : kind.collectives) {
    json["collectives"].push_back(to_json(call));
  }
  return json;
}

Json to_json(const Layer& layer, const ModelGraph& graph) {
  Json json;
  json["name"] = layer.name;
  json["kind"] = graph.kinds[layer.kind].name;
  Writer w(json);
  w.word("pin", detail::kPinNames, layer.pin);
  w.yes("beyond_total", layer.beyond_total);
  return json;
}

}  // namespace

Json to_json(const ModelGraph& graph) {
  Json json;
  json["format"] = "towtank-graph";
  json["version"] = 1;
  json["name"] = graph.name;
  json["family"] = graph.family;
  if (graph.sample_tokens > 0) json["sample"]["tokens"] = graph.sample_tokens;
  json["sample"]["shape"] = graph.sample_shape;
  Writer w(json);
  if (graph.tied_embedding) json["tied_parameters"] = number(graph.tied_parameters);
  if (!graph.assumptions.empty()) json["assumptions"] = graph.assumptions;
  json["kinds"] = Json::array();
  for (const LayerKind& kind : graph.kinds) json["kinds"].push_back(to_json(kind));
  json["layers"] = Json::array();
  for (const Layer& layer : graph.layers) json["layers"].push_back(to_json(layer, graph));
  json["edges"] = Json::array();
  for (const Edge& edge : graph.edges) {
    json["edges"].push_back({{"from", graph.layers[edge.from].name},
                             {"to", graph.layers[edge.to].name},
                             {"elements", number(edge.elements)}});
  }
  return json;
}

}  // namespace towtank
