// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What devices of one generation reach of their datasheet rates: documented values for machines
/// that nobody has calibrated. All are fractions in (0, 1] of dense peak or of memory bandwidth.
#include <string_view>

namespace towtank {

struct Efficiencies {
  std::string_view generation;  ///< DeviceKind::generation
  double product;               ///< matrix product of the best shape
  double flash_forward;         ///< fused attention: long sequences, wide heads
  double flash_backward;
  double memory;  ///< streaming kernels on large tensors
};

/// The generation's own row, or a conservative one (named "unknown") for others.
[[nodiscard]] const Efficiencies& efficiencies_of(std::string_view generation);

}  // namespace towtank
