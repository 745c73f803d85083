// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stages and hops whose makespans a reader adds in the head, and random ones for laws.
#include <algorithm>
#include <array>
#include <vector>

#include "core/rng.h"
#include "placement/recurrence.h"

namespace towtank::testing {

inline constexpr std::array<ScheduleKind, 4> kPipelineKinds{
    ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved, ScheduleKind::kZbH1};

/// Equal stages: forward, input gradient and weight gradient of one stage.
[[nodiscard]] inline std::vector<StageTime> equal_stages(int count, double f, double i, double w) {
  return std::vector<StageTime>(static_cast<std::size_t>(count),
                                StageTime{Seconds{f}, Seconds{i}, Seconds{w}});
}

/// Stages of whole layers with F = 1 and B = 2 a layer.
[[nodiscard]] inline std::vector<StageTime> layer_stages(const std::vector<double>& layers) {
  std::vector<StageTime> stages;
  for (const double n : layers) stages.push_back({Seconds{n}, Seconds{n}, Seconds{n}});
  return stages;
}

[[nodiscard]] inline std::vector<HopTime> equal_hops(std::size_t stages, double hop) {
  return std::vector<HopTime>(stages, HopTime{Seconds{hop}, Seconds{hop}});
}

[[nodiscard]] inline double makespan(ScheduleKind kind, const PipelineShape& shape,
                                     const std::vector<StageTime>& stages, double hop = 0) {
  return schedule_times(kind, shape, stages, equal_hops(stages.size(), hop)).makespan.value;
}

/// A shape that the kind accepts.
[[nodiscard]] inline PipelineShape random_shape(ScheduleKind kind, Rng& rng) {
  PipelineShape shape;
  if (kind == ScheduleKind::kNone) {
    shape.microbatches = static_cast<int>(rng.integer(1, 12));
    return shape;
  }
  shape.ranks = static_cast<int>(rng.integer(1, 8));
  shape.microbatches = static_cast<int>(rng.integer(1, 24));
  if (kind == ScheduleKind::kInterleaved) {
    shape.stages_per_rank = static_cast<int>(rng.integer(1, 4));
    shape.microbatches = shape.ranks * static_cast<int>(rng.integer(1, 4));
  }
  return shape;
}

[[nodiscard]] inline std::vector<StageTime> random_stages(const PipelineShape& shape, Rng& rng) {
  std::vector<StageTime> stages;
  for (int g = 0; g < shape.ranks * shape.stages_per_rank; ++g) {
    stages.push_back(
        {Seconds{rng.uniform(0.1, 2)}, Seconds{rng.uniform(0.1, 2)}, Seconds{rng.uniform(0, 2)}});
  }
  return stages;
}

[[nodiscard]] inline std::vector<HopTime> random_hops(std::size_t stages, double most, Rng& rng) {
  std::vector<HopTime> hops;
  for (std::size_t g = 0; g < stages; ++g) {
    hops.push_back({Seconds{rng.uniform(0, most)}, Seconds{rng.uniform(0, most)}});
  }
  return hops;
}

}  // namespace towtank::testing
