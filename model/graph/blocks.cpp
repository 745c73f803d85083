// SPDX-License-Identifier: Apache-2.0
#include "model/graph/blocks.h"

#include "model/graph/block_parts.h"

namespace towtank {
namespace {

/// A norm whose output is kept as the next product's input.
Op kept_norm(std::string name, NormKind norm, int hidden, double tokens, bool layer_input) {
  Op op = norm_op(std::move(name), norm, hidden, tokens, true);
  op.saved.front().layer_input = layer_input;
  op.group = RecomputeGroup::kNorm;
  op.saved.push_back(saved_tensor(tokens * hidden, Split::kSequence, RecomputeGroup::kNorm));
  return op;
}

void add_post_norm(LayerKind& kind, const BlockSpec& block, double s, const std::string& name) {
  if (block.post_norms) {
    kind.ops.push_back(norm_op(name, block.norm, block.hidden, s, true));
  }
}

void add_sequential(LayerKind& kind, const BlockSpec& block, int tokens, int memory_tokens) {
  const double s = tokens;
  kind.ops.push_back(kept_norm("norm1", block.norm, block.hidden, s, true));
  detail::add_attention(kind, block, block.attention, {.prefix = "", .tokens = tokens});
  add_post_norm(kind, block, s, "attention_post_norm");
  detail::add_residual(kind, block, tokens, "attention");
  if (block.cross_attention) {
    AttentionSpec cross = block.attention;
    cross.relative_buckets = 0;
    kind.ops.push_back(kept_norm("cross_norm", block.norm, block.hidden, s, false));
    detail::add_attention(kind, block, cross,
                          {.prefix = "cross_", .tokens = tokens, .memory_tokens = memory_tokens});
    detail::add_residual(kind, block, tokens, "cross");
  }
  kind.ops.push_back(kept_norm("norm2", block.norm, block.hidden, s, false));
  if (block.moe) {
    detail::add_moe(kind, block, tokens);
  } else {
    detail::add_mlp(kind, block, tokens);
  }
  add_post_norm(kind, block, s, "mlp_post_norm");
  detail::add_residual(kind, block, tokens, "mlp");
}

/// Attention and MLP side by side: their outputs are summed before one reduction.
void add_parallel(LayerKind& kind, const BlockSpec& block, int tokens) {
  const double s = tokens;
  kind.ops.push_back(kept_norm("norm1", block.norm, block.hidden, s, true));
  if (!block.shared_norm) {
    Op second = kept_norm("norm2", block.norm, block.hidden, s, false);
    second.saved.erase(second.saved.begin());  // its input is the layer's, kept once
    kind.ops.push_back(std::move(second));
  }
  detail::add_attention(kind, block, block.attention, {.prefix = "", .tokens = tokens});
  detail::add_mlp(kind, block, tokens);
  detail::add_residual(kind, block, tokens, "block");
}

void add_head_product(LayerKind& kind, const HeadSpec& head, double s) {
  Op product = product_op("head", Split::kColumn, s, head.hidden, head.vocabulary, head.bias);
  product.vocabulary = true;
  if (head.tied) product.parameters = head.bias ? head.vocabulary : 0;
  SavedTensor logits = saved_tensor(s * head.vocabulary, Split::kColumn);
  logits.logits = true;
  product.saved = {logits};
  kind.ops.push_back(std::move(product));
  // Fused: logits read, fp32 softmax (two elements) written and summed over; backward reads it and
  // writes the gradient.
  const double elements = s * head.vocabulary;
  kind.ops.push_back(memory_op_spec("cross_entropy", OpKind::kCrossEntropy, Split::kColumn,
                                    4 * elements, 3 * elements));
  kind.collectives.push_back(column_input("head input", s * head.hidden));
  // Maximum, own logit and sum of every token, in fp32: two elements each.
  LayerCollective loss;
  loss.name = "cross entropy";
  loss.forward = loss.backward = Collective::kAllReduce;
  loss.forward_count = 3;
  loss.elements = 2 * s;
  kind.collectives.push_back(loss);
}

}  // namespace

Op norm_op(std::string name, NormKind norm, int hidden, double tokens, bool saved_input) {
  const double elements = tokens * hidden;
  Op op =
      memory_op_spec(std::move(name), OpKind::kNorm, Split::kSequence, 2 * elements, 3 * elements);
  op.parameters = (norm == NormKind::kLayer ? 2.0 : 1.0) * hidden;
  if (saved_input) op.saved = {saved_tensor(elements, Split::kSequence)};
  return op;
}

Op product_op(std::string name, Split split, double rows, std::int64_t inner, std::int64_t columns,
              bool bias) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::kMatmul;
  op.split = split;
  op.rows = rows;
  op.inner = inner;
  op.columns = columns;
  op.parameters = static_cast<double>(inner) * static_cast<double>(columns);
  if (bias) {
    // The bias of a row-split product is added once, after the reduction.
    (split == Split::kRow ? op.replicated_parameters : op.parameters) +=
        static_cast<double>(columns);
  }
  return op;
}

Op memory_op_spec(std::string name, OpKind kind, Split split, double moved, double moved_backward) {
  Op op;
  op.name = std::move(name);
  op.kind = kind;
  op.split = split;
  op.moved_elements = moved;
  op.moved_elements_backward = moved_backward;
  return op;
}

SavedTensor saved_tensor(double elements, Split split, RecomputeGroup group) {
  SavedTensor t;
  t.elements = elements;
  t.split = split;
  t.group = group;
  return t;
}

LayerCollective column_input(std::string name, double elements) {
  LayerCollective c;
  c.name = std::move(name);
  c.forward_count = 0;
  c.backward_count = 1;
  c.with_sequence_parallel = {.forward = Collective::kAllGather,
                              .backward = Collective::kReduceScatter,
                              .forward_count = 1,
                              .backward_count = 1,
                              .hidden_backward_count = 1};
  c.elements = elements;
  return c;
}

LayerCollective row_output(std::string name, double elements) {
  LayerCollective c;
  c.name = std::move(name);
  c.forward_count = 1;
  c.backward_count = 0;
  c.with_sequence_parallel = {.forward = Collective::kReduceScatter,
                              .backward = Collective::kAllGather,
                              .forward_count = 1,
                              .backward_count = 1,
                              .hidden_backward_count = 0};
  c.elements = elements;
  return c;
}

LayerKind block_kind(std::string name, const BlockSpec& block, int tokens, int memory_tokens) {
  LayerKind kind;
  kind.name = std::move(name);
  if (block.parallel) {
    add_parallel(kind, block, tokens);
  } else {
    add_sequential(kind, block, tokens, memory_tokens);
  }
  return kind;
}

LayerKind embedding_kind(const EmbeddingSpec& spec, int tokens) {
  LayerKind kind;
  kind.name = "embedding";
  const double elements = static_cast<double>(tokens) * spec.hidden;
  const double lookups = spec.lookups * elements;
  Op table = memory_op_spec("embedding", OpKind::kEmbedding, Split::kRow, 2 * lookups, 3 * lookups);
  table.vocabulary = true;
  table.columns = spec.vocabulary;
  table.parameters = static_cast<double>(spec.vocabulary) * spec.hidden;
  kind.ops.push_back(std::move(table));
  if (spec.positions + spec.token_types > 0) {
    Op positions = memory_op_spec("positions", OpKind::kEmbedding, Split::kReplicate, 4 * elements,
                                  3 * elements);
    positions.parameters = (static_cast<double>(spec.positions) + spec.token_types) * spec.hidden;
    kind.ops.push_back(std::move(positions));
  }
  if (spec.norm) kind.ops.push_back(norm_op("norm", *spec.norm, spec.hidden, tokens, true));
  if (spec.dropout) {
    // Reads, writes and keeps a mask of half an element.
    Op drop = memory_op_spec("dropout", OpKind::kElementwise, Split::kSequence, 2.5 * lookups,
                             2.5 * lookups);
    drop.dropout_only = true;
    SavedTensor mask = saved_tensor(lookups, Split::kSequence);
    mask.element = SavedTensor::Element::kByte;
    mask.when = SavedTensor::When::kDropout;
    drop.saved = {mask};
    kind.ops.push_back(std::move(drop));
  }
  kind.collectives.push_back(row_output("embedding output", lookups));
  return kind;
}

LayerKind head_kind(const HeadSpec& head, int tokens) {
  LayerKind kind;
  kind.name = "head";
  if (head.norm) {
    kind.ops.push_back(kept_norm("norm", *head.norm, head.hidden, tokens, false));
  }
  add_head_product(kind, head, tokens);
  return kind;
}

LayerKind mtp_kind(const BlockSpec& block, int vocabulary, int tokens) {
  const double s = tokens;
  LayerKind kind;
  kind.name = "mtp";
  Op lookup = memory_op_spec("embedding", OpKind::kEmbedding, Split::kRow, 2 * s * block.hidden,
                             3 * s * block.hidden);
  kind.ops.push_back(std::move(lookup));
  for (const char* name : {"hidden_norm", "embedding_norm"}) {
    kind.ops.push_back(kept_norm(name, block.norm, block.hidden, s, false));
  }
  kind.ops.push_back(
      product_op("merge", Split::kColumn, s, 2 * std::int64_t{block.hidden}, block.hidden, false));
  kind.collectives.push_back(column_input("merge input", 2 * s * block.hidden));
  LayerKind inner = block_kind("", block, tokens);
  for (Op& op : inner.ops) kind.ops.push_back(std::move(op));
  for (LayerCollective& c : inner.collectives) kind.collectives.push_back(std::move(c));
  kind.limits = inner.limits;
  kind.ops.push_back(kept_norm("final_norm", block.norm, block.hidden, s, false));
  HeadSpec head;
  head.hidden = block.hidden;
  head.vocabulary = vocabulary;
  head.tied = true;  // to the head of the model
  add_head_product(kind, head, s);
  return kind;
}

}  // namespace towtank
