// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The files of platforms/library/, compiled into the program, so that it finds its catalogue from
/// a build tree, installed or copied elsewhere. The definition is generated from the files.
#include <span>
#include <string_view>

namespace towtank {

struct EmbeddedFile {
  std::string_view name;  ///< the file's stem: "dgx-h100" for platforms/library/dgx-h100.json
  std::string_view text;  ///< its content, byte for byte
};

/// Sorted by name, each name once.
[[nodiscard]] std::span<const EmbeddedFile> embedded_library();

}  // namespace towtank
