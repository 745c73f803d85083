// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What this program was built from.
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

struct Library {
  std::string name;
  std::string version;
};

struct BuildInfo {
  std::string_view version;
  std::string compiler;
  std::vector<Library> libraries;
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace towtank
