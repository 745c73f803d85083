// SPDX-License-Identifier: Apache-2.0
#pragma once
/// towtank-case files: JSON Lines, one case a line (docs/formats.md).
///
///   format, version  "towtank-case", 1
///   id, source       text
///   workload, platform, devices, plan   as in a plan file (placement/plan_json.h)
///   measured         step_time_s, peak_memory_bytes (null: not known), outcome (ran, oom)
///   confidence       high, medium, low
///   assumed          names of fields that were inferred
///   notes            commentary, and the normative tokens of CaseNotes
///
/// Faults name "file:line: /pointer". Every line of a file is read before they are thrown.
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "validate/case.h"

namespace towtank {

/// One case from its line; throws InputError with every fault.
[[nodiscard]] Case parse_case(const std::string& line, const std::string& where);
/// All cases of a text of lines; empty lines are skipped. A repeated id is a fault.
/// Throws InputError with the faults of all lines.
[[nodiscard]] std::vector<Case> parse_cases(std::string_view text, const std::string& name);
/// parse_cases of a file.
[[nodiscard]] std::vector<Case> load_cases(const std::string& path);

/// Reads the normative tokens. A token that cannot be read is a fault at `notes`.
[[nodiscard]] CaseNotes read_notes(const JsonReader& notes);

}  // namespace towtank
