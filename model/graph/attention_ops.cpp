// SPDX-License-Identifier: Apache-2.0
#include "model/graph/block_parts.h"

namespace towtank::detail {
namespace {

using When = SavedTensor::When;
using Element = SavedTensor::Element;

SavedTensor key_value_tensor(double elements, RecomputeGroup group = RecomputeGroup::kNone) {
  SavedTensor t = saved_tensor(elements, Split::kColumn, group);
  t.key_value = true;
  return t;
}

void add_self_projection(LayerKind& kind, int hidden, const AttentionSpec& a, double s,
                         const std::string& prefix) {
  const auto q = a.query_width();
  const auto u = a.key_width();
  Op qkv = product_op(prefix + "qkv", Split::kColumn, s, hidden, q + 2 * u, a.qkv_bias);
  qkv.key_value_columns = 2 * u;
  qkv.saved = {saved_tensor(s * static_cast<double>(q), Split::kColumn),
               key_value_tensor(2 * s * static_cast<double>(u))};
  kind.ops.push_back(std::move(qkv));
}

void add_cross_projection(LayerKind& kind, int hidden, const AttentionSpec& a, double s,
                          double memory, const std::string& prefix) {
  const auto q = a.query_width();
  const auto u = a.key_width();
  Op query = product_op(prefix + "q", Split::kColumn, s, hidden, q, a.qkv_bias);
  query.saved = {saved_tensor(s * static_cast<double>(q), Split::kColumn)};
  kind.ops.push_back(std::move(query));
  Op kv = product_op(prefix + "kv", Split::kColumn, memory, hidden, 2 * u, a.qkv_bias);
  kv.key_value_columns = 2 * u;
  kv.saved = {key_value_tensor(2 * memory * static_cast<double>(u))};
  kind.ops.push_back(std::move(kv));
}

/// RMS norm of every head, then rotary position.
void add_head_ops(LayerKind& kind, const AttentionSpec& a, double s, const std::string& prefix) {
  const auto q = static_cast<double>(a.query_width());
  const auto u = static_cast<double>(a.key_width());
  if (a.head_norm) {
    Op norm = memory_op_spec(prefix + "head_norm", OpKind::kNorm, Split::kColumn, 2 * s * (q + u),
                             3 * s * (q + u));
    norm.replicated_parameters = 2.0 * a.head_width;
    norm.saved = {saved_tensor(s * q, Split::kColumn), key_value_tensor(s * u)};
    kind.ops.push_back(std::move(norm));
  }
  if (a.rotary) {
    kind.ops.push_back(memory_op_spec(prefix + "rotary", OpKind::kElementwise, Split::kColumn,
                                      2 * s * (q + u), 2 * s * (q + u)));
  }
}

/// A latent: the same product and norm on every tensor rank.
void add_latent(LayerKind& kind, const std::string& name, double s, int hidden, int rank,
                int beside) {
  Op down = product_op(name, Split::kSequence, s, hidden, std::int64_t{rank} + beside, false);
  down.saved = {saved_tensor(s * (rank + beside), Split::kSequence)};
  kind.ops.push_back(std::move(down));
  kind.ops.push_back(norm_op(name + "_norm", NormKind::kRms, rank, s, false));
}

void add_latent_projection(LayerKind& kind, int hidden, const AttentionSpec& a, double s,
                           const std::string& prefix) {
  const LatentSpec& latent = *a.latent;
  const std::int64_t heads = a.heads;
  const std::int64_t key = heads * (latent.nope_width + latent.rope_width);
  const std::int64_t value = heads * latent.value_width;
  const double key_elements = s * static_cast<double>(key);
  if (latent.query_rank) {
    add_latent(kind, prefix + "q_a", s, hidden, *latent.query_rank, 0);
    Op up = product_op(prefix + "q_b", Split::kColumn, s, *latent.query_rank, key, false);
    up.group = RecomputeGroup::kMlaUp;
    up.saved = {saved_tensor(key_elements, Split::kColumn, RecomputeGroup::kMlaUp)};
    kind.ops.push_back(std::move(up));
  } else {
    Op query = product_op(prefix + "q", Split::kColumn, s, hidden, key, false);
    query.saved = {saved_tensor(key_elements, Split::kColumn)};
    kind.ops.push_back(std::move(query));
  }
  add_latent(kind, prefix + "kv_a", s, hidden, latent.key_value_rank, latent.rope_width);
  Op up = product_op(prefix + "kv_b", Split::kColumn, s, latent.key_value_rank,
                     heads * (latent.nope_width + latent.value_width), false);
  up.group = RecomputeGroup::kMlaUp;
  up.saved = {saved_tensor(key_elements, Split::kColumn, RecomputeGroup::kMlaUp),
              saved_tensor(s * static_cast<double>(value), Split::kColumn, RecomputeGroup::kMlaUp)};
  kind.ops.push_back(std::move(up));
  // Q and K are put together from their rotary and other parts.
  kind.ops.push_back(memory_op_spec(prefix + "rotary", OpKind::kElementwise, Split::kColumn,
                                    4 * key_elements, 4 * key_elements));
}

Op core_op(const AttentionSpec& a, const AttentionPlace& at, bool dropout) {
  Op core;
  core.name = at.prefix + "attention";
  core.kind = OpKind::kAttention;
  core.split = Split::kColumn;
  core.group = RecomputeGroup::kAttentionCore;
  core.heads = a.heads;
  core.kv_heads = a.kv_heads;
  core.query_length = at.tokens;
  core.key_length = at.memory_tokens > 0 ? at.memory_tokens : at.tokens;
  core.head_width = a.latent ? a.latent->nope_width + a.latent->rope_width : a.head_width;
  core.value_width = a.latent ? a.latent->value_width : a.head_width;
  core.causal = a.causal && at.memory_tokens == 0;
  core.window = a.window;
  core.parameters = (a.sinks ? a.heads : 0) + static_cast<double>(a.relative_buckets) * a.heads;

  const auto save = [&](double elements, Element element, When when, RecomputeGroup group) {
    SavedTensor t = saved_tensor(elements, Split::kColumn, group);
    t.element = element;
    t.when = when;
    core.saved.push_back(t);
  };
  const double rows = static_cast<double>(a.heads) * at.tokens;
  const double output = rows * core.value_width;
  const double scores = rows * core.key_length;
  save(output, Element::kCompute, When::kFused, RecomputeGroup::kAttentionCore);
  save(rows, Element::kFloat, When::kFused, RecomputeGroup::kAttentionCore);
  save(output, Element::kCompute, When::kUnfused, RecomputeGroup::kNone);
  save(scores, Element::kCompute, When::kUnfused, RecomputeGroup::kAttentionCore);
  if (dropout) {
    save(scores, Element::kByte, When::kUnfusedDropout, RecomputeGroup::kAttentionCore);
    save(scores, Element::kCompute, When::kUnfusedDropout, RecomputeGroup::kAttentionCore);
  }
  return core;
}

/// Keys and values travel round the context ring; on the way back their gradients do, too.
LayerCollective context_ring(const AttentionSpec& a, const AttentionPlace& at) {
  const double keys = at.memory_tokens > 0 ? at.memory_tokens : at.tokens;
  LayerCollective ring;
  ring.name = at.prefix + "keys and values";
  ring.axis = Axis::kContext;
  ring.forward = ring.backward = Collective::kAllGather;
  ring.forward_count = 1;
  ring.backward_count = 2;
  ring.overlaps_attention = true;
  if (a.latent) {
    ring.elements =
        keys * a.heads * (a.latent->nope_width + a.latent->rope_width + a.latent->value_width);
    ring.divided_by_tensor = true;
  } else {
    ring.elements = 2 * keys * static_cast<double>(a.key_width());
    ring.divided_by_kv_heads = true;
  }
  return ring;
}

/// Elements that tensor ranks gather before the first split products.
double gathered_elements(const BlockSpec& block, const AttentionSpec& a, const AttentionPlace& at) {
  const double s = at.tokens;
  if (!a.latent) return (s + at.memory_tokens) * block.hidden;
  const double query = a.latent->query_rank ? *a.latent->query_rank : block.hidden;
  return s * (query + a.latent->key_value_rank + a.latent->rope_width);
}

}  // namespace

void add_attention(LayerKind& kind, const BlockSpec& block, const AttentionSpec& a,
                   const AttentionPlace& at) {
  const double s = at.tokens;
  if (a.latent) {
    add_latent_projection(kind, block.hidden, a, s, at.prefix);
  } else if (at.memory_tokens > 0) {
    add_cross_projection(kind, block.hidden, a, s, at.memory_tokens, at.prefix);
  } else {
    add_self_projection(kind, block.hidden, a, s, at.prefix);
  }
  if (!a.latent) add_head_ops(kind, a, s, at.prefix);
  kind.ops.push_back(core_op(a, at, block.dropout && a.dropout));
  const std::int64_t inner =
      a.latent ? std::int64_t{a.heads} * a.latent->value_width : a.query_width();
  kind.ops.push_back(
      product_op(at.prefix + "projection", Split::kRow, s, inner, block.hidden, a.output_bias));
  kind.collectives.push_back(
      column_input(at.prefix + "attention input", gathered_elements(block, a, at)));
  kind.collectives.push_back(context_ring(a, at));
  if (!block.parallel) {
    kind.collectives.push_back(row_output(at.prefix + "attention output", s * block.hidden));
  }
  if (at.prefix.empty()) {
    kind.limits.tensor_divides.emplace_back("heads", a.heads);
    kind.limits.kv_heads = a.latent ? 0 : a.kv_heads;
  }
}

}  // namespace towtank::detail
