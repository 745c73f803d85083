// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was decided: degrees, stages, microbatch, schedule, sharding, recompute. Runnable.
///
/// Rank order is Megatron-LM's default, and it is written here once:
///     dense grid    rank = tp + t (cp + c (dp + D pp))
///     expert grid   rank = etp + tau (ep + e (edp + Ed pp)),   Ed = D c t / (e tau)
/// Pipeline coordinates coincide. Dense gradients reduce over cp x dp, expert ones over edp.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "model/frameworks/rules.h"
#include "model/memory/memory.h"
#include "placement/schedule.h"

namespace towtank {

/// One stage (chunk) of the pipeline. Layers are counted over the free layers of the graph:
/// embedding and head are pinned to the first and the last stage.
struct PlanStage {
  int first = 0, last = 0;  ///< [first, last)
  int recompute_full = 0;   ///< layers recomputed whole
  int recompute_selective = 0;
  std::string device_kind;  ///< empty: the platform's (slowest) kind
  friend bool operator==(const PlanStage&, const PlanStage&) = default;
};

struct Plan {
  int tensor = 1, pipeline = 1, data = 1, context = 1, expert = 1, expert_tensor = 1;
  int stages_per_rank = 1;
  int microbatch = 1;
  ScheduleKind schedule = ScheduleKind::kNone;
  bool sequence_parallel = false;
  int sharding_stage = 0;
  RecomputeMode recompute = RecomputeMode::kNone;  ///< shorthand; `stages` is what code uses
  Framework framework = Framework::kMegatron;
  std::optional<StateBytes> state_override;  ///< plan.optimizer: bytes a parameter
  bool compile = false;
  std::vector<PlanStage> stages;  ///< pipeline * stages_per_rank, stage order
  std::vector<int> rank_map;      ///< rank -> device; empty = identity

  [[nodiscard]] int devices() const { return tensor * pipeline * data * context; }
  /// Ranks that share dense gradients: D * c.
  [[nodiscard]] int data_shards() const { return data * context; }
  /// Ranks that share an expert's gradients: Ed.
  [[nodiscard]] int expert_data() const {
    return data * context * tensor / (expert * expert_tensor);
  }
  friend bool operator==(const Plan&, const Plan&);
};

/// Coordinates of a rank in both grids.
struct RankCoordinates {
  int tensor, context, data, pipeline;
  int expert_tensor, expert, expert_data;
};
[[nodiscard]] RankCoordinates coordinates_of(const Plan&, int rank);

/// Stride between consecutive ranks of a plan's process group on an axis (dense grid for tensor,
/// context, data, pipeline; expert grid for expert and expert tensor), and its size.
struct GroupStride {
  int size = 1, stride = 1;
};
[[nodiscard]] GroupStride group_of(const Plan&, Axis);
/// The group that reduces dense gradients (cp x dp) or expert ones (edp).
[[nodiscard]] GroupStride gradient_group(const Plan&, bool expert);

/// What a framework recomputes when its user says nothing.
[[nodiscard]] RecomputeMode default_recompute(Framework);
/// The mode that every layer of the stages has; nullopt if they differ.
[[nodiscard]] std::optional<RecomputeMode> uniform_recompute(std::span<const PlanStage>);
/// Makes the stages of a plan that has none from its shorthand: layers split evenly (even_split),
/// the recompute mode on every layer. Pre: pipeline * stages_per_rank <= free_layers.
void expand_stages(Plan&, int free_layers);

/// "tp8 pp4 dp2 vp5 mb1 1f1b zero1 sp full": for tables and names.
[[nodiscard]] std::string short_text(const Plan&);

}  // namespace towtank
