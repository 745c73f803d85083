// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whole files: read with a size limit, written whole or not at all.
#include <string>
#include <string_view>

#include "core/units.h"

namespace towtank {

/// The largest configuration-like file that is read; a bigger one is a mistake.
inline constexpr Bytes kMaxConfigBytes{64LL << 20};

/// The content of a regular file (or "-" for standard input). Throws InputError if it is absent,
/// a directory, a device, unreadable, empty or larger than the limit (checked before and while
/// reading).
[[nodiscard]] std::string read_file(const std::string& path, Bytes limit = kMaxConfigBytes);

/// Writes beside the target, then renames over it: the target has the whole content or is as it
/// was. Throws InputError if it cannot.
void write_file(const std::string& path, std::string_view content);

}  // namespace towtank
