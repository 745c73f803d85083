// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The program without its process: what main() calls and tests call.
#include <iosfwd>
#include <string>
#include <vector>

namespace towtank {

/// What the program may know of where it prints; a library reads no environment itself.
struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool no_color = false;  ///< NO_COLOR is set and not empty
};

// Exit codes.
inline constexpr int kExitOk = 0;
inline constexpr int kExitInternal = 1;    ///< a defect in towtank, or the result cannot be written
inline constexpr int kExitBadInput = 2;    ///< usage, a file, a value
inline constexpr int kExitInfeasible = 3;  ///< well asked, but nothing fits
inline constexpr int kExitBarMissed = 4;   ///< validate: a figure is worse than its bar

/// Runs one command; `arguments` are those after the program's name. The result goes to `out`, all
/// else to `err`. Nothing is written anywhere when the command fails. Never throws.
[[nodiscard]] int run_app(const std::vector<std::string>& arguments, std::ostream& out,
                          std::ostream& err, const Terminal& terminal = {});

}  // namespace towtank
