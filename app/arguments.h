// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What stands on the command line: tokens sorted into options and positionals by a command's
/// table, then read as numbers, names and flags. Faults have the option in the place of a file.
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_spec.h"
#include "core/input_error.h"

namespace towtank {

struct Arguments {
  const CommandSpec* command = nullptr;
  std::map<std::string, std::string, std::less<>> values;  ///< "--model" -> "config.json"
  std::map<std::string, bool, std::less<>> flags;          ///< "--json" -> true; --no-x: false
  std::vector<std::string> positionals;
  bool help = false;
};

/// Throws InputError with every unknown option (and the nearest known one), missing value, repeated
/// option and superfluous argument. `tokens` are those after the command's name.
[[nodiscard]] Arguments parse_arguments(const CommandSpec& command,
                                        const std::vector<std::string>& tokens);

/// "towtank plan --model config.json ...": what was asked, quoted for a shell, in the order of the
/// command's table and without options that write or shape the output.
[[nodiscard]] std::string asked_command(const Arguments&);

/// Typed access. A fault is collected and a harmless value returned, so that all are told.
class ArgumentReader {
 public:
  ArgumentReader(const Arguments& arguments, Faults& faults)
      : arguments_(&arguments), faults_(&faults) {}

  [[nodiscard]] bool has(std::string_view option) const;
  [[nodiscard]] bool flag(std::string_view option) const;
  /// Given or not, and how.
  [[nodiscard]] std::optional<bool> switch_of(std::string_view option) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  /// Missing is a fault with this hint.
  [[nodiscard]] std::string need_text(std::string_view option, std::string_view hint) const;
  [[nodiscard]] std::optional<int> integer(std::string_view option, int least, int most) const;
  [[nodiscard]] int need_integer(std::string_view option, int least, int most,
                                 std::string_view hint) const;
  [[nodiscard]] std::optional<double> number(std::string_view option, double least,
                                             double most) const;
  /// Index of one of the names; a fault names the nearest.
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view option,
                                                  std::span<const std::string_view> names) const;

  [[nodiscard]] Faults& faults() const { return *faults_; }

 private:
  const Arguments* arguments_;
  Faults* faults_;
};

/// A whole number in a range, or a fault at `where`.
[[nodiscard]] std::optional<int> whole_number(std::string_view text, const std::string& where,
                                              int least, int most, Faults& faults);
/// Index of one of the names, or a fault at `where` with the nearest.
[[nodiscard]] std::optional<std::size_t> name_index(std::string_view text, const std::string& where,
                                                    std::span<const std::string_view> names,
                                                    Faults& faults);

}  // namespace towtank
