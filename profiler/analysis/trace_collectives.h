// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The collectives of a trace: kernels of NCCL, RCCL and their kind, with what the framework said
/// about them.
///
///   kind      the framework's name of the collective, the annotation around its launch
///             (nccl:all_reduce), else the kernel's name; SendRecv kernels of an all-to-all are one
///   payload   as nccl-tests counts (profiler/collective.h), from the elements that the kernel or
///             its op states, else from the shapes of the op's inputs; unknown where neither says
///   ranks     the stated group size; else the world, and `ranks_assumed`
///
/// A kernel's time includes its wait for the other ranks: see rank_skew.h for what remains.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analysis/trace_joins.h"
#include "profiler/collective.h"

namespace towtank {

struct TraceCollectiveCall {
  std::int32_t event = 0;        ///< its kernel
  std::optional<Collective> op;  ///< nullopt: one that towtank has no name for, or not known
  std::string name;              ///< "all_reduce", or what the trace calls it
  std::string group;             ///< process group, or the kernel's stream where none is stated
  std::optional<Bytes> payload;
  std::int64_t sequence = -1;
  int ranks = -1;  ///< -1: not known
  bool ranks_assumed = false;
};

/// Whether a kernel of this name is a collective's.
[[nodiscard]] bool is_collective_kernel(std::string_view name);
/// By start.
[[nodiscard]] std::vector<TraceCollectiveCall> find_collectives(const Trace&, const TraceJoins&);

}  // namespace towtank
