// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Execution traces: what ran and after what, not when.
///
///   reader                   file
///   execution_trace_reader   JSON of PyTorch's ExecutionTraceObserver (schema 1.x): ops with
///   shapes chakra_reader            Chakra .et: protobuf messages, each behind its length; needs
///   protobuf
///                            (libprotobuf-dev) when built
///
/// Such a trace is not timed (Trace::timed): events stand one after the other on their thread,
/// with the durations that the file states (Chakra: whole us; JSON: none). Nodes that are no op of
/// the host are kernels, and belong to the node that they depend on by control. Collectives are
/// nodes of that type, and ops named record_param_comms.
///
/// Chakra's comm_size counts what one rank puts in, so an all-gather's payload is not known without
/// its group. Ranks come from the file's name: "<prefix>.<rank>.et", "..._<rank>.json".
///
/// Sources: pytorch torch/csrc/profiler/standalone/execution_trace_observer.cpp; mlcommons/chakra
/// schema/protobuf/et_def.proto.
#include <memory>

#include "profiler/import/trace_reader.h"

namespace towtank {

[[nodiscard]] std::unique_ptr<TraceReader> execution_trace_reader();
[[nodiscard]] std::unique_ptr<TraceReader> chakra_reader();
/// Whether this build can read .et files.
[[nodiscard]] bool reads_chakra();

}  // namespace towtank
