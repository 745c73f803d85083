// SPDX-License-Identifier: Apache-2.0
#include "platforms/platform.h"

namespace towtank {

std::optional<BytesPerSecond> NodeKind::nic_bandwidth_per_device() const {
  if (nics == 0 || !nic_bandwidth) return std::nullopt;
  return static_cast<double>(nics) * *nic_bandwidth / static_cast<double>(devices);
}

}  // namespace towtank
