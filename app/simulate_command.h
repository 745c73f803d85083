// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank simulate`: one step of a plan through SimGrid, as text, JSON and a trace.
#include "app/commands.h"

namespace towtank {

[[nodiscard]] Outcome run_simulate(const Arguments&, const Terminal&);

}  // namespace towtank
