// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Values that a user fixes for the search, and a plan given by its keys as flags.
#include <string_view>

#include "app/arguments.h"
#include "placement/plan.h"
#include "placement/space.h"

namespace towtank {

/// "tensor=8,pipeline=4,schedule=1f1b": keys of a plan file, or their short names (tp pp dp cp ep
/// etp vp mb zero sp). Faults stand at --pin.
[[nodiscard]] Pins parse_pins(std::string_view text, Faults& faults);

/// The plan that the flags describe on this many devices. `defaults` gets what was not stated. The
/// stages are not expanded. Pre: the framework is read already.
[[nodiscard]] Plan plan_of_flags(const ArgumentReader&, Framework, int devices,
                                 std::vector<std::string>& defaults);

}  // namespace towtank
