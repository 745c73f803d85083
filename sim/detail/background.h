// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which links the traffic of others loads, and how.
#include <span>

#include "sim/detail/units.h"
#include "sim/lower.h"

namespace towtank::detail {

/// Units that are not alike any more: those named one by one, and those that random bursts load,
/// each at times of its own.
[[nodiscard]] UnitsApart apart_by(std::span<const Background>, std::span<const UnitLevel>,
                                  int devices);

/// Adds to `network.background` what the links of the network carry for others. A steady load comes
/// in pieces, each `piece` seconds long where nothing holds it up.
void add_background(std::span<const Background>, std::uint64_t seed, Seconds piece, Network&);

}  // namespace towtank::detail
