// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What devices of one generation reach of their datasheet rates: documented values for machines
/// that nobody has calibrated. Sources stand in efficiencies.cpp.
#include <string_view>

namespace towtank {

/// All in (0, 1].
struct Efficiencies {
  std::string_view generation;  ///< DeviceKind::generation
  double product;               ///< of dense peak: matrix product of the best shape
  double flash_forward;         ///< of dense peak: fused attention, long sequences, heads 128 wide
  double flash_backward;        ///< the same
  double memory;                ///< of memory bandwidth: element-wise kernels on large tensors
};

/// The generation's own row, or a conservative one (named "unknown") for others.
[[nodiscard]] const Efficiencies& efficiencies_of(std::string_view generation);

}  // namespace towtank
