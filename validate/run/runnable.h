// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A plan file as towtank-runtime runs it: what is trained, how it is divided, and that it can be.
///
/// Beyond check_plan the runtime asks for: context = 1, expert_tensor = 1, Adam, no torch.compile,
/// a vocabulary, heads and key-value heads that divide by tensor, fp32 (a CPU computes nothing
/// smaller faster; tf32 is fp32 here). Each is one fault with its place.
#include <string>

#include "placement/plan_json.h"
#include "validate/run/model_shape.h"

namespace towtank {

struct RunnablePlan {
  PlanFile file;
  ModelGraph graph;
  ModelShape shape;
  Plan plan;  ///< stages expanded
};

/// `fp64`: the run overrides the file's precision. Throws InputError with every fault.
[[nodiscard]] RunnablePlan load_runnable(const std::string& path, bool fp64 = false);

}  // namespace towtank
