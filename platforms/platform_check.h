// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What must hold between the parts of a platform file, once each part alone is sound.
#include "core/json.h"
#include "platforms/platform.h"

namespace towtank {

/// Adds a fault for each broken rule, at its place in the file. Pre: the platform was read from the
/// reader without a fault.
void check_platform(const Platform& platform, const JsonReader& root);

}  // namespace towtank
