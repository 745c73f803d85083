// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is trained, apart from the network itself (ModelGraph): batch, precision, optimizer,
/// length.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "platforms/dtype.h"

namespace towtank {

enum class OptimizerKind { kAdam, kSgd, kMomentum };

struct Workload {
  std::string model_name;          ///< for people: file name or the config's own name
  std::string model_json;          ///< the config or graph, compact JSON: embedded in plan files
  std::string model_hash;          ///< content_hash of model_json
  int sequence_length = 0;         ///< tokens a sample; 0 for a graph without tokens
  int global_batch = 0;            ///< samples a step over all replicas; > 0
  DType precision = DType::kBf16;  ///< of matrix products; fp8 = fp8 products, bf16 elsewhere
  OptimizerKind optimizer = OptimizerKind::kAdam;
  std::optional<double> train_tokens;  ///< how much to train; prints duration and cost
  std::optional<Bytes> input_bytes;    ///< per sample; a loader term when stated
  double expert_load = 1.0;            ///< max / mean tokens over experts; 1 = balanced
};

}  // namespace towtank
