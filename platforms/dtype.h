// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Number formats: the key of a peak rate and of every tensor's bytes.
#include <array>
#include <optional>
#include <string_view>

namespace towtank {

enum class DType { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kFp4, kInt8 };
inline constexpr std::size_t kDTypeCount = 8;
inline constexpr std::array<std::string_view, kDTypeCount> kDTypeNames{
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"};

[[nodiscard]] constexpr std::string_view to_text(DType d) {
  return kDTypeNames[static_cast<std::size_t>(d)];
}
[[nodiscard]] std::optional<DType> dtype_from(std::string_view name);
/// Bytes of one element; fp4 counts half a byte.
[[nodiscard]] double bytes_per_element(DType d);

}  // namespace towtank
