// SPDX-License-Identifier: Apache-2.0
#include "validate/fit_memory.h"
#include "validate/fit_runtime.h"

namespace towtank {
namespace {

/// One fold cannot be checked on another, and constants that no case tells are the prior's.
bool stands(const RuntimeRecord& record) { return record.folds >= 2 && !record.identified.empty(); }

}  // namespace

RuntimeCalibration fit_calibration(std::span<const Case> cases, const CostModelMaker& costs) {
  RuntimeCalibration out;
  for (RuntimeFit& fit : fit_runtime(cases, costs)) {
    if (stands(fit.record)) out.records.push_back(std::move(fit.record));
  }
  for (const MemoryFit& fit : fit_memory(cases, costs)) {
    for (RuntimeRecord& record : out.records) {
      if (record.framework != fit.framework || record.generation != fit.generation) continue;
      record.costs.reserved_factor = fit.reserved_factor;
      record.costs.context_bytes = fit.context;
    }
  }
  return out;
}

}  // namespace towtank
