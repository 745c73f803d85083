// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One layer as one rank runs it: local op signatures, collectives and bytes under given degrees.
///
///   rows of an op        rows * b / c, and / t where split is kSequence under sequence parallelism
///   routed expert rows   rows * b / (c t) * tau * load, spread over groups / e experts
///   parameters           parameters / t (dense) or / (e tau) (expert) + replicated_parameters
///   kv heads < t         K and V are replicated: u / min(t, k) a rank
///
/// Sources: Shoeybi et al. 2019 (tensor), Korthikanti et al. 2022 (sequence), Liu et al. 2023 (ring
/// attention), Lepikhin et al. 2020 (experts). Not modelled: imbalance of causal context ranks (a
/// head-tail pairing is assumed).
#include <array>
#include <string>
#include <vector>

#include "model/frameworks/rules.h"
#include "model/graph/model_graph.h"

namespace towtank {

struct ShardDegrees {
  int tensor = 1;         ///< t
  int context = 1;        ///< c
  int expert = 1;         ///< e
  int expert_tensor = 1;  ///< tau
  int microbatch = 1;     ///< b, samples
  bool sequence_parallel = false;
  friend bool operator==(const ShardDegrees&, const ShardDegrees&) = default;
};

/// An op's three passes; a pass that does not exist has zero work and zero traffic.
struct LocalOp {
  const Op* op = nullptr;  ///< into the LayerKind it came from
  OpSignature forward;
  OpSignature input_grad;
  OpSignature weight_grad;
};

struct LocalCollective {
  const LayerCollective* collective = nullptr;
  Axis axis = Axis::kTensor;
  Collective forward = Collective::kAllReduce;
  Collective backward = Collective::kAllReduce;
  int forward_count = 0, backward_count = 0, hidden_backward_count = 0;
  Bytes payload;
};

/// Bytes of one microbatch kept for backward.
struct SavedBytes {
  Bytes layer_input;                                   ///< kept even by full recomputation
  std::array<Bytes, kRecomputeGroupCount> by_group{};  ///< without layer_input and logits
  Bytes logits;
  [[nodiscard]] Bytes without_recompute() const;  ///< layer_input + all groups
};

struct LocalLayer {
  std::vector<LocalOp> ops;
  std::vector<LocalCollective> collectives;
  double dense_parameters = 0;  ///< on this rank, sharded over D * c data ranks by a sharding stage
  double expert_parameters = 0;  ///< on this rank, sharded over the expert-data ranks
  SavedBytes saved;
  Bytes transient;  ///< largest temporary of one op (expert dispatch buffers, ...)
};

/// Pre: the degrees are valid for the kind (check_shard is empty).
[[nodiscard]] LocalLayer shard(const LayerKind&, const ShardDegrees&, const FrameworkRules&,
                               DType precision, double expert_load);

/// Why the degrees do not fit a layer kind: each reason names the rule and the valid values.
/// Empty if they fit.
[[nodiscard]] std::vector<std::string> check_shard(const LayerKind&, const ShardDegrees&,
                                                   const FrameworkRules&);

}  // namespace towtank
