// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether a plan can run at all, before any cost: every rule it breaks, why, and what is valid.
///
///   rule               asks
///   devices            tensor * pipeline * data * context = devices (expert is folded in)
///   batch              data * microbatch divides the global batch
///   layer              each layer kind takes the degrees: heads, kv heads, widths, experts, the
///                      sequence over context (check_shard)
///   expert             expert * expert_tensor divides data * context * tensor; 1 if no experts
///   sequence_parallel  needs tensor > 1; tensor with expert > 1 needs it
///   tensor_domain      a tensor group lies inside one node, unless allowed beyond
///   schedule           none on one pipeline rank, else one that the framework runs
///   interleaving       stages_per_rank > 1 with interleaved only; pipeline divides microbatches
///   stages             pipeline * stages_per_rank stages cover the layers in order
///   sharding_stage     what the framework has, and has in a pipeline
///   rank_map           every device once
///
/// Whether it fits into memory is the evaluator's question. Sources: Megatron-LM, DeepSpeed and
/// torchtitan argument checks, by framework in model/frameworks.
#include <string>
#include <vector>

#include "model/graph/model_graph.h"
#include "model/workload.h"
#include "placement/plan.h"
#include "platforms/allocate.h"

namespace towtank {

struct Invalid {
  std::string rule;     ///< of the table
  std::string problem;  ///< with the values that were given
  std::string hint;     ///< valid values or what to do; may be empty
  friend bool operator==(const Invalid&, const Invalid&) = default;
};
/// "problem (hint)"
[[nodiscard]] std::string to_text(const Invalid&);

struct ValidityOptions {
  bool tensor_beyond_node = false;  ///< allow tensor groups that span nodes
};

/// Every rule that the plan breaks; empty if none. An empty plan.stages stands for what
/// expand_stages makes of it. Pre: degrees that multiply within int.
[[nodiscard]] std::vector<Invalid> check_plan(const Plan&, const ModelGraph&, const Workload&,
                                              const NetworkView&, const ValidityOptions& = {});

/// What runs, but not as people want it: "8 microbatches for 16 stages: never all busy".
[[nodiscard]] std::vector<std::string> plan_warnings(const Plan&, const Workload&);

}  // namespace towtank
