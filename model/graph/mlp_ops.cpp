// SPDX-License-Identifier: Apache-2.0
#include "model/graph/block_parts.h"

namespace towtank::detail {
namespace {

// A one-byte mask in elements of a two-byte dtype.
constexpr double kMaskElements = 0.5;

Op activation_op(const std::string& name, bool gated, double width_elements) {
  return memory_op_spec(name, OpKind::kElementwise, Split::kColumn,
                        (gated ? 3 : 2) * width_elements, (gated ? 5 : 3) * width_elements);
}

void add_router(LayerKind& kind, const BlockSpec& block, const MoeSpec& moe, double s) {
  Op router = product_op("router", Split::kSequence, s, block.hidden, moe.experts, moe.router_bias);
  if (moe.score_bias) router.parameters += moe.experts;
  SavedTensor scores = saved_tensor(s * moe.experts, Split::kSequence);
  scores.element = SavedTensor::Element::kFloat;
  router.saved = {scores};
  kind.ops.push_back(std::move(router));
  // Softmax and top-k: scores read and written twice.
  kind.ops.push_back(memory_op_spec("choose", OpKind::kRouting, Split::kSequence,
                                    4 * s * moe.experts, 3 * s * moe.experts));
}

/// Products of the routed experts, whose rows are the tokens that chose them.
void add_expert_products(LayerKind& kind, const BlockSpec& block, const MoeSpec& moe, double s) {
  const double rows = s * moe.chosen;
  const double experts = moe.experts;
  const double width = rows * moe.width;
  const auto expert = [](Op op, RecomputeGroup group) {
    op.expert = true;
    op.group = group;
    return op;
  };
  const auto saved = [](double elements, Split split, RecomputeGroup group) {
    SavedTensor t = saved_tensor(elements, split, group);
    t.expert = true;
    return t;
  };
  const auto grouped = [&](Op op) {
    op.groups = moe.experts;
    op.parameters *= experts;
    op.replicated_parameters *= experts;
    return op;
  };
  Op permute = expert(memory_op_spec("permute", OpKind::kRouting, Split::kSequence,
                                     4 * rows * block.hidden, 4 * rows * block.hidden),
                      RecomputeGroup::kNone);
  permute.saved = {saved(rows * block.hidden, Split::kSequence, RecomputeGroup::kNone)};
  kind.ops.push_back(std::move(permute));
  Op fc1 = expert(grouped(product_op("expert_fc1", Split::kColumn, rows, block.hidden,
                                     2 * std::int64_t{moe.width}, moe.expert_bias)),
                  RecomputeGroup::kExperts);
  fc1.saved = {saved(2 * width, Split::kColumn, RecomputeGroup::kExperts)};
  kind.ops.push_back(std::move(fc1));
  Op act = expert(activation_op("expert_activation", true, width), RecomputeGroup::kGatedProduct);
  act.saved = {saved(width, Split::kColumn, RecomputeGroup::kGatedProduct)};
  kind.ops.push_back(std::move(act));
  Op fc2 = expert(grouped(product_op("expert_fc2", Split::kRow, rows, moe.width, block.hidden,
                                     moe.expert_bias)),
                  RecomputeGroup::kExperts);
  fc2.saved = {saved(rows * block.hidden, Split::kSequence, RecomputeGroup::kExperts)};
  kind.ops.push_back(std::move(fc2));
  kind.ops.push_back(expert(memory_op_spec("unpermute", OpKind::kRouting, Split::kSequence,
                                           3 * rows * block.hidden + s * block.hidden,
                                           3 * rows * block.hidden + s * block.hidden),
                            RecomputeGroup::kNone));
}

void add_expert_collectives(LayerKind& kind, double routed_elements) {
  LayerCollective exchange;
  exchange.name = "expert dispatch and combine";
  exchange.axis = Axis::kExpert;
  exchange.forward = exchange.backward = Collective::kAllToAll;
  exchange.forward_count = exchange.backward_count = 2;
  exchange.elements = routed_elements;
  kind.collectives.push_back(exchange);
  // What is gathered is kept, so nothing is gathered again for the weight gradients.
  LayerCollective gather = column_input("expert input", routed_elements);
  gather.axis = Axis::kExpertTensor;
  gather.with_sequence_parallel->hidden_backward_count = 0;
  kind.collectives.push_back(gather);
  LayerCollective scatter = row_output("expert output", routed_elements);
  scatter.axis = Axis::kExpertTensor;
  kind.collectives.push_back(scatter);
}

}  // namespace

void add_dense_mlp(LayerKind& kind, int hidden, const MlpSpec& mlp, int tokens,
                   const std::string& prefix) {
  const double s = tokens;
  const double width = s * mlp.width;
  const std::int64_t inputs = mlp.gated ? 2 : 1;
  Op fc1 = product_op(prefix + "fc1", Split::kColumn, s, hidden, inputs * mlp.width, mlp.bias);
  fc1.group = RecomputeGroup::kMlp;
  if (!mlp.relu) {
    fc1.saved = {
        saved_tensor(static_cast<double>(inputs) * width, Split::kColumn, RecomputeGroup::kMlp)};
  }
  kind.ops.push_back(std::move(fc1));
  Op act = activation_op(prefix + "activation", mlp.gated, width);
  act.group = RecomputeGroup::kGatedProduct;
  act.saved = {saved_tensor(width, Split::kColumn, RecomputeGroup::kGatedProduct)};
  kind.ops.push_back(std::move(act));
  kind.ops.push_back(product_op(prefix + "fc2", Split::kRow, s, mlp.width, hidden, mlp.bias));
  kind.limits.tensor_divides.emplace_back(prefix.empty() ? "MLP columns" : "shared expert columns",
                                          mlp.width);
}

void add_mlp(LayerKind& kind, const BlockSpec& block, int tokens) {
  const double elements = static_cast<double>(tokens) * block.hidden;
  add_dense_mlp(kind, block.hidden, block.mlp, tokens, "");
  if (!block.parallel) kind.collectives.push_back(column_input("MLP input", elements));
  kind.collectives.push_back(row_output("MLP output", elements));
}

void add_moe(LayerKind& kind, const BlockSpec& block, int tokens) {
  const MoeSpec& moe = *block.moe;
  const double s = tokens;
  add_router(kind, block, moe, s);
  add_expert_products(kind, block, moe, s);
  add_expert_collectives(kind, s * moe.chosen * block.hidden);
  kind.limits.experts = moe.experts;
  if (moe.shared_width <= 0) return;
  add_dense_mlp(kind, block.hidden, {.width = moe.shared_width, .gated = true, .bias = false},
                tokens, "shared_");
  if (moe.shared_gate) {
    kind.ops.push_back(product_op("shared_gate", Split::kSequence, s, block.hidden, 1, false));
  }
  kind.ops.push_back(memory_op_spec("shared_sum", OpKind::kElementwise, Split::kSequence,
                                    3 * s * block.hidden, 3 * s * block.hidden));
  kind.collectives.push_back(column_input("shared expert input", s * block.hidden));
  kind.collectives.push_back(row_output("shared expert output", s * block.hidden));
}

void add_residual(LayerKind& kind, const BlockSpec& block, int tokens, const std::string& name) {
  const double elements = static_cast<double>(tokens) * block.hidden;
  if (block.dropout) {
    // Fused with the sum: its mask is written forward; backward reads it, the gradient and writes.
    Op drop = memory_op_spec(name + "_dropout", OpKind::kElementwise, Split::kSequence,
                             kMaskElements * elements, (2 + kMaskElements) * elements);
    drop.dropout_only = true;
    SavedTensor mask = saved_tensor(elements, Split::kSequence);
    mask.element = SavedTensor::Element::kByte;
    mask.when = SavedTensor::When::kDropout;
    drop.saved = {mask};
    kind.ops.push_back(std::move(drop));
  }
  kind.ops.push_back(memory_op_spec(name + "_residual", OpKind::kElementwise, Split::kSequence,
                                    3 * elements, 3 * elements));
}

}  // namespace towtank::detail
