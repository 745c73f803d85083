// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The order in which each pipeline rank runs its work. A schedule fixes order, never time.
///
/// Written as torch.distributed.pipelining writes it: "2F0" is stage 2, forward, microbatch 0;
/// B a full backward; I and W its input- and weight-gradient halves.
///
///   p ranks, m microbatches, v stages per rank; every stage takes the same time, B = I + W
///
///               bubble / makespan       forwards held at once by rank r
///   GPipe       (p-1) / (m + p-1)       m
///   1F1B        (p-1) / (m + p-1)       min(m, p - r)
///   interleaved (p-1) / (v*m + p-1)     min(v*m, 2(p-r-1) + (v-1)*p + 1), each 1/v as large
///   ZB-H1       (p-1)(F+I-W) idle       min(m, p - r), plus at most r pending weight gradients
///
/// Sources: Huang et al. 2019 (GPipe); Narayanan et al., SC'21, sec. 2.2 (1F1B, interleaved);
/// Qi et al. 2023 (zero bubble). tests/placement/schedule_test.cpp checks each cell.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"

namespace towtank {

using RankId = Id<struct RankTag>;  ///< pipeline rank here
using StageId = Id<struct StageTag>;
using MicrobatchId = Id<struct MicrobatchTag>;

enum class Phase : char { kForward = 'F', kBackward = 'B', kInputGrad = 'I', kWeightGrad = 'W' };

struct Action {
  StageId stage;
  Phase phase = Phase::kForward;
  MicrobatchId microbatch;
  friend bool operator==(const Action&, const Action&) = default;
};

enum class ScheduleKind { kNone, kGpipe, kOneFOneB, kInterleaved, kZbH1 };
inline constexpr std::array<std::string_view, 5> kScheduleNames{"none", "gpipe", "1f1b",
                                                                "interleaved", "zb-h1"};

struct PipelineShape {
  int ranks = 1;            ///< p
  int microbatches = 1;     ///< m per step and data-parallel replica
  int stages_per_rank = 1;  ///< v; stage s runs on rank s mod p
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

/// order[r] is what rank r runs, first to last.
struct PipelineSchedule {
  PipelineShape shape;
  IdVector<RankId, std::vector<Action>> order;
};

[[nodiscard]] PipelineSchedule gpipe(const PipelineShape&);
[[nodiscard]] PipelineSchedule one_f_one_b(const PipelineShape&);
/// Pre: microbatches is a multiple of ranks (Megatron-LM asks the same).
[[nodiscard]] PipelineSchedule interleaved_1f1b(const PipelineShape&);
[[nodiscard]] PipelineSchedule zb_h1(const PipelineShape&);
/// All kinds but interleaved need stages_per_rank = 1; kNone needs ranks = 1 and runs F, B by
/// microbatch.
[[nodiscard]] PipelineSchedule make_schedule(ScheduleKind, const PipelineShape&);

/// nullopt if every action appears once, on its own rank, and the order can finish;
/// else the first fault, with the step grid and a mark under it.
[[nodiscard]] std::optional<std::string> find_fault(const PipelineSchedule&);

/// "2F0"
[[nodiscard]] std::string to_text(const Action&);
/// "2F0 3B1 ..." one line a rank.
[[nodiscard]] std::string to_text(const PipelineSchedule&);

/// The most forwards whose backward (B or I) has not yet run, on one rank.
[[nodiscard]] int peak_live_forwards(const PipelineSchedule&, RankId);
/// The same by closed form, without building the schedule.
[[nodiscard]] int peak_live_forwards(ScheduleKind, const PipelineShape&, int rank);
/// Peak activation memory of a rank in units of one stage's forward (A = 1), where share_w of it
/// stays until the weight gradient.
[[nodiscard]] double peak_activation(const PipelineSchedule&, RankId, double share_w);

}  // namespace towtank
