// SPDX-License-Identifier: Apache-2.0
#include "model/graph/shard.h"

#include <algorithm>
#include <cmath>

#include "core/contracts.h"

namespace towtank {
namespace {

// Passes over the score matrix of an unfused attention core, in elements of the compute dtype (a
// mask byte counts its own size): every kernel reads and writes it.
//   forward   scores written; softmax (softmax_passes()); weighted sum reads
//   dropout   reads, writes
//   backward  dP written; softmax backward; dV reads P; dQ, dK read dS
//   dropout   reads, writes
// Source: Megatron-LM core/transformer/dot_product_attention.py (baddbmm, fused softmax, dropout,
// bmm).
constexpr double kScorePasses = 2;
constexpr double kScorePassesBackward = 4;
constexpr double kScorePassesDropout = 2;
constexpr int kUnfusedKernels = 4;          // baddbmm, softmax, bmm, transposed copy of the output
constexpr int kUnfusedKernelsBackward = 6;  // four products, softmax backward, copy
// Products that the core computes: 2 forward; backward 4, and a fused one repeats the scores.
constexpr double kBackwardWork = 2.0;
constexpr double kFusedBackwardWork = 2.5;  // source: Dao 2023, FlashAttention-2, sec. 4.1
constexpr double kFloatBytes = 4;
// Four and three elements of two bytes (blocks.cpp, add_head_product).
constexpr double kFusedLossTraffic = 8;
constexpr double kFusedLossTrafficBackward = 6;
// No rank holds or moves more in one op: larger values saturate, so that sums stay exact int64.
constexpr double kMaxSavedBytes = 1e15;
constexpr double kMaxTrafficBytes = 1e17;

Bytes saturated(double bytes, double limit) { return bytes_from(std::min(bytes, limit)); }

/// A real number of rows as a kernel gets them.
std::int64_t whole(double real) {
  return static_cast<std::int64_t>(std::ceil(std::min(real, 1e18) - 1e-9));
}

/// Everything that the loops below need, worked out once a call.
struct Context {
  const FrameworkRules& rules;
  double t, c, e, tau, b;
  double sequence;  ///< t under sequence parallelism, else 1
  double kv;        ///< ranks over which K and V are divided: min(t, kv heads)
  double load;
  DType product;  ///< of matrix products
  DType compute;  ///< of everything else
  double bytes;   ///< of one element of `compute`
  bool fused, dropout;
};

Context context_of(const LayerKind& kind, const ShardDegrees& d, const FrameworkRules& rules,
                   DType precision, double load) {
  const double t = d.tensor;
  const double heads = static_cast<double>(kind.limits.kv_heads);
  const bool low = bytes_per_element(precision) < 2;
  const DType compute = low ? DType::kBf16 : precision;
  return {.rules = rules,
          .t = t,
          .c = static_cast<double>(d.context),
          .e = static_cast<double>(d.expert),
          .tau = static_cast<double>(d.expert_tensor),
          .b = static_cast<double>(d.microbatch),
          .sequence = d.sequence_parallel ? t : 1.0,
          .kv = heads > 0 ? std::min(t, heads) : t,
          .load = load,
          .product = precision,
          .compute = compute,
          .bytes = bytes_per_element(compute),
          .fused = rules.fused_attention.value,
          .dropout = rules.dropout.value};
}

/// Padded vocabulary over the real one, and its columns on one rank.
struct Vocabulary {
  double padding = 1;
  std::int64_t local = 0;
};
Vocabulary vocabulary_of(std::int64_t columns, const Context& x) {
  const auto t = static_cast<std::int64_t>(x.t);
  const std::int64_t multiple = std::max(1, x.rules.vocabulary_multiple.value) * t;
  const std::int64_t padded = (columns + multiple - 1) / multiple * multiple;
  return {static_cast<double>(padded) / static_cast<double>(columns), padded / t};
}

/// Share of an op's rows (or moved elements) that one rank of one microbatch gets.
double row_share(Split split, bool expert, const Context& x) {
  if (expert) return x.b / (x.c * x.t) * x.tau * x.load;
  return x.b / x.c / (split == Split::kSequence ? x.sequence : 1.0);
}

/// Ranks that share the features of an op.
double feature_ranks(Split split, bool expert, const Context& x) {
  switch (split) {
    case Split::kReplicate:
    case Split::kSequence:
      return 1;
    case Split::kColumn:
    case Split::kRow:
      break;
  }
  return expert ? x.tau : x.t;
}

bool applies(SavedTensor::When when, const Context& x) {
  switch (when) {
    case SavedTensor::When::kAlways:
      return true;
    case SavedTensor::When::kFused:
      return x.fused;
    case SavedTensor::When::kUnfused:
      return !x.fused;
    case SavedTensor::When::kDropout:
      return x.dropout;
    case SavedTensor::When::kUnfusedDropout:
      return !x.fused && x.dropout;
  }
  return false;
}

double element_bytes(SavedTensor::Element element, const Context& x) {
  switch (element) {
    case SavedTensor::Element::kCompute:
      return x.bytes;
    case SavedTensor::Element::kFloat:
      return kFloatBytes;
    case SavedTensor::Element::kByte:
      return 1;
  }
  return x.bytes;
}

/// Columns of a product on one rank.
std::int64_t local_columns(const Op& op, const Context& x) {
  if (op.split != Split::kColumn) return op.columns;
  if (op.vocabulary) return vocabulary_of(op.columns, x).local;
  const double kv = static_cast<double>(op.key_value_columns);
  const double ranks = feature_ranks(op.split, op.expert, x);
  return whole((static_cast<double>(op.columns) - kv) / ranks + kv / x.kv);
}

void shard_product(LocalOp& out, const Op& op, const Context& x) {
  const bool row = op.split == Split::kRow;
  const std::int64_t batch = op.expert ? whole(static_cast<double>(op.groups) / x.e) : op.groups;
  const double rows = op.rows * row_share(op.split, op.expert, x);
  const std::int64_t m = std::max<std::int64_t>(1, whole(rows / static_cast<double>(batch)));
  const std::int64_t n = local_columns(op, x);
  const std::int64_t k =
      row ? whole(static_cast<double>(op.inner) / feature_ranks(op.split, op.expert, x)) : op.inner;
  const DType dtype = op.vocabulary ? x.compute : x.product;
  out.forward = matmul(dtype, batch, m, n, k);
  out.input_grad = matmul(dtype, batch, m, k, n);
  out.weight_grad = matmul(dtype, batch, k, n, m);
  if (op.kind == OpKind::kConvolution && op.moved_elements > 0) {
    const double weights =
        static_cast<double>(batch) * static_cast<double>(n) * static_cast<double>(k);
    const double moved = op.moved_elements * row_share(op.split, false, x);
    const Bytes traffic = saturated((weights + moved) * bytes_per_element(dtype), kMaxTrafficBytes);
    for (OpSignature* s : {&out.forward, &out.input_grad, &out.weight_grad}) s->traffic = traffic;
  }
  // Rows of all experts add up to the routed tokens, though one expert's are rounded up.
  const double exact = rows / (static_cast<double>(batch) * static_cast<double>(m));
  for (OpSignature* s : {&out.forward, &out.input_grad, &out.weight_grad}) {
    s->kind = op.kind;
    s->work = exact * s->work;
  }
}

/// Some models drop hidden values, but no attention probabilities.
bool drops_probabilities(const Op& op) {
  return std::any_of(op.saved.begin(), op.saved.end(), [](const SavedTensor& t) {
    return t.when == SavedTensor::When::kUnfusedDropout;
  });
}

void shard_attention(LocalOp& out, const Op& op, const Context& x) {
  const double heads = op.heads / x.t;
  const double kv_heads = op.kv_heads / x.kv;
  const double queries = op.query_length / x.c;
  OpSignature s;
  s.kind = OpKind::kAttention;
  s.dtype = x.compute;
  s.causal = op.causal;
  s.fused = x.fused;
  s.batch = whole(x.b * heads);
  s.m = whole(queries);
  s.n = op.key_length;
  s.k = op.head_width;
  s.work = Flop{forward_flop(op, x.fused).value * x.b / (x.t * x.c)};
  // Q and O by query head; K and V by key head, those of every context rank in turn.
  const double read =
      heads * queries * op.head_width + kv_heads * op.key_length * (op.head_width + op.value_width);
  const double written = heads * queries * op.value_width;
  const double scores = x.fused ? 0 : heads * queries * op.key_length;
  const bool dropout = x.dropout && drops_probabilities(op);
  const double mask = dropout ? scores / x.bytes : 0;
  const double passes = dropout ? kScorePassesDropout : 0;
  const auto traffic = [&](double elements) {
    return saturated(elements * x.bytes * x.b, kMaxTrafficBytes);
  };
  out.forward = s;
  out.forward.traffic =
      traffic(read + written + scores * (kScorePasses + softmax_passes(s) + passes) + mask);
  out.forward.kernels = x.fused ? 1 : kUnfusedKernels + (dropout ? 1 : 0);
  out.input_grad = s;
  out.input_grad.pass = Pass::kInputGrad;
  out.input_grad.work = (x.fused ? kFusedBackwardWork : kBackwardWork) * s.work;
  // Reads Q, K, V, O and dO; writes dQ, dK, dV.
  const double backward = kScorePassesBackward + softmax_passes(out.input_grad) + passes;
  out.input_grad.traffic = traffic(2 * read + 2 * written + scores * backward + mask);
  out.input_grad.kernels = x.fused ? 1 : kUnfusedKernelsBackward + (dropout ? 1 : 0);
  out.weight_grad = memory_op(OpKind::kAttention, x.compute, Bytes{0}, Flop{0}, 0);
}

void shard_memory_op(LocalOp& out, const Op& op, const Context& x) {
  double share = row_share(op.split, op.expert, x);
  if (op.kind != OpKind::kEmbedding) share /= feature_ranks(op.split, op.expert, x);
  int kernels = 1;
  if (op.kind == OpKind::kElementwise) kernels = std::max(1, x.rules.elementwise_kernels.value);
  const auto side = [&](double moved, double flop) {
    return memory_op(op.kind, x.compute, saturated(moved * share, kMaxTrafficBytes),
                     Flop{flop * share}, moved > 0 || flop > 0 ? kernels : 0);
  };
  double forward = op.moved_elements * x.bytes;
  double backward = op.moved_elements_backward * x.bytes;
  if (op.kind == OpKind::kCrossEntropy) {
    // The graph counts what a fused loss of two-byte logits moves.
    forward *= x.rules.loss_traffic.value / kFusedLossTraffic;
    backward *= x.rules.loss_traffic_backward.value / kFusedLossTrafficBackward;
  }
  out.forward = side(forward, op.flop);
  out.input_grad = side(backward, op.flop);
  out.weight_grad = side(0, 0);
}

LocalOp shard_op(const Op& op, const Context& x) {
  LocalOp out;
  out.op = &op;
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kConvolution:
      shard_product(out, op, x);
      break;
    case OpKind::kAttention:
      shard_attention(out, op, x);
      break;
    case OpKind::kNorm:
    case OpKind::kElementwise:
    case OpKind::kEmbedding:
    case OpKind::kCrossEntropy:
    case OpKind::kRouting:
    case OpKind::kOptimizer:
      shard_memory_op(out, op, x);
      break;
  }
  out.input_grad.pass = Pass::kInputGrad;
  out.weight_grad.pass = Pass::kWeightGrad;
  return out;
}

void add_parameters(LocalLayer& layer, const Op& op, const Context& x) {
  const double experts = op.expert ? x.e : 1.0;
  double local = op.parameters / (feature_ranks(op.split, op.expert, x) * experts);
  if (op.vocabulary && op.columns > 0) local *= vocabulary_of(op.columns, x).padding;
  if (op.key_value_columns > 0) {
    local =
        op.parameters * static_cast<double>(local_columns(op, x)) / static_cast<double>(op.columns);
  }
  (op.expert ? layer.expert_parameters : layer.dense_parameters) +=
      local + op.replicated_parameters / experts;
}

/// Sums in elements; rounded to bytes once.
struct SavedSums {
  double layer_input = 0, logits = 0;
  std::array<double, kRecomputeGroupCount> by_group{};
};

void add_saved(SavedSums& sums, const Op& op, const Context& x) {
  for (const SavedTensor& tensor : op.saved) {
    if (!applies(tensor.when, x)) continue;
    const double elements = tensor.elements * row_share(tensor.split, tensor.expert, x);
    const double ranks = tensor.key_value ? x.kv : feature_ranks(tensor.split, tensor.expert, x);
    if (tensor.logits) {
      const double padding = op.columns > 0 ? vocabulary_of(op.columns, x).padding : 1.0;
      sums.logits += elements / ranks * padding * x.rules.logits_bytes.value;
      continue;
    }
    const double bytes = elements / ranks * element_bytes(tensor.element, x);
    (tensor.layer_input ? sums.layer_input
                        : sums.by_group[static_cast<std::size_t>(tensor.group)]) += bytes;
  }
}

SavedBytes saved_of(const SavedSums& sums) {
  SavedBytes saved;
  saved.layer_input = saturated(sums.layer_input, kMaxSavedBytes);
  saved.logits = saturated(sums.logits, kMaxSavedBytes);
  for (std::size_t g = 0; g < kRecomputeGroupCount; ++g) {
    saved.by_group[g] = saturated(sums.by_group[g], kMaxSavedBytes);
  }
  return saved;
}

LocalCollective shard_collective(const LayerCollective& call, const Context& x) {
  LocalCollective out;
  out.collective = &call;
  out.axis = call.axis;
  out.forward = call.forward;
  out.backward = call.backward;
  out.forward_count = call.forward_count;
  out.backward_count = call.backward_count;
  const bool sequence = x.sequence > 1;
  if (sequence && call.with_sequence_parallel) {
    const auto& with = *call.with_sequence_parallel;
    out.forward = with.forward;
    out.backward = with.backward;
    out.forward_count = with.forward_count;
    out.backward_count = with.backward_count;
    out.hidden_backward_count = with.hidden_backward_count;
  }
  double elements = call.elements * x.b;
  if (call.axis != Axis::kContext) elements /= x.c;
  if (call.divided_by_kv_heads) {
    elements /= x.kv;
  } else if (call.divided_by_tensor) {
    elements /= x.t;
  }
  // Routed tokens: a rank's own ones to be dispatched, those of the whole group to be gathered.
  if (call.axis == Axis::kExpert) elements *= x.load / x.sequence;
  if (call.axis == Axis::kExpertTensor) elements *= x.load * (sequence ? x.tau / x.t : 1.0);
  out.payload = saturated(elements * x.bytes, kMaxSavedBytes);
  return out;
}

/// Buffers that live only while one op runs.
double transient_of(const Op& op, const Context& x) {
  if (op.kind != OpKind::kAttention || x.fused) return 0;
  // The gradient of the scores; its softmax is undone in place.
  return op.heads / x.t * op.query_length / x.c * op.key_length * x.b * x.bytes;
}

}  // namespace

Bytes SavedBytes::without_recompute() const {
  Bytes sum = layer_input;
  for (const Bytes group : by_group) sum += group;
  return sum;
}

LocalLayer shard(const LayerKind& kind, const ShardDegrees& degrees, const FrameworkRules& rules,
                 DType precision, double expert_load) {
  EXPECTS(degrees.tensor > 0 && degrees.context > 0 && degrees.expert > 0);
  EXPECTS(degrees.expert_tensor > 0 && degrees.microbatch > 0 && expert_load > 0);
  const Context x = context_of(kind, degrees, rules, precision, expert_load);
  LocalLayer layer;
  layer.ops.reserve(kind.ops.size());
  layer.collectives.reserve(kind.collectives.size());
  SavedSums saved;
  double transient = 0;
  for (const Op& op : kind.ops) {
    add_parameters(layer, op, x);
    add_saved(saved, op, x);
    if (op.dropout_only && !x.dropout) continue;
    layer.ops.push_back(shard_op(op, x));
    transient = std::max(transient, transient_of(op, x));
  }
  layer.saved = saved_of(saved);
  layer.transient = saturated(transient, kMaxSavedBytes);
  for (const LayerCollective& call : kind.collectives) {
    layer.collectives.push_back(shard_collective(call, x));
    // Dispatched tokens are sent from one buffer into another.
    if (call.axis == Axis::kExpert && degrees.expert > 1) {
      layer.transient = std::max(layer.transient, 2 * layer.collectives.back().payload);
    }
  }
  return layer;
}

}  // namespace towtank
