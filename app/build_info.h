// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What this program was built from, and which parts it has.
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

struct Library {
  std::string name;
  std::string version;
};

/// A part that a build may lack.
struct Component {
  std::string name;
  bool present = false;
  std::string says;  ///< what it is for, or why it is absent
};

struct BuildInfo {
  std::string_view version;
  std::string compiler;
  std::vector<Library> libraries;
  std::vector<Component> components;
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace towtank
