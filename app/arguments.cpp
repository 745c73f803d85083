// SPDX-License-Identifier: Apache-2.0
#include "app/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

/// "3", "0.95", "15e12"; a grouped or suffixed number is not one.
std::optional<double> real_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int> whole_number(std::string_view text, const std::string& where, int least,
                                int most, Faults& faults) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    faults.add({where, in_quotes(text) + " is out of range",
                "it must lie in " + std::to_string(least) + " to " + std::to_string(most), ""});
    return std::nullopt;
  }
  if (error != std::errc{} || end != text.data() + text.size()) {
    faults.add({where, in_quotes(text) + " is not a whole number",
                "digits only, without separators or a suffix", ""});
    return std::nullopt;
  }
  if (value < least || value > most) {
    faults.add({where, std::to_string(value) + " is out of range",
                "it must lie in " + std::to_string(least) + " to " + std::to_string(most), ""});
    return std::nullopt;
  }
  return static_cast<int>(value);
}

std::optional<std::size_t> name_index(std::string_view text, const std::string& where,
                                      std::span<const std::string_view> names, Faults& faults) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return i;
  }
  const auto near = nearest(text, names);
  std::vector<std::string> all(names.begin(), names.end());
  faults.add({where, in_quotes(text) + " is not known", "it must be one of " + join(all, ", "),
              near ? "Did you mean " + *near + "?" : ""});
  return std::nullopt;
}

namespace {

std::string quoted_for_shell(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./,=:+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string asked_command(const Arguments& arguments) {
  std::string out = "towtank " + std::string(arguments.command->name);
  for (const OptionSpec& spec : arguments.command->options) {
    if (spec.group == "Output") continue;
    const std::string name(spec.name);
    if (const auto value = arguments.values.find(name); value != arguments.values.end()) {
      out += " " + name + " " + quoted_for_shell(value->second);
    }
    if (const auto flag = arguments.flags.find(name); flag != arguments.flags.end()) {
      out += " " + (flag->second ? name : "--no-" + name.substr(2));
    }
  }
  for (const std::string& word : arguments.positionals) out += " " + quoted_for_shell(word);
  return out;
}

bool ArgumentReader::has(std::string_view option) const {
  return arguments_->values.contains(option) || arguments_->flags.contains(option);
}

bool ArgumentReader::flag(std::string_view option) const {
  return switch_of(option).value_or(false);
}

std::optional<bool> ArgumentReader::switch_of(std::string_view option) const {
  const auto at = arguments_->flags.find(option);
  return at == arguments_->flags.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::string> ArgumentReader::text(std::string_view option) const {
  const auto at = arguments_->values.find(option);
  return at == arguments_->values.end() ? std::nullopt : std::optional(at->second);
}

std::string ArgumentReader::need_text(std::string_view option, std::string_view hint) const {
  if (auto value = text(option)) return *value;
  faults_->add({std::string(option), "is missing", "", std::string(hint)});
  return "";
}

std::optional<int> ArgumentReader::integer(std::string_view option, int least, int most) const {
  const auto value = text(option);
  return value ? whole_number(*value, std::string(option), least, most, *faults_) : std::nullopt;
}

int ArgumentReader::need_integer(std::string_view option, int least, int most,
                                 std::string_view hint) const {
  if (text(option)) return integer(option, least, most).value_or(least);
  faults_->add({std::string(option), "is missing", "", std::string(hint)});
  return least;
}

std::optional<double> ArgumentReader::number(std::string_view option, double least,
                                             double most) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  const auto number = real_number(*value);
  if (!number) {
    faults_->add({std::string(option), in_quotes(*value) + " is not a number",
                  "digits, with an exponent for large ones: 15e12", ""});
    return std::nullopt;
  }
  if (*number < least || *number > most) {
    faults_->add({std::string(option), printable(*value) + " is out of range",
                  "it must lie in " + three_digits(least) + " to " + three_digits(most), ""});
    return std::nullopt;
  }
  return number;
}

std::optional<std::size_t> ArgumentReader::choice(std::string_view option,
                                                  std::span<const std::string_view> names) const {
  const auto value = text(option);
  return value ? name_index(*value, std::string(option), names, *faults_) : std::nullopt;
}

}  // namespace towtank
