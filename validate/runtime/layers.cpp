// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/contracts.h"

namespace towtank {
namespace {

/// GPT-2's standard deviation (Radford et al. 2019), for every product.
constexpr double kInitial = 0.02;

std::unique_ptr<Flat> make_flat(LayerWorld& world, bool expert) {
  return std::make_unique<Flat>(expert ? *world.groups->expert_data : *world.groups->data,
                                *world.groups->tensor, world.state);
}

/// A parameter of `whole`, divided over tensor ranks along `split` (-1: not).
Parameter divided(const LayerWorld& world, std::string name, std::vector<std::int64_t> whole,
                  int split, double initial) {
  Parameter p;
  p.name = std::move(name);
  p.whole = std::move(whole);
  if (world.groups->tensor->size() > 1) {
    p.split = split;
    p.part = world.groups->tensor->rank();
    p.parts = world.groups->tensor->size();
  }
  if (p.split < 0) p.part = 0, p.parts = 1;
  p.initial = initial;
  return p;
}

NormParameter add_norm(LayerWorld& world, Flat& flat, const std::string& name, std::int64_t width,
                       bool layer_norm, bool partial) {
  Parameter weight = divided(world, name + ".weight", {width}, -1, 0);
  weight.fill = 1;
  weight.partial = partial;
  NormParameter norm{&flat, flat.add(weight), std::nullopt};
  if (layer_norm) {
    Parameter bias = divided(world, name + ".bias", {width}, -1, 0);
    bias.partial = partial;
    norm.bias = flat.add(bias);
  }
  return norm;
}

/// Halves of a head side by side; x is [s, b, heads, d].
at::Tensor rotate(const at::Tensor& x, const std::pair<at::Tensor, at::Tensor>& rotation) {
  const std::int64_t half = x.size(3) / 2;
  const at::Tensor turned = at::cat({x.narrow(3, half, half).neg(), x.narrow(3, 0, half)}, 3);
  return x.mul(rotation.first).add(turned.mul(rotation.second));
}

/// Softmax(q k') v of q [s, b, kv, g, d], k and v [s, b, kv, d] -> [s, b, kv g d].
at::Tensor core_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& hidden) {
  const std::int64_t s = q.size(0), b = q.size(1), kv = q.size(2), g = q.size(3), d = q.size(4);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const at::Tensor queries = q.mul(scale).permute({1, 2, 3, 0, 4}).reshape({b * kv, g * s, d});
  const at::Tensor keys = k.permute({1, 2, 3, 0}).reshape({b * kv, d, s});
  const at::Tensor values = v.permute({1, 2, 0, 3}).reshape({b * kv, s, d});
  at::Tensor scores = queries.bmm(keys).view({b * kv, g, s, s});
  scores = scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor mixed = scores.softmax(3).view({b * kv, g * s, s}).bmm(values);
  return mixed.view({b, kv, g, s, d}).permute({3, 0, 1, 2, 4}).reshape({s, b, kv * g * d});
}

}  // namespace

const at::Tensor& LayerWorld::hidden_keys(std::optional<int> window) {
  const auto [found, is_new] = hidden_.try_emplace(window.value_or(0));
  if (is_new) {
    const at::Tensor position = at::arange(shape.tokens);
    const at::Tensor distance = position.unsqueeze(1).sub(position.unsqueeze(0));
    found->second = distance.lt(0);
    if (window) found->second.logical_or_(distance.ge(*window));
  }
  return found->second;
}

const std::pair<at::Tensor, at::Tensor>& LayerWorld::rotation(std::int64_t d) {
  constexpr double kBase = 10000;
  const auto [found, is_new] = rotation_.try_emplace(d);
  if (is_new) {
    const auto fp64 = at::TensorOptions().dtype(at::kDouble);
    const at::Tensor rate = at::pow(kBase, at::arange(0, d, 2, fp64).div(-static_cast<double>(d)));
    const at::Tensor angle = at::arange(0, shape.tokens, 1, fp64).unsqueeze(1).mul(rate);
    const at::Tensor both = at::cat({angle, angle}, 1).view({shape.tokens, 1, 1, d});
    found->second = {both.cos().to(state.dtype), both.sin().to(state.dtype)};
  }
  return found->second;
}

BlockLayer::BlockLayer(LayerWorld& world, int number)
    : world_(world), shape_(world.shape.blocks[static_cast<std::size_t>(number)]) {
  const std::string prefix = "layer." + std::to_string(number) + ".";
  add_dense_parameters(prefix);
  if (shape_.experts > 0) add_expert_parameters(prefix);
  for (auto& flat : unit_.flats) flat->complete();
}

void BlockLayer::add_dense_parameters(const std::string& prefix) {
  unit_.flats.push_back(make_flat(world_, false));
  Flat& flat = *unit_.flats.back();
  const bool divided_tokens = world_.tensors.sequence_parallel;
  const bool several = world_.groups->tensor->size() > 1;
  const std::int64_t h = world_.shape.hidden;
  // Partial gradients first, see Flat::add.
  if (shape_.head_norm) {
    query_norm_ = add_norm(world_, flat, prefix + "query_norm", shape_.head_width, false, several);
    key_norm_ = add_norm(world_, flat, prefix + "key_norm", shape_.head_width, false, several);
  }
  norm1_ = add_norm(world_, flat, prefix + "norm1", h, shape_.layer_norm, divided_tokens);
  norm2_ = add_norm(world_, flat, prefix + "norm2", h, shape_.layer_norm, divided_tokens);
  const auto row_bias = [&](const std::string& name) {
    Parameter bias = divided(world_, name, {h}, -1, 0);
    bias.partial = divided_tokens;
    return flat.add(bias);
  };
  if (shape_.projection_bias) projection_.bias = row_bias(prefix + "projection.bias");
  if (shape_.experts == 0 && shape_.mlp_bias) fc2_.bias = row_bias(prefix + "fc2.bias");
  if (shape_.experts > 0) {
    Parameter weight = divided(world_, prefix + "router.weight", {shape_.experts, h}, -1, kInitial);
    weight.partial = divided_tokens;
    router_ = {&flat, flat.add(weight), shape_.experts, h, std::nullopt};
  }
  add_products(flat, prefix);
}

void BlockLayer::add_products(Flat& flat, const std::string& prefix) {
  const std::int64_t h = world_.shape.hidden;
  const std::int64_t t = world_.groups->tensor->size();
  const std::int64_t q = shape_.heads * shape_.head_width;
  const std::int64_t u = shape_.kv_heads * shape_.head_width;
  const auto column = [&](const std::string& name, std::int64_t rows) {
    return flat.add(divided(world_, prefix + name + ".weight", {rows, h}, 0, kInitial));
  };
  const auto column_bias = [&](const std::string& name, std::int64_t rows) {
    return flat.add(divided(world_, prefix + name + ".bias", {rows}, 0, 0));
  };
  qkv_ = {&flat, column("query", q), (q + 2 * u) / t, h, std::nullopt};
  column("key", u);
  column("value", u);
  if (shape_.qkv_bias) {
    qkv_.bias = column_bias("query", q);
    column_bias("key", u);
    column_bias("value", u);
  }
  const auto row = [&](const std::string& name, std::int64_t columns, LinearParameter& p) {
    p.flat = &flat;
    p.weight = flat.add(divided(world_, prefix + name + ".weight", {h, columns}, 1, kInitial));
    p.rows = h;
    p.columns = columns / t;
  };
  row("projection", q, projection_);
  if (shape_.experts > 0) return;
  fc1_ = {&flat, column("fc1", shape_.width), (shape_.gated ? 2 : 1) * shape_.width / t, h,
          std::nullopt};
  if (shape_.gated) column("fc1_up", shape_.width);
  if (shape_.mlp_bias) {
    fc1_.bias = column_bias("fc1", shape_.width);
    if (shape_.gated) column_bias("fc1_up", shape_.width);
  }
  row("fc2", shape_.width, fc2_);
}

void BlockLayer::add_expert_parameters(const std::string& prefix) {
  unit_.flats.push_back(make_flat(world_, true));
  Flat& flat = *unit_.flats.back();
  const std::int64_t h = world_.shape.hidden, f = shape_.width;
  const std::int64_t own = shape_.experts / world_.groups->expert->size();
  const std::int64_t first = own * world_.groups->expert->rank();
  for (std::int64_t e = first; e < first + own; ++e) {
    const std::string name = prefix + "expert." + std::to_string(e) + ".";
    const auto add = [&](const std::string& part, std::int64_t rows, std::int64_t columns) {
      Parameter p;
      p.name = name + part + ".weight";
      p.whole = {rows, columns};
      p.initial = kInitial;
      return flat.add(p);
    };
    expert_fc1_.push_back({&flat, add("fc1", f, h), 2 * f, h, std::nullopt});
    add("fc1_up", f, h);
    expert_fc2_.push_back({&flat, add("fc2", h, f), h, f, std::nullopt});
  }
}

at::Tensor BlockLayer::attention(const at::Tensor& qkv) const {
  const std::int64_t s = qkv.size(0), b = qkv.size(1), d = shape_.head_width;
  const std::int64_t t = world_.groups->tensor->size();
  const std::int64_t heads = shape_.heads / t, kv = shape_.kv_heads / t;
  at::Tensor q = qkv.narrow(2, 0, heads * d).reshape({s, b, heads, d});
  at::Tensor k = qkv.narrow(2, heads * d, kv * d).reshape({s, b, kv, d});
  const at::Tensor v = qkv.narrow(2, (heads + kv) * d, kv * d).reshape({s, b, kv, d});
  if (shape_.head_norm) {
    q = norm(q, query_norm_);
    k = norm(k, key_norm_);
  }
  if (shape_.rotary) {
    q = rotate(q, world_.rotation(d));
    k = rotate(k, world_.rotation(d));
  }
  return core_attention(q.view({s, b, kv, heads / kv, d}), k, v, world_.hidden_keys(shape_.window));
}

at::Tensor BlockLayer::run_experts(const at::Tensor& rows,
                                   const std::vector<std::int64_t>& counts) {
  std::vector<at::Tensor> outputs;
  std::int64_t first = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const at::Tensor own = rows.narrow(0, first, counts[e]);
    first += counts[e];
    const at::Tensor inner = gated_silu(plain_linear(own, expert_fc1_[e], world_.tensors));
    outputs.push_back(plain_linear(inner, expert_fc2_[e], world_.tensors));
  }
  return at::cat(outputs, 0);
}

at::Tensor BlockLayer::experts(const at::Tensor& x) {
  ProcessGroup& group = *world_.groups->expert;
  const std::int64_t ranks = group.size(), own = shape_.experts / ranks, k = shape_.chosen;
  const at::Tensor tokens = x.reshape({-1, x.size(-1)});
  const at::Tensor scores = plain_linear(tokens, router_, world_.tensors).softmax(1);
  auto [weight, expert] = scores.topk(k, 1);
  weight = weight.div(weight.sum(1, true));

  // Rows in the order of their experts, so of the ranks that have these.
  const at::Tensor order = expert.reshape(-1).argsort(/*stable=*/true, 0, false);
  const at::Tensor sent = at::bincount(expert.reshape(-1), {}, shape_.experts);
  at::Tensor got = at::empty_like(sent);
  group.all_to_all(got, sent, {}, {}).wait();
  const auto by_rank = [&](const at::Tensor& counts) {
    const at::Tensor sums = counts.view({ranks, own}).sum(1);
    return std::vector<std::int64_t>(sums.data_ptr<std::int64_t>(),
                                     sums.data_ptr<std::int64_t>() + ranks);
  };
  const std::vector<std::int64_t> out_rows = by_rank(sent), in_rows = by_rank(got);
  const at::Tensor mine =
      exchange_rows(tokens.index_select(0, order.div(k, "floor")), out_rows, in_rows, group);

  // What came is ordered by rank, then expert; the products want it by expert.
  const at::Tensor which = at::arange(own).repeat({ranks}).repeat_interleave(got);
  const at::Tensor by_expert = which.argsort(/*stable=*/true, 0, false);
  const at::Tensor per_expert = got.view({ranks, own}).sum(0);
  const std::vector<std::int64_t> counts(per_expert.data_ptr<std::int64_t>(),
                                         per_expert.data_ptr<std::int64_t>() + own);
  at::Tensor rows = run_experts(mine.index_select(0, by_expert), counts);
  rows = rows.index_select(0, by_expert.argsort());
  rows = exchange_rows(rows, in_rows, out_rows, group);
  const at::Tensor back = rows.index_select(0, order.argsort()).view({-1, k, x.size(-1)});
  return back.mul(weight.unsqueeze(2)).sum(1).view(x.sizes());
}

at::Tensor BlockLayer::forward(const at::Tensor& x, bool recompute_core) {
  TensorContext& tensors = world_.tensors;
  const at::Tensor qkv = column_linear(norm(x, norm1_), qkv_, tensors);
  // Head norms have parameters, so they are never run again by themselves.
  const bool again = recompute_core && !shape_.head_norm;
  const at::Tensor mixed =
      again ? recomputed(
                  qkv, [this](const at::Tensor& in) { return attention(in); }, *world_.recorder)
            : attention(qkv);
  const at::Tensor y = x.add(row_linear(mixed, projection_, tensors));
  const at::Tensor inner = norm(y, norm2_);
  if (shape_.experts > 0) return y.add(experts(inner));
  const at::Tensor up = column_linear(inner, fc1_, tensors);
  const at::Tensor active = shape_.gated  ? gated_silu(up)
                            : shape_.relu ? at::relu(up)
                                          : at::gelu(up, "tanh");
  return y.add(row_linear(active, fc2_, tensors));
}

Table::Table(LayerWorld& world, const std::string& name) {
  unit_.flats.push_back(make_flat(world, false));
  Flat& flat = *unit_.flats.back();
  const std::int64_t t = world.groups->tensor->size();
  const std::size_t index =
      flat.add(divided(world, name, {world.shape.vocabulary, world.shape.hidden}, 0, kInitial));
  parameter_ = {&flat, index, world.shape.vocabulary / t, world.shape.hidden, std::nullopt};
  flat.complete();
}

EmbeddingLayer::EmbeddingLayer(LayerWorld& world, Table& table) : world_(world), table_(table) {
  if (world.shape.positions == 0) return;
  unit_.flats.push_back(make_flat(world, false));
  Parameter positions =
      divided(world, "positions", {world.shape.positions, world.shape.hidden}, -1, kInitial);
  positions.partial = world.tensors.sequence_parallel;
  unit_.flats.back()->add(positions);
  unit_.flats.back()->complete();
}

at::Tensor EmbeddingLayer::forward(const at::Tensor& tokens) {
  const at::NoGradGuard no_gradients;
  const LinearParameter& p = table_.parameter();
  ProcessGroup& group = *world_.groups->tensor;
  const std::int64_t s = tokens.size(0), b = tokens.size(1);
  const at::Tensor own = tokens.reshape(-1).sub(group.rank() * p.rows);
  at::Tensor x = p.flat->value(p.weight).index_select(0, own.clamp(0, p.rows - 1));
  if (group.size() > 1) {
    x.masked_fill_(own.lt(0).logical_or_(own.ge(p.rows)).unsqueeze(1), 0);
  }
  x = x.view({s, b, p.columns});
  std::int64_t first = 0;
  if (world_.tensors.sequence_parallel) {
    x = scatter_tokens(x, group);
    first = group.rank() * x.size(0);
  } else {
    group.all_reduce(x).wait();
  }
  if (!unit_.flats.empty()) {
    x.add_(unit_.flats.front()->value(0).narrow(0, first, x.size(0)).unsqueeze(1));
  }
  return x;
}

void EmbeddingLayer::backward(const at::Tensor& tokens, const at::Tensor& gradient) {
  const at::NoGradGuard no_gradients;
  const LinearParameter& p = table_.parameter();
  ProcessGroup& group = *world_.groups->tensor;
  const bool divided_tokens = world_.tensors.sequence_parallel;
  if (!unit_.flats.empty()) {
    const std::int64_t first = divided_tokens ? group.rank() * gradient.size(0) : 0;
    unit_.flats.front()->gradient(0).narrow(0, first, gradient.size(0)).add_(gradient.sum(1));
  }
  const at::Tensor all = divided_tokens ? gather_tokens(gradient, group) : gradient;
  const at::Tensor own = tokens.reshape(-1).sub(group.rank() * p.rows);
  at::Tensor rows = all.reshape({-1, p.columns});
  if (group.size() > 1) {
    const at::Tensor elsewhere = own.lt(0).logical_or_(own.ge(p.rows));
    rows = rows.masked_fill(elsewhere.unsqueeze(1), 0);
  }
  p.flat->gradient(p.weight).index_add_(0, own.clamp(0, p.rows - 1), rows);
}

HeadLayer::HeadLayer(LayerWorld& world, Table& table) : world_(world), table_(table) {
  unit_.flats.push_back(make_flat(world, false));
  norm_ = add_norm(world, *unit_.flats.back(), "final_norm", world.shape.hidden,
                   world.shape.final_layer_norm, world.tensors.sequence_parallel);
  unit_.flats.back()->complete();
}

at::Tensor HeadLayer::loss(const at::Tensor& x, const at::Tensor& targets, double scale) {
  const at::Tensor logits = column_linear(norm(x, norm_), table_.parameter(), world_.tensors);
  return cross_entropy_sum(logits.view({-1, logits.size(2)}), targets.reshape(-1), world_.tensors)
      .mul(scale);
}

}  // namespace towtank
