// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank validate`: measured cases in, how wrong the predictions are out.
#include "app/command_spec.h"
#include "app/commands.h"

namespace towtank {

[[nodiscard]] CommandSpec validate_spec();
[[nodiscard]] Outcome run_validate(const Arguments&, const Terminal&);

}  // namespace towtank
