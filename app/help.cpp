// SPDX-License-Identifier: Apache-2.0
#include "app/help.h"

#include <algorithm>

#include "app/commands.h"
#include "app/text_table.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr std::size_t kOptionWidth = 28;
constexpr std::size_t kExampleIndent = 6;
constexpr char kGlue = '\1';  // a blank at which no line is broken

std::string option_line(const OptionSpec& spec) {
  std::string left = "  ";
  if (spec.short_name != 0) left += std::string{'-', spec.short_name} + ", ";
  left += spec.negatable ? "--[no-]" + std::string(spec.name.substr(2)) : std::string(spec.name);
  if (!spec.value.empty()) left += " " + std::string(spec.value);
  const bool fits = left.size() + 2 <= kOptionWidth;
  const std::string help = wrapped(spec.help, kOptionWidth);
  if (fits) {
    left.append(kOptionWidth - left.size(), ' ');
    return left + help + "\n";
  }
  return left + "\n" + std::string(kOptionWidth, ' ') + help + "\n";
}

/// Keeps an option and its value on one line.
std::string glued(std::string_view arguments) {
  std::string out(arguments);
  for (std::size_t at = out.find(" --"); at != std::string::npos; at = out.find(" --", at + 1)) {
    const std::size_t end = out.find(' ', at + 1);
    if (end != std::string::npos && out[end + 1] != '-') out[end] = kGlue;
  }
  return out;
}

/// An example on as many lines as it needs, so that it can be pasted.
std::string example_lines(const ExampleSpec& example) {
  std::string out = "  # " + std::string(example.says) + "\n";
  const std::string text =
      wrapped(glued("towtank " + std::string(example.arguments)), kExampleIndent, kScreenWidth - 2);
  std::string command = "  ";
  for (const char c : text) {
    if (c == '\n') command += " \\";
    command += c == kGlue ? ' ' : c;
  }
  return out + command + "\n";
}

}  // namespace

std::string short_help() {
  std::string out =
      "towtank predicts how a distributed deep-learning training job runs, before it runs.\n\n"
      "Usage: towtank COMMAND [options]\n\n";
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kLeft, 2}});
  for (const CommandSpec& spec : command_specs()) {
    table.add_row({std::string(spec.name), std::string(spec.summary)});
  }
  out += table.text();
  out += "\n" + example_lines(command_specs().front().examples.front());
  return out + "\nHelp on a command: towtank COMMAND --help\n";
}

std::string help_of(const CommandSpec& spec) {
  std::string out = "towtank " + std::string(spec.name) + ": " + std::string(spec.summary) +
                    "\n\n" + labelled("Usage:", "towtank " + std::string(spec.usage), 7) + "\n" +
                    wrapped(spec.explanation, 0) + "\n";
  std::vector<std::string_view> groups;
  for (const OptionSpec& option : spec.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string_view group : groups) {
    out += "\n" + std::string(group) + "\n";
    for (const OptionSpec& option : spec.options) {
      if (option.group == group) out += option_line(option);
    }
  }
  out +=
      spec.examples.size() == 1 ? "\nExample\n" : "\nExamples, from the root of the source tree\n";
  for (const ExampleSpec& example : spec.examples) out += example_lines(example);
  return out;
}

Outcome run_help(const Arguments& arguments, const Terminal&) {
  Outcome outcome;
  if (arguments.positionals.empty()) {
    outcome.out = short_help();
    return outcome;
  }
  const std::string& name = arguments.positionals.front();
  if (const CommandSpec* spec = find_command(name)) {
    outcome.out = help_of(*spec);
    return outcome;
  }
  std::vector<std::string_view> names;
  for (const CommandSpec& spec : command_specs()) names.push_back(spec.name);
  Faults faults;
  static_cast<void>(name_index(name, "help", names, faults));
  faults.throw_if_any();
  return outcome;
}

}  // namespace towtank
