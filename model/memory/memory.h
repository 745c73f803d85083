// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one rank of one pipeline stage needs in device memory, by part and at its peak phase.
///
///   static      = params * (parameter + gradient + optimizer + extra) bytes, each divided by its
///                 shard group D' from its sharding stage on
///   activations = sum over layers of saved(recompute) * microbatches in flight K
///   peak        = static + max over phases of what the phase adds
///   reserved    = allocated * reserved_factor;  the device must hold reserved + context
///
///   phase         adds
///   kBackward     K microbatches of activations, gathered weights, one layer's recompute set
///   kLoss         the same on the last stage plus logits
///   kOptimizer    foreach temporaries where the framework makes them
///
/// Sources: Korthikanti et al. 2022, sec. 4 (activations); Rajbhandari et al. 2020 (states).
/// Not modelled: fragmentation beyond reserved_factor.
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "model/frameworks/rules.h"
#include "model/graph/shard.h"

namespace towtank {

enum class MemoryPhase { kBackward, kLoss, kOptimizer };
inline constexpr std::array<std::string_view, 3> kMemoryPhaseNames{"backward", "loss", "optimizer"};

struct MemoryBreakdown {
  Bytes parameters, gradients, optimizer;
  Bytes activations;   ///< of all microbatches in flight
  Bytes logits;
  Bytes working;       ///< gathered weights, one layer's recompute set, dispatch buffers
  Bytes buffers;       ///< communication and workspace
  Bytes context;       ///< outside the allocator
  Bytes reserve;       ///< allocator reserve above allocated
  MemoryPhase phase = MemoryPhase::kBackward;
  [[nodiscard]] Bytes allocated() const;  ///< without context and reserve
  [[nodiscard]] Bytes reserved() const;   ///< allocated + reserve
  [[nodiscard]] Bytes total() const;      ///< reserved + context: what must fit the device
};

enum class RecomputeMode { kNone, kSelective, kFull };
inline constexpr std::array<std::string_view, 3> kRecomputeModeNames{"none", "selective", "full"};

/// Layers of one kind in a stage that recompute alike.
struct StageLayers {
  const LocalLayer* layer = nullptr;
  int count = 0;
  RecomputeMode recompute = RecomputeMode::kNone;
};

struct StageMemoryInput {
  std::span<const StageLayers> layers;
  double microbatches_in_flight = 1;  ///< K, in whole-rank units (1/v of a rank per chunk)
  int data_shards = 1;                ///< D * c
  int expert_data_shards = 1;         ///< D * c * t / (e * tau)
  int sharding_stage = 0;             ///< 0..3
  int tensor = 1;                     ///< with no sequence parallelism, full recompute keeps 1/t only
                                      ///< where the framework distributes saved activations
  double extra_parameters = 0;        ///< tied table copies and the like
};

/// Bytes of one layer and microbatch that stay until backward under a recompute mode.
[[nodiscard]] Bytes saved_bytes(const LocalLayer&, RecomputeMode, const FrameworkRules&);

[[nodiscard]] MemoryBreakdown stage_memory(const StageMemoryInput&, const FrameworkRules&,
                                           const StateBytes&);

enum class Fit { kFits, kBorderline, kOom };
/// Borderline: the total lies within 5 % below or above the capacity.
[[nodiscard]] Fit fit_of(Bytes total, Bytes capacity);

}  // namespace towtank
