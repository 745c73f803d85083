// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a framework's process takes beyond its tensors, fitted on measured peaks.
///
///   device total = reserved_factor * allocated + context      (nvidia-smi)
///   reserved     = reserved_factor * allocated                (what the allocator logs)
///
///   allocated    of the model, on the fullest rank [bytes]
///
/// Huber loss on relative errors, one weight a fold, with a prior at the framework row's values.
/// Peaks that count tensors alone identify neither constant. Errors are out of fold.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validate/fit_runtime.h"

namespace towtank {

struct MemoryFit {
  Framework framework = Framework::kMegatron;
  std::string generation;
  double reserved_factor = 1;
  std::optional<Bytes> context;  ///< nullopt: no case shows the device total
  int rows = 0;
  std::vector<FoldError> errors;  ///< log(measured / predicted)
};

/// One fit per (framework row, device generation) with peaks of whole processes or allocators.
/// Throws InputError if a case is never_fitted.
[[nodiscard]] std::vector<MemoryFit> fit_memory(std::span<const Case> cases,
                                                const CostModelMaker& costs);

}  // namespace towtank
