// SPDX-License-Identifier: Apache-2.0
#include "model/graph/model_graph.h"

#include <algorithm>

namespace towtank {
namespace {

double parameters_of(const LayerKind& kind) {
  double sum = 0;
  for (const Op& op : kind.ops) sum += op.parameters + op.replicated_parameters;
  return sum;
}

/// Parameters that do not touch a token because its router chose other experts.
double idle_parameters_of(const LayerKind& kind, int sample_tokens) {
  double sum = 0;
  for (const Op& op : kind.ops) {
    if (!op.expert || op.groups <= 1 || sample_tokens <= 0) continue;
    const double chosen = op.rows / sample_tokens;
    const double idle = std::max(0.0, 1.0 - chosen / static_cast<double>(op.groups));
    sum += idle * (op.parameters + op.replicated_parameters);
  }
  return sum;
}

/// Scores that a query needs under a causal sliding window, on average.
double windowed_keys(double keys, double window) {
  // Of w keys the first w - 1 queries miss some: w (w - 1) / 2 over all of them.
  return window - window * (window - 1) / (2 * keys);
}

}  // namespace

double attention_keys_run(const Op& op, bool fused) {
  const double keys = op.key_length;
  if (!op.causal || !fused) return keys;
  if (op.window && *op.window < op.key_length) {
    return std::min(windowed_keys(keys, *op.window), keys / 2);
  }
  return keys / 2;
}

Flop forward_flop(const Op& op, bool fused) {
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kConvolution:
      return Flop{2 * op.rows * static_cast<double>(op.inner) * static_cast<double>(op.columns)};
    case OpKind::kAttention:
      return Flop{2.0 * op.heads * op.query_length * attention_keys_run(op, fused) *
                  (op.head_width + op.value_width)};
    case OpKind::kNorm:
    case OpKind::kElementwise:
    case OpKind::kEmbedding:
    case OpKind::kCrossEntropy:
    case OpKind::kRouting:
    case OpKind::kOptimizer:
      break;
  }
  return Flop{op.flop};
}

double ModelGraph::total_parameters() const {
  std::vector<double> by_kind;
  by_kind.reserve(kinds.size());
  for (const LayerKind& kind : kinds) by_kind.push_back(parameters_of(kind));
  double sum = -mtp_parameters;
  for (const Layer& layer : layers) sum += by_kind[static_cast<std::size_t>(layer.kind.value)];
  return sum;
}

double ModelGraph::active_parameters() const {
  double sum = total_parameters();
  for (const Layer& layer : layers) {
    if (!layer.beyond_total) sum -= idle_parameters_of(kinds[layer.kind], sample_tokens);
  }
  return sum;
}

int ModelGraph::free_layers() const {
  return static_cast<int>(std::count_if(layers.begin(), layers.end(),
                                        [](const Layer& l) { return l.pin == Pin::kFree; }));
}

std::vector<double> ModelGraph::cut_elements() const {
  // needed[i]: the largest tensor of layer i, and the last layer that reads it.
  struct Produced {
    double elements = 0;
    int last_reader = -1;
  };
  std::vector<Produced> produced(layers.size());
  for (const Edge& edge : edges) {
    Produced& p = produced[static_cast<std::size_t>(edge.from.value)];
    p.elements = std::max(p.elements, edge.elements);
    p.last_reader = std::max(p.last_reader, edge.to.value);
  }
  std::vector<double> cuts;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    if (layers[LayerId{i}].pin != Pin::kFree) continue;
    double sum = 0;
    for (int j = 0; j < i; ++j) {
      const Produced& p = produced[static_cast<std::size_t>(j)];
      if (p.last_reader >= i) sum += p.elements;
    }
    cuts.push_back(sum);
  }
  return cuts;
}

ForwardWork forward_work(const LayerKind& kind) {
  ForwardWork work;
  for (const Op& op : kind.ops) {
    if (op.kind == OpKind::kMatmul || op.kind == OpKind::kConvolution) {
      work.matmul += forward_flop(op, true);
    } else if (op.kind == OpKind::kAttention) {
      const double keys = op.window ? std::min(*op.window, op.key_length) : op.key_length;
      work.attention_counted +=
          Flop{2.0 * op.heads * op.query_length * keys * (op.head_width + op.value_width)};
      work.attention_run += forward_flop(op, true);
    }
  }
  return work;
}

ForwardWork forward_work(const ModelGraph& graph) {
  ForwardWork sum;
  for (const Layer& layer : graph.layers) {
    const ForwardWork work = forward_work(graph.kinds[layer.kind]);
    sum.matmul += work.matmul;
    sum.attention_counted += work.attention_counted;
    sum.attention_run += work.attention_run;
  }
  return sum;
}

}  // namespace towtank
