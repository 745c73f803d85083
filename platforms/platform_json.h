// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Platform files ("format": "towtank-platform", "version": 1; docs/formats.md) in and out.
#include <string>
#include <vector>

#include "core/json.h"
#include "platforms/platform.h"

namespace towtank {

/// Throws InputError with every fault of the file.
[[nodiscard]] Platform parse_platform(const JsonFile& file);
/// The same for a platform inside another file (a plan's "platform"): faults are added to that
/// file, whose finish() the caller owes. Pre: the reader is at a value of the file.
[[nodiscard]] Platform parse_platform(const JsonFile& file, const JsonReader& reader);
/// Everything written out (no "use"), quantities as text with units that reads back exactly:
/// parse_platform(to_json(p)) is p.
[[nodiscard]] Json to_json(const Platform&);

}  // namespace towtank
