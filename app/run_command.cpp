// SPDX-License-Identifier: Apache-2.0
#include "app/run_command.h"

#include <array>

#include "validate/run/launch.h"

namespace towtank {
namespace {

constexpr std::string_view kRun = "The run";
constexpr std::string_view kOutput = "Output";
constexpr std::array<std::string_view, 2> kOnOff{"on", "off"};
constexpr int kMostSteps = 1'000'000;
constexpr int kMostPorts = 65535;
constexpr int kMostSeconds = 86'400;

LaunchOptions options_of(const ArgumentReader& arguments, const std::string& plan, Faults& faults) {
  LaunchOptions options;
  options.words = {"run", plan};
  const auto pass = [&](std::string_view name, const std::string& value) {
    options.words.emplace_back(name);
    options.words.push_back(value);
  };
  const auto pass_integer = [&](std::string_view name, int least, int most, int fallback) {
    pass(name, std::to_string(arguments.integer(name, least, most).value_or(fallback)));
  };
  pass_integer("--steps", 1, kMostSteps, 5);
  pass_integer("--warm-up", 0, kMostSteps, 2);
  pass_integer("--seed", 0, 1'000'000'000, 1);
  pass_integer("--timeout", 1, kMostSeconds, 300);
  options.port = arguments.integer("--port", 1, kMostPorts).value_or(0);
  options.pin = arguments.choice("--pin", kOnOff).value_or(1) == 0;
  options.program = find_runtime();
  if (options.program.empty()) {
    faults.add({"towtank run", "needs towtank-runtime, which is not here", "",
                "Install libtorch-dev libgloo-dev libopenblas0-pthread and build again, or set "
                "TOWTANK_RUNTIME to its path"});
  }
  return options;
}

Outcome failed(const LaunchResult& result) {
  Outcome outcome;
  outcome.exit_code = result.exit_code;
  outcome.messages = result.messages;
  return outcome;
}

}  // namespace

CommandSpec run_spec() {
  CommandSpec spec{
      "run",
      "execute a plan with real processes on this machine",
      "run PLAN.json [options]",
      "Trains the plan's model on synthetic data, one process a rank, and prints where the time of "
      "each rank's step went and the memory of its tensors: what predict predicts, measured. GPT-2 "
      "and Llama-like models in fp32 on CPUs. On a cluster start towtank-runtime run PLAN.json "
      "under srun or torchrun instead. Needs the program towtank-runtime (libtorch-dev).",
      {"PLAN.json"},
      {{"--steps", "N", kRun, "steps to measure (default 5)", ValueKind::kText},
       {"--warm-up", "N", kRun, "steps before them (default 2)", ValueKind::kText},
       {"--seed", "N", kRun, "of parameters and data (default 1)", ValueKind::kText},
       {"--port", "P", kRun, "where ranks meet on 127.0.0.1 (default: a free one)",
        ValueKind::kText},
       {"--pin",
        "on|off",
        kRun,
        "one core a rank, round robin (default off)",
        ValueKind::kChoice,
        {"on", "off"}},
       {"--timeout", "S", kRun, "seconds that a rank waits for another one (default 300)",
        ValueKind::kText},
       {"--case", "FILE", kOutput, "write a towtank-case line, for validate", ValueKind::kFile},
       {"--trace", "FILE", kOutput, "write the last step for Perfetto or chrome://tracing",
        ValueKind::kFile},
       {"--record", "FILE", kOutput, "write everything that was measured (docs/formats-run.md)",
        ValueKind::kFile},
       {"--json", "", kOutput, "the result as JSON instead of text", ValueKind::kNone}},
      {{"run examples/plans/tiny-pipeline-2.json",
        "a pipeline of two processes, seconds on a laptop"}}};
  return spec;
}

Outcome run_run(const Arguments& parsed, const Terminal&) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  if (parsed.positionals.empty()) {
    faults.add({"towtank run", "needs a plan file", "", "towtank predict -o writes one"});
    faults.throw_if_any();
  }
  const std::string& path = parsed.positionals.front();
  LaunchOptions options = options_of(arguments, path, faults);
  const auto case_path = arguments.text("--case"), trace_path = arguments.text("--trace"),
             record_path = arguments.text("--record");
  faults.throw_if_any();
  const RunnablePlan plan = load_runnable(path);
  options.ranks = plan.plan.devices();
  const LaunchResult result = launch(options);
  if (result.exit_code != 0) return failed(result);
  const RunRecord record = parse_run_record(JsonFile::parse(result.out, "towtank-runtime"));
  Outcome outcome;
  const std::string& host = record.ranks.front().host;
  if (case_path) {
    const std::string id = "run-" + plan.file.workload.model_hash + "-0001";
    outcome.files.emplace_back(*case_path,
                               case_line(plan.file, record, id, "towtank run on " + host));
  }
  if (trace_path) {
    outcome.files.emplace_back(*trace_path,
                               run_trace(record, record.ranks.front().steps.size() - 1));
  }
  if (record_path) outcome.files.emplace_back(*record_path, result.out);
  outcome.out = arguments.flag("--json") ? measured_json(record) : measured_text(plan, record);
  return outcome;
}

}  // namespace towtank
