// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Help texts, made from the table of commands.
#include <string>

#include "app/command_spec.h"

namespace towtank {

/// What `towtank` alone prints.
[[nodiscard]] std::string short_help();
/// What `towtank COMMAND --help` prints.
[[nodiscard]] std::string help_of(const CommandSpec&);

}  // namespace towtank
