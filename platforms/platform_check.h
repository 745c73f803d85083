// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What must hold between the parts of a platform file, beyond each part's own ranges.
#include "core/json.h"
#include "platforms/platform.h"

namespace towtank {

/// Adds a fault for each broken rule, at its place in the file.
void check_platform(const Platform& platform, const JsonReader& root);

}  // namespace towtank
