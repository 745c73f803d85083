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
  constexpr std::array<std::string_view, 5> kUnseen{"verdict", "mlperf-gpt3", "mlperf-405b",
                                                    "megatron-sc21", "korthikanti"};
  const std::string set(item.set());
  return std::find(kUnseen.begin(), kUnseen.end(), set) != kUnseen.end();
}

}  // namespace towtank
