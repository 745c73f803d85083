// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The commands of towtank-runtime, the program that holds libtorch. `towtank` starts it; started
/// by hand, by torchrun or by srun it is one process, a rank where the environment says so.
///
/// A command returns the exit code. It throws InputError for bad input (exit 2); anything else
/// that it throws ends the process with its message (exit 1). main.cpp lists the commands.
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

/// What a command has of the world; main.cpp alone prints and reads the environment.
struct RuntimeWorld {
  void (*out)(std::string_view text) = nullptr;     ///< the result, standard output
  void (*notice)(std::string_view line) = nullptr;  ///< progress and warnings, standard error
  const char* (*environment)(const char* name) = nullptr;  ///< null where it is not set
};

using RuntimeWords = std::vector<std::string>;  ///< what stands behind the command's name

struct RuntimeCommand {
  std::string_view name;
  std::string_view takes;  ///< the words behind it, for the help text
  std::string_view says;
  int (*function)(const RuntimeWords& words, const RuntimeWorld& world) = nullptr;
};

/// `version`: what this executable is linked with.
[[nodiscard]] int run_version_command(const RuntimeWords& words, const RuntimeWorld& world);

/// `run PLAN`: this process's rank of a plan, see trainer.h.
[[nodiscard]] int run_run_command(const RuntimeWords& words, const RuntimeWorld& world);

}  // namespace towtank
