// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11: it sorts tokens into options and positionals. What a value
// means is read in arguments.cpp, so that every fault has the same grammar.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/arguments.h"
#include "core/text.h"

namespace towtank {
namespace {

/// What CLI11 filled in for one option.
struct Slot {
  const OptionSpec* spec = nullptr;
  std::vector<std::string> values;
  CLI::Option* option = nullptr;
  CLI::Option* negative = nullptr;
};

std::string negative_name(const OptionSpec& spec) {
  return "--no-" + std::string(spec.name.substr(2));
}

void add_option(CLI::App& app, Slot& slot) {
  const OptionSpec& spec = *slot.spec;
  std::string names(spec.name);
  if (spec.short_name != 0) names = std::string{'-', spec.short_name, ','} + names;
  if (spec.value.empty()) {
    slot.option = app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (spec.negatable) slot.negative = app.add_flag(negative_name(spec));
    return;
  }
  slot.option = app.add_option(names, slot.values)
                    ->expected(1)
                    ->allow_extra_args(false)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<std::string> option_names(const CommandSpec& command) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& spec : command.options) {
    names.emplace_back(spec.name);
    if (spec.negatable) names.push_back(negative_name(spec));
  }
  return names;
}

void check_unknown(const CommandSpec& command, const std::vector<std::string>& rest,
                   Faults& faults) {
  const std::vector<std::string> known = option_names(command);
  for (const std::string& token : rest) {
    if (token.size() < 2 || token.front() != '-') continue;
    const std::string name = token.substr(0, token.find('='));
    const auto near = nearest(name, known);
    faults.add({printable(name), "is not an option of towtank " + std::string(command.name), "",
                near ? "Did you mean " + *near + "?"
                     : "See towtank " + std::string(command.name) + " --help."});
  }
}

void collect(const Slot& slot, Arguments& out, Faults& faults) {
  const std::string name(slot.spec->name);
  const std::size_t on = slot.option->count();
  const std::size_t off = slot.negative != nullptr ? slot.negative->count() : 0;
  if (on + off > 1) {
    faults.add(
        {name, off > 0 && on > 0 ? "is given with and without --no-" : "is given twice", "", ""});
    return;
  }
  if (on + off == 0) return;
  if (slot.spec->value.empty()) {
    out.flags[name] = on == 1;
    return;
  }
  // CLI11 takes whatever follows; a value that looks like an option is a forgotten value.
  const std::string& value = slot.values.front();
  if (value.starts_with("--") || value.empty()) {
    faults.add(
        {name, "needs a value", "", "Write " + name + " " + std::string(slot.spec->value) + "."});
    return;
  }
  out.values[name] = value;
}

void parse_into(CLI::App& app, const CommandSpec& command, const std::vector<std::string>& tokens) {
  try {
    app.parse(std::vector<std::string>(tokens.rbegin(), tokens.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    const std::string name = text.substr(0, text.find(':'));
    for (const OptionSpec& spec : command.options) {
      if (spec.name != name) continue;
      if (spec.value.empty()) throw InputError({name, "takes no value", "", ""});
      throw InputError(
          {name, "needs a value", "", "Write " + name + " " + std::string(spec.value) + "."});
    }
    throw InputError({"command line", text, "", ""});
  } catch (const CLI::ParseError& error) {
    throw InputError({"command line", error.what(), "",
                      "See towtank " + std::string(command.name) + " --help."});
  }
}

}  // namespace

Arguments parse_arguments(const CommandSpec& command, const std::vector<std::string>& tokens) {
  Arguments out;
  out.command = &command;
  if (std::find(tokens.begin(), tokens.end(), "--help") != tokens.end() ||
      std::find(tokens.begin(), tokens.end(), "-h") != tokens.end()) {
    out.help = true;
    return out;
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<Slot> slots(command.options.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].spec = &command.options[i];
    add_option(app, slots[i]);
  }
  parse_into(app, command, tokens);
  std::vector<std::string> rest = app.remaining();
  const bool many = !command.positionals.empty() && command.positionals.back().ends_with("...");
  while ((many || out.positionals.size() < command.positionals.size()) && !rest.empty() &&
         (rest.front() == "-" || !rest.front().starts_with('-'))) {
    out.positionals.push_back(rest.front());
    rest.erase(rest.begin());
  }
  // Unknown options alone if there are any: what follows them may be their value.
  Faults faults;
  check_unknown(command, rest, faults);
  faults.throw_if_any();
  for (const Slot& slot : slots) collect(slot, out, faults);
  faults.throw_if_any();
  for (const std::string& token : rest) {
    faults.add({"", in_quotes(token) + " is not expected here", "",
                "Usage: towtank " + std::string(command.usage)});
  }
  faults.throw_if_any();
  return out;
}

}  // namespace towtank
