// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What every importer of measurements takes: files as text, and what the user knows beside them.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/units.h"

namespace towtank {

/// The largest table or log that is read.
inline constexpr Bytes kMaxTableBytes{2LL << 30};

struct SourceText {
  std::string name;  ///< path as the user gave it: stands in faults
  std::string text;
};

/// What is said on the command line; it wins over what a file or a mapping says.
struct ImportOptions {
  std::string name;         ///< of the profile; empty: from the mapping or the file
  std::string source;       ///< who measured it; empty: as the mapping says, or the files
  std::string device_kind;  ///< empty: as the mapping says
  std::string fabric_intranode, fabric_internode;
  std::optional<int> ranks;  ///< for files that do not say it
  std::optional<int> ranks_per_node;
  /// Rows whose column has this text are taken, the others counted: {"gpu", "A100-40"}.
  std::vector<std::pair<std::string, std::string>> select;
};

/// The file's name without folders: "a/b.csv" -> "b.csv".
[[nodiscard]] std::string base_name(const std::string& path);
/// "b.csv: line 12"
[[nodiscard]] std::string at_line(const std::string& path, long line);
/// Reads a whole file ("-": standard input). Throws InputError; gzip data is one.
[[nodiscard]] SourceText read_source(const std::string& path);

}  // namespace towtank
