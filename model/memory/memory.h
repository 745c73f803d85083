// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one rank of one pipeline stage needs in device memory, by part and at its peak phase.
///
///     static    = sum over parts x of bytes(x) * (P_dense / D' + P_expert / D_e), where D' and D_e
///                 count only from the part's sharding stage on (StateBytes)
///     allocated = static + buffers + what the phase adds; the peak is the largest phase
///     reserved  = allocated * reserved_factor;  the device must hold reserved + context
///
///   phase        adds
///   kBackward    K * sum of saved(recompute) + gathered + unit gradient + recompute set +
///   transient kLoss        K * sum of saved(recompute) + gathered + logits kOptimizer temporaries
///   of the step
///
///   P_dense, P_expert  parameters on this rank before data sharding
///   D', D_e            ranks that share dense and expert states: D c, and D c t / (e tau)
///   K                  microbatches in flight, in units of a whole rank
///   gathered           weights of the largest units (1 + prefetch) in the compute type, or of the
///                      whole stage where the framework does not drop them; sharding stage 3, and 2
///                      in FSDP
///   unit gradient      unsharded gradient of the largest unit before its reduction; stage 2 and 3.
///                      Reduction once a step (deferred) instead holds every gradient unsharded
///   recompute set      the largest layer's full activations less what it saves
///   transient          the largest op's temporaries (expert dispatch and combine, ...)
///   buffers            workspaces, buckets beside the gradients
///
/// Sources: Korthikanti et al. 2022, sec. 4 (activations); Rajbhandari et al. 2020 (states); torch
/// fully_shard and DeepSpeed stage3.py (units). The constants are FrameworkRules, with sources.
/// Not modelled: fragmentation beyond reserved_factor; gradients that do not exist yet in the first
/// backward (all phases count them); offload to the host.
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "core/units.h"
#include "model/frameworks/rules.h"
#include "model/graph/shard.h"

namespace towtank {

enum class MemoryPhase { kBackward, kLoss, kOptimizer };
inline constexpr std::size_t kMemoryPhaseCount = 3;
inline constexpr std::array<std::string_view, kMemoryPhaseCount> kMemoryPhaseNames{
    "backward", "loss", "optimizer"};

struct MemoryBreakdown {
  Bytes parameters, gradients, optimizer;
  Bytes activations;  ///< of all microbatches in flight
  Bytes logits;
  Bytes working;  ///< gathered weights, unit gradients, recompute set, dispatch, step temporaries
  Bytes buffers;  ///< communication and workspace
  Bytes context;  ///< outside the allocator
  Bytes reserve;  ///< allocator reserve above allocated
  MemoryPhase phase = MemoryPhase::kBackward;
  [[nodiscard]] Bytes allocated() const;  ///< without context and reserve
  [[nodiscard]] Bytes reserved() const;   ///< allocated + reserve
  [[nodiscard]] Bytes total() const;      ///< reserved + context: what must fit the device
  friend bool operator==(const MemoryBreakdown&, const MemoryBreakdown&) = default;
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
  std::span<const StageLayers> layers;  ///< of every stage (chunk) on the rank
  double microbatches_in_flight = 1;    ///< K, in whole-rank units (1/v of a rank per chunk); >= 0
  int data_shards = 1;                  ///< D'; >= 1
  int expert_data_shards = 1;           ///< D_e; >= 1
  int sharding_stage = 0;               ///< 0..3
  int tensor = 1;               ///< t; divides what full recompute keeps where the framework
                                ///< distributes it and there is no sequence parallelism
  double extra_parameters = 0;  ///< tied table copies and the like; dense
  bool sequence_parallel = false;
  int microbatches = 1;    ///< M a step and replica: with M > 1 a deferred reduction accumulates
  bool pipelined = false;  ///< p > 1: some frameworks shard differently inside a pipeline
  std::optional<Bytes> context;           ///< calibrated; nullopt: the framework row's
  std::optional<double> reserved_factor;  ///< the same
};

/// Bytes of one layer and microbatch that stay until backward under a recompute mode.
[[nodiscard]] Bytes saved_bytes(const LocalLayer&, RecomputeMode, const FrameworkRules&);

/// Every phase, indexed by MemoryPhase. Does not allocate.
[[nodiscard]] std::array<MemoryBreakdown, kMemoryPhaseCount> stage_memory_phases(
    const StageMemoryInput&, const FrameworkRules&, const StateBytes&);

/// The phase with the largest total; the earlier one on a tie.
[[nodiscard]] MemoryBreakdown stage_memory(const StageMemoryInput&, const FrameworkRules&,
                                           const StateBytes&);

enum class Fit { kFits, kBorderline, kOom };
inline constexpr std::array<std::string_view, 3> kFitNames{"fits", "borderline", "oom"};
/// Borderline: the total lies within 5 % below or above the capacity, ends included.
[[nodiscard]] Fit fit_of(Bytes total, Bytes capacity);

}  // namespace towtank
