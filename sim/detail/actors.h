// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Who runs: one actor a pipeline rank and class of replicas that behave alike.
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/detail/units.h"
#include "sim/lower.h"

namespace towtank::detail {

struct Cast {
  std::vector<Actor> actors;  ///< actor = pipeline rank * classes + class
  int classes = 1;
  RankLayout layout;

  [[nodiscard]] std::int32_t actor(int pipeline_rank, int replica_class) const {
    return pipeline_rank * classes + replica_class;
  }
};
/// Replicas behind units that stand apart are folded only with those behind the same ones.
[[nodiscard]] Cast cast_of(const Plan&, const LowerOptions&, std::span<const UnitLevel>,
                           const UnitsApart&);

}  // namespace towtank::detail
