// SPDX-License-Identifier: Apache-2.0
#include "app/asked_plan.h"

#include <algorithm>

#include "app/pins.h"
#include "core/text.h"

namespace towtank {
namespace {

/// Options that a plan file answers already.
void refuse_options_beside_file(const Arguments& parsed, const std::string& file,
                                std::span<const std::string_view> allowed, Faults& faults) {
  for (const auto& [name, value] : parsed.values) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    if (name == "--calibration") continue;  // of the machine as it is now
    faults.add({name, "cannot stand beside a plan file", printable(file) + " says it already",
                "Change the file, or give everything as options"});
  }
}

}  // namespace

AskedPlan read_asked_plan(const Arguments& parsed, const ArgumentReader& arguments,
                          std::span<const std::string_view> beside_file, Faults& faults) {
  if (!parsed.positionals.empty()) {
    const std::string& path = parsed.positionals.front();
    refuse_options_beside_file(parsed, path, beside_file, faults);
    faults.throw_if_any();
    const PlanFile file = parse_plan_file(JsonFile::load(path));
    AskedPlan asked{question_of(file, path), file.plan, path + ": /plan"};
    asked.question->calibrations = read_calibrations(arguments);
    return asked;
  }
  if (parsed.values.empty()) {
    const std::string name(parsed.command->name);
    throw InputError({"towtank " + name, "needs a plan", "",
                      "Give a plan file, or --model, --platform, --devices, --sequence, "
                      "--global-batch and the plan's degrees: see towtank " +
                          name + " --help"});
  }
  // Read the plan before the model: both report their faults together.
  std::vector<std::string> plan_defaults;
  const auto framework = arguments.text("--framework");
  const Framework known = framework_from(framework.value_or("")).value_or(Framework::kMegatron);
  const auto devices = arguments.text("--devices");
  Faults ignored;  // read_question reports a bad number
  const int count = devices ? whole_number(*devices, "", 1, 1 << 22, ignored).value_or(1) : 1;
  const Plan plan = plan_of_flags(arguments, known, count, plan_defaults);
  AskedPlan asked{read_question(arguments), plan, "plan"};
  auto& defaults = asked.question->defaults;
  defaults.insert(defaults.end(), plan_defaults.begin(), plan_defaults.end());
  return asked;
}

Outcome invalid_plan(const std::string& where, const std::vector<Invalid>& faults) {
  Outcome outcome;
  outcome.exit_code = kExitInfeasible;
  for (const Invalid& fault : faults) {
    outcome.messages.push_back(where + ": " + to_text(fault));
  }
  return outcome;
}

}  // namespace towtank
