// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The training state of a rank: parameters of a unit in one flat buffer, gradients likewise, Adam.
///
/// A unit is what is reduced and gathered at once: a block, the table, the ends. By sharding stage,
/// over the group of n ranks that share the parameters (whole = the flat buffer):
///
///   stage  parameters        gradients                              moments
///   0      whole             whole; all-reduce at the step's end    whole
///   1      whole             whole; reduce-scatter                  1/n; parameters gathered
///   2      whole             whole while a microbatch runs, 1/n     1/n; parameters gathered
///   3      1/n, whole while  the same                               1/n
///          a unit runs
///
/// Gradients are sums over all samples of the global batch (the loss is a mean over its tokens, so
/// every reduction is a sum). Adam: Kingma and Ba 2015, no weight decay, no clipping.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profiler/collect/torch_compat.h"
#include "validate/runtime/process_groups.h"

namespace towtank {

/// One tensor of the model, and the part of it that this rank has.
struct Parameter {
  std::string name;                 ///< the same for any plan
  std::vector<std::int64_t> whole;  ///< its full shape
  int split = -1;                   ///< dimension divided over tensor ranks; -1 = replicated
  int part = 0, parts = 1;
  double initial = 0;  ///< standard deviation; 0 = filled with `fill`
  double fill = 0;
  /// Its gradient on a tensor rank is a partial sum, though the parameter is replicated.
  bool partial = false;
  std::int64_t offset = 0;  ///< in the flat buffer
  [[nodiscard]] std::vector<std::int64_t> shape() const;
  [[nodiscard]] std::int64_t numel() const;
};

struct AdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

struct StateOptions {
  int sharding_stage = 0;
  at::ScalarType dtype = at::kFloat;
  std::uint64_t seed = 1;
};

/// Adds parameters until it is complete.
class Flat {
 public:
  Flat(ProcessGroup& shared, ProcessGroup& tensor, const StateOptions& options)
      : shared_(shared), tensor_(tensor), options_(options) {}

  /// Returns its index.
  std::size_t add(Parameter);
  /// Allocates and fills; after the last add().
  void complete();

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The parameter; `rows` joins it with those that follow it (fused products).
  [[nodiscard]] at::Tensor value(std::size_t index) const;
  [[nodiscard]] at::Tensor fused(std::size_t first, std::int64_t rows, std::int64_t columns) const;
  /// Their gradients, to be added to.
  [[nodiscard]] at::Tensor gradient(std::size_t index);
  [[nodiscard]] at::Tensor fused_gradient(std::size_t first, std::int64_t rows,
                                          std::int64_t columns);

  // Sharding stage 3: whole parameters exist between gather and release.
  void start_gather();
  void need();
  void release();

  /// The last contribution of a microbatch is there; `last` of the step.
  void microbatch_done(bool last);
  /// Waits until this rank's part of the gradient is whole.
  void finish_gradients();
  void step(const AdamOptions&, int number);
  /// Sharding stage 1 and 2: parameters gathered again after the step.
  void start_parameter_gather();
  void clear_gradients();

  /// This rank's part of the reduced gradient, and where it starts in the flat buffer.
  [[nodiscard]] at::Tensor owned_gradient() const;
  [[nodiscard]] std::int64_t owned_begin() const;
  /// Whether another rank has the same part: only the first of the group writes then.
  [[nodiscard]] bool owner() const;
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  [[nodiscard]] at::Tensor view(const at::Tensor& flat, const Parameter&) const;
  void ensure_gradient();
  void sum_partials();
  void initialise();

  ProcessGroup& shared_;
  ProcessGroup& tensor_;
  StateOptions options_;
  std::vector<Parameter> parameters_;
  std::int64_t used_ = 0, padded_ = 0, partial_ = 0;
  at::Tensor whole_;  ///< parameters; undefined while released
  at::Tensor main_;   ///< this rank's part of them
  at::Tensor gradient_, owned_;
  at::Tensor mean_, square_;
  Pending gather_, reduce_;
  at::Tensor arriving_;  ///< a reduce-scatter's result, to be added to owned_
};

}  // namespace towtank
