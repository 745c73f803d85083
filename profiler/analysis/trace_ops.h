// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the device time of the steps of a trace was spent on, op by op and layer by layer.
///
/// Kernels of one op are one measurement: the sum of their durations, as many kernels. An op that
/// is not known by itself counts for the nearest one around it that is. What runs inside of
/// Optimizer.step is the optimizer's, whatever ops it is made of.
///
/// Layers are modules of one class with several instances ("nn.Module: BertLayer_3"): the class
/// with the most device time that is no mere container. Backward work belongs to the layer whose
/// forward ops have its sequence number.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analysis/trace_joins.h"
#include "profiler/analysis/trace_steps.h"
#include "profiler/op_signature.h"

namespace towtank {

/// Runs of one op signature under one name, over all steps.
struct OpRuns {
  std::string label;                     ///< "aten::mm"; of unknown work the op, else the kernel
  std::optional<OpSignature> signature;  ///< kernels are those of one run
  std::vector<std::int64_t> ns;          ///< device time of each run
  long kernels = 0;                      ///< of all runs

  [[nodiscard]] std::int64_t total_ns() const;
};

struct LayerTimes {
  std::string name;  ///< class of the module
  int instances = 0;
  std::int64_t forward_ns = 0;  ///< device time, over all instances and steps
  std::int64_t backward_ns = 0;
  std::int64_t least_ns = 0, most_ns = 0;  ///< of one instance, forward and backward, all steps
};

/// In the order of their total time, longest first. Collectives, copies and fills by the driver
/// are not ops.
[[nodiscard]] std::vector<OpRuns> op_runs(const Trace&, const TraceJoins&, const TraceSteps&,
                                          const std::vector<bool>& is_collective);

/// nullopt: the trace marks no modules, or none has two instances with device work.
[[nodiscard]] std::optional<LayerTimes> layer_times(const Trace&, const TraceJoins&,
                                                    const TraceSteps&);

}  // namespace towtank
