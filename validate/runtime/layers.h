// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The layers that a rank runs: its part of the embedding, of blocks, and of the head.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "validate/run/model_shape.h"
#include "validate/runtime/parallel_ops.h"

namespace towtank {

/// What all layers of a rank share; outlives them.
struct LayerWorld {
  ModelShape shape;
  RankGroups* groups = nullptr;
  TensorContext tensors;
  StateOptions state;
  Recorder* recorder = nullptr;

  /// Keys that a query does not see, [s, s]; made once for each window.
  [[nodiscard]] const at::Tensor& hidden_keys(std::optional<int> window);
  /// Cosine and sine of rotary positions (Su et al. 2021) for heads of width d, [s, 1, 1, d].
  [[nodiscard]] const std::pair<at::Tensor, at::Tensor>& rotation(std::int64_t d);

 private:
  std::map<int, at::Tensor> hidden_;
  std::map<std::int64_t, std::pair<at::Tensor, at::Tensor>> rotation_;
};

/// A unit of reduction and gathering: the flat buffers of one layer.
struct Unit {
  std::vector<std::unique_ptr<Flat>> flats;  ///< dense parameters; then those of routed experts
};

class BlockLayer {
 public:
  BlockLayer(LayerWorld& world, int number);
  /// [tokens, samples, hidden] -> the same; tokens / t under sequence parallelism.
  [[nodiscard]] at::Tensor forward(const at::Tensor& x, bool recompute_core);
  [[nodiscard]] Unit& unit() { return unit_; }

 private:
  void add_dense_parameters(const std::string& prefix);
  void add_products(Flat& flat, const std::string& prefix);
  void add_expert_parameters(const std::string& prefix);
  [[nodiscard]] at::Tensor attention(const at::Tensor& qkv) const;
  [[nodiscard]] at::Tensor experts(const at::Tensor& x);
  [[nodiscard]] at::Tensor run_experts(const at::Tensor& rows,
                                       const std::vector<std::int64_t>& counts);

  LayerWorld& world_;
  const BlockShape& shape_;
  Unit unit_;
  NormParameter norm1_, norm2_, query_norm_, key_norm_;
  LinearParameter qkv_, projection_, fc1_, fc2_, router_;
  std::vector<LinearParameter> expert_fc1_, expert_fc2_;
};

/// The vocabulary's table, which embedding and head may share.
class Table {
 public:
  Table(LayerWorld& world, const std::string& name);
  [[nodiscard]] Unit& unit() { return unit_; }
  [[nodiscard]] const LinearParameter& parameter() const { return parameter_; }

 private:
  Unit unit_;
  LinearParameter parameter_;
};

class EmbeddingLayer {
 public:
  EmbeddingLayer(LayerWorld& world, Table& table);
  /// tokens [tokens, samples] -> [tokens, samples, hidden], tokens / t under sequence parallelism.
  [[nodiscard]] at::Tensor forward(const at::Tensor& tokens);
  void backward(const at::Tensor& tokens, const at::Tensor& gradient);
  [[nodiscard]] Unit& unit() { return unit_; }  ///< positions; may be empty

 private:
  LayerWorld& world_;
  Table& table_;
  Unit unit_;
};

class HeadLayer {
 public:
  HeadLayer(LayerWorld& world, Table& table);
  /// Sum of the cross entropy over the tokens, times `scale`.
  [[nodiscard]] at::Tensor loss(const at::Tensor& x, const at::Tensor& targets, double scale);
  [[nodiscard]] Unit& unit() { return unit_; }

 private:
  LayerWorld& world_;
  Table& table_;
  Unit unit_;
  NormParameter norm_;
};

}  // namespace towtank
