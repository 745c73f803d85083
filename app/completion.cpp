// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "app/commands.h"
#include "core/text.h"
#include "platforms/catalogue.h"

namespace towtank {
namespace {

std::string words(const std::vector<std::string>& items) { return join(items, " "); }

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandSpec& spec : command_specs()) names.emplace_back(spec.name);
  return names;
}

std::vector<std::string> option_names(const CommandSpec& spec) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& option : spec.options) {
    names.emplace_back(option.name);
    if (option.negatable) names.push_back("--no-" + std::string(option.name.substr(2)));
  }
  return names;
}

std::vector<std::string> choices_of(const OptionSpec& option) {
  if (option.kind == ValueKind::kPlatform) return catalogue_names();
  return {option.choices.begin(), option.choices.end()};
}

/// Words that may follow a command, besides options.
std::vector<std::string> positional_words(const CommandSpec& spec) {
  if (spec.name == "platforms") {
    std::vector<std::string> out = catalogue_names();
    out.insert(out.begin(), "show");
    return out;
  }
  if (spec.name == "completion") return {"bash", "zsh", "fish"};
  return spec.name == "help" ? command_names() : std::vector<std::string>{};
}

/// bash, and zsh through bashcompinit.
std::string bash_script() {
  std::string out =
      "# bash completion of towtank: eval \"$(towtank completion bash)\"\n"
      "_towtank() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command=${COMP_WORDS[1]} words=''\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      words(command_names()) +
      "\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$command $prev\" in\n";
  for (const CommandSpec& spec : command_specs()) {
    for (const OptionSpec& option : spec.options) {
      if (option.value.empty()) continue;
      const std::vector<std::string> choices = choices_of(option);
      const bool files = option.kind == ValueKind::kFile || option.kind == ValueKind::kPlatform;
      std::string reply =
          choices.empty() ? ""
                          : "COMPREPLY=($(compgen -W \"" + words(choices) + "\" -- \"$cur\")); ";
      if (files) reply += "COMPREPLY+=($(compgen -f -- \"$cur\")); ";
      std::vector<std::string> names{std::string(option.name)};
      if (option.short_name != 0) names.push_back(std::string{'-', option.short_name});
      for (const std::string& name : names) {
        out.append("    '").append(spec.name).append(" ").append(name);
        out.append("') ").append(reply).append("return ;;\n");
      }
    }
  }
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandSpec& spec : command_specs()) {
    std::vector<std::string> all = option_names(spec);
    for (std::string& word : positional_words(spec)) all.push_back(std::move(word));
    out += "    " + std::string(spec.name) + ") words=\"" + words(all) + "\" ;;\n";
  }
  return out +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [ \"$command\" = predict ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
         "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _towtank towtank\n";
}

std::string zsh_script() {
  return "# zsh completion of towtank: eval \"$(towtank completion zsh)\"\n"
         "autoload -Uz compinit bashcompinit\n"
         "compinit\n"
         "bashcompinit\n" +
         bash_script();
}

/// A text in fish's single quotes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script() {
  std::string out =
      "# fish completion of towtank: towtank completion fish | source\n"
      "complete -c towtank -f\n";
  for (const CommandSpec& spec : command_specs()) {
    out += "complete -c towtank -n __fish_use_subcommand -a " + std::string(spec.name) + " -d " +
           fish_quoted(spec.summary) + "\n";
    const std::string when =
        "complete -c towtank -n '__fish_seen_subcommand_from " + std::string(spec.name) + "'";
    for (const OptionSpec& option : spec.options) {
      out += when + " -l " + std::string(option.name.substr(2));
      if (option.short_name != 0) out += std::string(" -s ") + option.short_name;
      const std::vector<std::string> choices = choices_of(option);
      if (!option.value.empty()) out += option.kind == ValueKind::kFile ? " -rF" : " -x";
      if (!choices.empty()) out += " -a " + fish_quoted(words(choices));
      out += " -d " + fish_quoted(option.help) + "\n";
    }
    const std::vector<std::string> extra = positional_words(spec);
    if (!extra.empty()) out += when + " -a " + fish_quoted(words(extra)) + "\n";
    if (spec.name == "predict") out += when + " -F\n";
  }
  return out;
}

}  // namespace

Outcome run_completion(const Arguments& arguments, const Terminal&) {
  constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};
  if (arguments.positionals.empty()) {
    throw InputError({"towtank completion", "needs a shell", "it is one of bash, zsh, fish", ""});
  }
  Faults faults;
  const auto shell = name_index(arguments.positionals.front(), "shell", kShells, faults);
  faults.throw_if_any();
  Outcome outcome;
  outcome.out = *shell == 0 ? bash_script() : *shell == 1 ? zsh_script() : fish_script();
  return outcome;
}

}  // namespace towtank
