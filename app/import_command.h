// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank import`: measurements in, profile out, and what became of every row.
#include <string>

#include "app/command_spec.h"
#include "app/commands.h"
#include "core/json.h"
#include "profiler/profile.h"

namespace towtank {

[[nodiscard]] CommandSpec import_spec();
[[nodiscard]] Outcome run_import(const Arguments&, const Terminal&);

/// Rows read, kept and left out by reason; op classes with the range of their rates; collectives
/// with the range of their bus bandwidths.
[[nodiscard]] std::string import_text(const Profile&);
/// The same: "towtank-import", version 1 (docs/formats-profile.md).
[[nodiscard]] std::string import_json(const Profile&);
/// The lines of what was counted, and the same as an array.
[[nodiscard]] std::string import_rows_text(const ImportStats&);
[[nodiscard]] Json import_counts_json(const ImportStats&);

}  // namespace towtank
