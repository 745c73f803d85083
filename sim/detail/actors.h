// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Who runs: one actor a pipeline rank and class of replicas that behave alike.
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
[[nodiscard]] Cast cast_of(const Plan&, const LowerOptions&);

}  // namespace towtank::detail
