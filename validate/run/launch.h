// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Starts the ranks of a plan on this machine and sees them to their end.
///
/// Each rank is a process of its own with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
/// and one thread for BLAS. When one fails, the others have a moment to say why they end, too; then
/// they are killed. No rank outlives the call, and none outlives the caller: a rank asks the kernel
/// to end it with its parent.
///
/// What a failure's message is: that of a rank that a signal ended, else of the first rank that did
/// not merely lose another one.
#include <functional>
#include <string>
#include <vector>

#include "core/units.h"

namespace towtank {

/// Exit code of a rank that ends because another did (validate/runtime/this_process.h).
inline constexpr int kLostPeerExit = 5;

struct LaunchOptions {
  std::string program;             ///< towtank-runtime
  std::vector<std::string> words;  ///< behind the program's name
  int ranks = 1;
  int port = 0;      ///< 0: a free one
  bool pin = false;  ///< rank r on core r mod cores of those that this process may use
  /// Of the whole run; 0: none. When it is over, the ranks are killed.
  Seconds limit;
  /// Lines of ranks as they come, for progress; may be empty.
  std::function<void(int rank, const std::string& line)> on_line;
  std::function<bool()> interrupted;  ///< asked ten times a second; true: ranks are killed
};

struct LaunchResult {
  int exit_code = 0;                  ///< 0, or that of the rank at fault; 1 for a signal
  int rank = -1;                      ///< at fault
  std::vector<std::string> messages;  ///< what it said, or how it ended
  std::string out;                    ///< standard output of rank 0; that of others is not kept
};

/// Throws std::runtime_error if a process cannot be started (the others are killed).
[[nodiscard]] LaunchResult launch(const LaunchOptions&);

/// Path of towtank-runtime: TOWTANK_RUNTIME, else beside this program; empty if there is none.
[[nodiscard]] std::string find_runtime();

}  // namespace towtank
