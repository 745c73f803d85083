// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "core/text.h"
#include "model/graph/graph_names.h"
#include "model/graph/graph_read.h"

namespace towtank::detail {
namespace {

// Beyond any network; sums and products of what is below stay exact or finite.
constexpr JsonRange kSize{.low = 1, .high = 1 << 26};
constexpr JsonRange kGroups{.low = 1, .high = 1 << 24};
constexpr JsonRange kHeads{.low = 1, .high = 1 << 16};
constexpr JsonRange kRepeats{.low = 0, .high = 1024};

template <class E, class Names>
E word(const JsonReader& object, std::string_view key, const Names& names, E otherwise) {
  return object.has(key) ? static_cast<E>(object.one_of(key, names)) : otherwise;
}

int size_of(const JsonReader& object, std::string_view key, JsonRange range) {
  return static_cast<int>(object.integer(key, range));
}

SavedTensor read_saved(const JsonReader& json) {
  SavedTensor t;
  t.elements = json.number("elements", kCount);
  t.element = word(json, "element", kElementNames, t.element);
  t.split = word(json, "split", kSplitNames, Split::kReplicate);
  t.key_value = json.boolean_or("key_value", false);
  t.expert = json.boolean_or("expert", false);
  t.layer_input = json.boolean_or("layer_input", false);
  t.logits = json.boolean_or("logits", false);
  t.when = word(json, "when", kWhenNames, t.when);
  t.group = word(json, "recompute", kRecomputeGroupNames, t.group);
  json.no_other_keys();
  return t;
}

void read_product(const JsonReader& json, Op& op) {
  op.rows = json.number("rows", kCount);
  op.inner = json.integer("inner", kSize);
  op.columns = json.integer("columns", {.low = 1, .high = 1 << 30});
  op.groups = json.integer_or("groups", 1, kGroups);
  op.key_value_columns =
      json.integer_or("key_value_columns", 0, {.low = 0, .high = static_cast<double>(op.columns)});
  if (op.kind == OpKind::kConvolution) {
    op.moved_elements = json.number_or("moved_elements", 0, kCount);
    op.moved_elements_backward =
        json.number_or("moved_elements_backward", op.moved_elements, kCount);
  }
  op.parameters = static_cast<double>(op.inner) * static_cast<double>(op.columns) *
                  static_cast<double>(op.groups);
}

void read_attention(const JsonReader& json, Op& op) {
  op.heads = size_of(json, "heads", kHeads);
  op.kv_heads = static_cast<int>(json.integer_or("kv_heads", op.heads, kHeads));
  op.query_length = size_of(json, "query_length", kSize);
  op.key_length = static_cast<int>(json.integer_or("key_length", op.query_length, kSize));
  op.head_width = size_of(json, "head_width", kHeads);
  op.value_width = static_cast<int>(json.integer_or("value_width", op.head_width, kHeads));
  op.causal = json.boolean_or("causal", false);
  if (json.has("window")) op.window = size_of(json, "window", kSize);
  if (op.kv_heads > 0 && op.heads % op.kv_heads != 0) {
    json.fault("heads = " + std::to_string(op.heads) +
               " does not divide by kv_heads = " + std::to_string(op.kv_heads));
  }
}

void read_memory_op(const JsonReader& json, Op& op) {
  op.moved_elements = json.number_or("moved_elements", 0, kCount);
  op.moved_elements_backward = json.number_or("moved_elements_backward", op.moved_elements, kCount);
  op.flop = json.number_or("flop", 0, {.low = 0, .high = 1e24});
  if (op.kind == OpKind::kEmbedding) {
    op.columns = json.integer_or("columns", 0, {.low = 0, .high = 1 << 30});
  }
}

Op read_op(const JsonReader& json) {
  Op op;
  op.name = json.string("name");
  op.kind = static_cast<OpKind>(json.one_of("op", kOpKindNames));
  op.split = word(json, "split", kSplitNames, op.split);
  op.expert = json.boolean_or("expert", false);
  op.vocabulary = json.boolean_or("vocabulary", false);
  op.dropout_only = json.boolean_or("dropout_only", false);
  op.group = word(json, "recompute", kRecomputeGroupNames, op.group);
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kConvolution:
      read_product(json, op);
      break;
    case OpKind::kAttention:
      read_attention(json, op);
      break;
    case OpKind::kNorm:
    case OpKind::kElementwise:
    case OpKind::kEmbedding:
    case OpKind::kCrossEntropy:
    case OpKind::kRouting:
    case OpKind::kOptimizer:
      read_memory_op(json, op);
      break;
  }
  op.parameters = json.number_or("parameters", op.parameters, kCount);
  op.replicated_parameters = json.number_or("replicated_parameters", 0, kCount);
  if (json.has("saved")) {
    for (const JsonReader& item : json.array("saved")) op.saved.push_back(read_saved(item));
  }
  json.no_other_keys();
  return op;
}

int count_of(const JsonReader& json, std::string_view key) {
  return static_cast<int>(json.integer_or(key, 0, kRepeats));
}

LayerCollective read_collective(const JsonReader& json) {
  LayerCollective c;
  c.name = json.string("name");
  c.axis = static_cast<Axis>(json.one_of("axis", kAxisNames));
  c.forward = static_cast<Collective>(json.one_of("forward", kCollectiveNames));
  c.backward = word(json, "backward", kCollectiveNames, c.forward);
  c.forward_count = count_of(json, "forward_count");
  c.backward_count = count_of(json, "backward_count");
  if (const auto with = json.find("with_sequence_parallel")) {
    LayerCollective::WithSequenceParallel w;
    w.forward = static_cast<Collective>(with->one_of("forward", kCollectiveNames));
    w.backward = static_cast<Collective>(with->one_of("backward", kCollectiveNames));
    w.forward_count = count_of(*with, "forward_count");
    w.backward_count = count_of(*with, "backward_count");
    w.hidden_backward_count = count_of(*with, "hidden_backward_count");
    with->no_other_keys();
    c.with_sequence_parallel = w;
  }
  c.elements = json.number("elements", kCount);
  c.divided_by_tensor = json.boolean_or("divided_by_tensor", false);
  c.divided_by_kv_heads = json.boolean_or("divided_by_kv_heads", false);
  c.overlaps_attention = json.boolean_or("overlaps_attention", false);
  json.no_other_keys();
  return c;
}

std::vector<std::pair<std::string, std::int64_t>> read_sizes(const JsonReader& json,
                                                             std::string_view key) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  const auto object = json.find(key);
  if (!object) return sizes;
  for (const std::string& name : object->keys()) {
    sizes.emplace_back(name, object->integer(name, {.low = 1, .high = 1 << 30}));
  }
  return sizes;
}

/// What a file does not say: tensor ranks only where an op is split, context ranks never.
ShardLimits unstated_limits(const LayerKind& kind) {
  ShardLimits limits;
  limits.context = false;
  limits.tensor = std::any_of(kind.ops.begin(), kind.ops.end(), [](const Op& op) {
    return op.split == Split::kColumn || op.split == Split::kRow;
  });
  return limits;
}

void read_limits(const JsonReader& json, LayerKind& kind) {
  kind.limits = unstated_limits(kind);
  const auto object = json.find("limits");
  if (!object) return;
  kind.limits.tensor = object->boolean_or("tensor", kind.limits.tensor);
  kind.limits.context = object->boolean_or("context", kind.limits.context);
  kind.limits.tensor_divides = read_sizes(*object, "tensor_divides");
  kind.limits.context_divides = read_sizes(*object, "context_divides");
  kind.limits.kv_heads = object->integer_or("kv_heads", 0, kHeads);
  kind.limits.experts = object->integer_or("experts", 0, kHeads);
  object->no_other_keys();
}

}  // namespace

LayerKind read_kind(const JsonReader& json) {
  LayerKind kind;
  kind.name = json.string("name");
  std::set<std::string> names;
  for (const JsonReader& item : json.array("ops")) {
    kind.ops.push_back(read_op(item));
    if (!names.insert(kind.ops.back().name).second) {
      item.fault("there is another op " + in_quotes(kind.ops.back().name) + " in this layer",
                 "names of ops differ");
    }
  }
  if (json.has("collectives")) {
    for (const JsonReader& item : json.array("collectives")) {
      kind.collectives.push_back(read_collective(item));
    }
  }
  read_limits(json, kind);
  json.no_other_keys();
  return kind;
}

}  // namespace towtank::detail
