// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The files of profiler/import/mappings/, compiled into the program. The definition is generated.
#include <span>

#include "platforms/embedded_library.h"

namespace towtank {

/// Sorted by name, each name once.
[[nodiscard]] std::span<const EmbeddedFile> embedded_mappings();

}  // namespace towtank
