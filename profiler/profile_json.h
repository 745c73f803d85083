// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Profile files ("format": "towtank-profile", "version": 1; docs/formats.md) in and out.
///
/// A generated file: bare numbers in base units under suffixed names. Measurements are tables, one
/// a line, so that a file of 20,000 of them stays small and can be compared line by line:
///
///   "ops": {"columns": ["kind", "pass", ...], "rows": [["matmul", "forward", ...], ...]}
///
/// Columns may stand in any order; all are needed. low_s and high_s may be null. Checked: every
/// number's range, 0 < low <= median <= high, ranks_per_node <= ranks.
#include <string>

#include "core/json.h"
#include "profiler/profile.h"

namespace towtank {

/// Throws InputError with every fault of the file.
[[nodiscard]] Profile parse_profile(const JsonFile& file);
/// As JsonFile::load, with a limit that suits profiles (1 GiB).
[[nodiscard]] Profile load_profile(const std::string& path);
/// The text of the file; parse_profile of it gives the profile again.
[[nodiscard]] std::string profile_text(const Profile&);

}  // namespace towtank
