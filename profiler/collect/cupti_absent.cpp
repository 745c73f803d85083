// SPDX-License-Identifier: Apache-2.0
// The twin of cupti_load.cpp where CUPTI's headers were not found at configure time.
#include "profiler/collect/cupti_library.h"

namespace towtank {

std::variant<CuptiLibrary, std::string> load_cupti() {
  return std::string(
      "this build has no CUPTI: the CUDA toolkit (12 or 13) was not found when it was configured");
}

std::optional<std::string> why_no_cupti() { return std::get<std::string>(load_cupti()); }

}  // namespace towtank
