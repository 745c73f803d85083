// SPDX-License-Identifier: Apache-2.0
#include "app/run_app.h"

#include <new>
#include <ostream>

#include "app/calibrate_command.h"
#include "app/commands.h"
#include "app/help.h"
#include "app/import_command.h"
#include "app/run_command.h"
#include "app/simulate_command.h"
#include "app/validate_command.h"
#include "core/contracts.h"
#include "core/file.h"
#include "core/text.h"

namespace towtank {
namespace {

Outcome dispatch(const Arguments& arguments, const Terminal& terminal) {
  const std::string_view name = arguments.command->name;
  if (arguments.help) {
    Outcome outcome;
    outcome.out = help_of(*arguments.command);
    return outcome;
  }
  if (name == "plan") return run_plan(arguments, terminal);
  if (name == "predict") return run_predict(arguments, terminal);
  if (name == "simulate") return run_simulate(arguments, terminal);
  if (name == "run") return run_run(arguments, terminal);
  if (name == "platforms") return run_platforms(arguments, terminal);
  if (name == "model") return run_model(arguments, terminal);
  if (name == "import") return run_import(arguments, terminal);
  if (name == "calibrate") return run_calibrate(arguments, terminal);
  if (name == "validate") return run_validate(arguments, terminal);
  if (name == "doctor") return run_doctor(arguments, terminal);
  if (name == "version") return run_version(arguments, terminal);
  if (name == "completion") return run_completion(arguments, terminal);
  return run_help(arguments, terminal);
}

const CommandSpec& command_of(const std::string& name) {
  if (const CommandSpec* spec = find_command(name)) return *spec;
  std::vector<std::string_view> names;
  for (const CommandSpec& spec : command_specs()) names.push_back(spec.name);
  const auto near = nearest(name, names);
  if (name.starts_with('-')) {
    throw InputError({printable(name), "stands before a command", "",
                      "Options stand behind a command: towtank COMMAND --help lists them."});
  }
  throw InputError({"", in_quotes(name) + " is not a command", "",
                    near ? "Did you mean " + *near + "?" : "towtank alone lists the commands."});
}

Outcome run(const std::vector<std::string>& arguments, const Terminal& terminal) {
  Outcome outcome;
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    outcome.out = short_help();
    return outcome;
  }
  const bool version = arguments.front() == "--version";
  const CommandSpec& command = command_of(version ? "version" : arguments.front());
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  return dispatch(parse_arguments(command, rest), terminal);
}

void print_lines(std::ostream& err, const std::vector<std::string>& lines, const Terminal& t) {
  const bool colour = t.err_is_terminal && !t.no_color;
  for (const std::string& line : lines) {
    err << (colour ? "\033[31mtowtank:\033[0m " : "towtank: ") << line << "\n";
  }
}

int fail(std::ostream& err, const std::string& line, const Terminal& terminal) {
  print_lines(err, {line}, terminal);
  return kExitInternal;
}

}  // namespace

int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
            const Terminal& terminal) {
  try {
    Outcome outcome = run(arguments, terminal);
    for (const auto& [path, content] : outcome.files) {
      if (path == "-") {
        outcome.out = content;
      } else {
        write_file(path, content);
      }
    }
    print_lines(err, outcome.messages, terminal);
    out << outcome.out;
    out.flush();
    return outcome.exit_code;
  } catch (const InputError& error) {
    std::vector<std::string> lines;
    for (const Fault& fault : error.faults()) lines.push_back(to_text(fault));
    print_lines(err, lines, terminal);
    return kExitBadInput;
  } catch (const ContractViolation& error) {
    return fail(err, error.what(), terminal);
  } catch (const std::bad_alloc&) {
    return fail(err, "out of memory", terminal);
  } catch (const std::exception& error) {
    return fail(err, std::string(error.what()) + " (a defect in towtank). Please report it.",
                terminal);
  }
}

}  // namespace towtank
