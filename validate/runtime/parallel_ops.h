// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Differentiable pieces of a layer whose parameters live in flat buffers and whose tensors may be
/// divided over tensor ranks. Activations are [tokens, samples, features]; under sequence
/// parallelism a rank has 1/t of the tokens between products (Korthikanti et al. 2022, sec. 4.2).
///
/// Weight gradients are added to the flat buffer by the backward of the piece itself, or later:
/// while a WeightWork is current, products leave theirs to it (Qi et al. 2023). Norms, tables and
/// biases never wait.
#include <functional>
#include <optional>
#include <vector>

#include "validate/runtime/parameters.h"

namespace towtank {

/// Products of weight gradients that wait for their turn.
class WeightWork {
 public:
  void add(std::function<void()> product) { products_.push_back(std::move(product)); }
  void run();

 private:
  std::vector<std::function<void()>> products_;
};

/// What the pieces of one rank share.
struct TensorContext {
  ProcessGroup* tensor = nullptr;
  ProcessGroup* expert = nullptr;
  bool sequence_parallel = false;  ///< implies tensor->size() > 1
  WeightWork* deferred = nullptr;  ///< null: weight gradients at once
};

/// y = x W' + b, W of rows x columns in a flat buffer, perhaps several parameters side by side.
struct LinearParameter {
  Flat* flat = nullptr;
  std::size_t weight = 0;  ///< first parameter
  std::int64_t rows = 0, columns = 0;
  std::optional<std::size_t> bias;
};

/// The rows of W are divided: each rank makes its features of y for all tokens.
[[nodiscard]] at::Tensor column_linear(const at::Tensor& x, const LinearParameter&, TensorContext&);
/// The columns of W are divided: the ranks' parts of y are summed; the bias comes after.
[[nodiscard]] at::Tensor row_linear(const at::Tensor& x, const LinearParameter&, TensorContext&);
/// Nothing is divided, nothing is exchanged.
[[nodiscard]] at::Tensor plain_linear(const at::Tensor& x, const LinearParameter&, TensorContext&);

struct NormParameter {
  Flat* flat = nullptr;
  std::size_t weight = 0;
  std::optional<std::size_t> bias;  ///< with one it is a layer norm, without an RMS norm
};
/// Over the last dimension.
[[nodiscard]] at::Tensor norm(const at::Tensor& x, const NormParameter&);

/// silu(gate) * up, of [.., 2f] with gate first. Keeps its input only.
[[nodiscard]] at::Tensor gated_silu(const at::Tensor& x);

/// `compute` run again in backward instead of keeping what it saves. It has no parameters.
[[nodiscard]] at::Tensor recomputed(const at::Tensor& x,
                                    std::function<at::Tensor(const at::Tensor&)> compute,
                                    Recorder& recorder);

/// Rows to the ranks of a group, as many to each as `sent` says; backward sends them back.
[[nodiscard]] at::Tensor exchange_rows(const at::Tensor& x, std::vector<std::int64_t> sent,
                                       std::vector<std::int64_t> received, ProcessGroup& group);

/// Sum of -log softmax at the targets, logits [n, v/t] divided over tensor ranks.
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets,
                                           TensorContext&);

// For pieces that differentiate by hand.
/// [tokens/t, ..] of every rank side by side -> [tokens, ..].
[[nodiscard]] at::Tensor gather_tokens(const at::Tensor& x, ProcessGroup&);
/// The sum over ranks, and of it this rank's tokens.
[[nodiscard]] at::Tensor scatter_tokens(const at::Tensor& x, ProcessGroup&);

}  // namespace towtank
