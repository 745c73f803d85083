// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank simulate --replay`: a recorded step run again by the engine.
#include "app/commands.h"

namespace towtank {

[[nodiscard]] Outcome run_replay(const Arguments&, const Terminal&);

}  // namespace towtank
