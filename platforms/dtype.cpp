// SPDX-License-Identifier: Apache-2.0
#include "platforms/dtype.h"

namespace towtank {

std::optional<DType> dtype_from(std::string_view name) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

double bytes_per_element(DType d) {
  switch (d) {
    case DType::kFp64:
      return 8.0;
    case DType::kFp32:
      return 4.0;
    case DType::kTf32:
      return 4.0;  // stored as fp32
    case DType::kFp16:
      return 2.0;
    case DType::kBf16:
      return 2.0;
    case DType::kFp8:
      return 1.0;
    case DType::kFp4:
      return 0.5;
    case DType::kInt8:
      return 1.0;
  }
  return 0.0;  // not reached: the switch is exhaustive
}

}  // namespace towtank
