// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "validate/fit_runtime.h"

namespace towtank {

std::string fold_of(const Case& item) {
  const Workload& w = item.body.workload;
  return std::string(item.set()) + "/" + w.model_hash + "/" + std::to_string(w.sequence_length);
}

bool never_fitted(const Case& item) {
  constexpr std::array<std::string_view, 3> kUnseen{"verdict", "megatron-sc21", "korthikanti"};
  const std::string set(item.set());
  return set.starts_with("mlperf-") ||
         std::find(kUnseen.begin(), kUnseen.end(), set) != kUnseen.end();
}

}  // namespace towtank
