// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The commands and their options, once, as data: what parses them, helps with them and completes
/// them reads this table.
#include <span>
#include <string_view>
#include <vector>

namespace towtank {

/// What a value is, for completion.
enum class ValueKind { kNone, kText, kFile, kPlatform, kChoice };

struct OptionSpec {
  std::string_view name;   ///< "--model"
  std::string_view value;  ///< "FILE"; empty: a flag without a value
  std::string_view group;  ///< heading in the help
  std::string_view help;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string_view> choices{};  ///< kChoice
  char short_name = 0;                      ///< 'o' for -o
  bool negatable = false;                   ///< a flag that also has --no-...
};

struct ExampleSpec {
  std::string_view arguments;  ///< after "towtank", runs from the root of the source tree
  std::string_view says;
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;                   ///< one line
  std::string_view usage;                     ///< after "towtank"
  std::string_view explanation;               ///< one paragraph
  std::vector<std::string_view> positionals;  ///< names, all optional here; "...": any number
  std::vector<OptionSpec> options;
  std::vector<ExampleSpec> examples;
};

/// In the order in which the help lists them.
[[nodiscard]] std::span<const CommandSpec> command_specs();
/// nullptr if there is none of this name.
[[nodiscard]] const CommandSpec* find_command(std::string_view name);

}  // namespace towtank
