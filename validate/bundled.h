// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The published tables of validate/cases/*.jsonl, compiled into the program. Their sources and
/// licences stand in validate/cases/README.md.
#include <span>
#include <string>
#include <vector>

#include "platforms/embedded_library.h"
#include "validate/case.h"

namespace towtank {

/// Sorted by stem: "korthikanti" for validate/cases/korthikanti.jsonl. Generated from the files.
[[nodiscard]] std::span<const EmbeddedFile> embedded_cases();

/// All of them, file by file.
[[nodiscard]] std::vector<Case> bundled_cases();
/// Those of one file; empty if there is none of that name.
[[nodiscard]] std::vector<Case> bundled_cases(std::string_view stem);

}  // namespace towtank
