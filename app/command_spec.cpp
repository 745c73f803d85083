// SPDX-License-Identifier: Apache-2.0
#include "app/command_spec.h"

#include <algorithm>

#include "app/calibrate_command.h"
#include "app/import_command.h"
#include "app/run_command.h"
#include "app/validate_command.h"
#include "model/frameworks/rules.h"
#include "model/memory/memory.h"
#include "placement/schedule.h"

namespace towtank {
namespace {

using Options = std::vector<OptionSpec>;

constexpr std::string_view kWhat = "What to train";
constexpr std::string_view kWhere = "Where";
constexpr std::string_view kHow = "How";
constexpr std::string_view kSearch = "Search";
constexpr std::string_view kPlan = "The plan (instead of PLAN.json)";
constexpr std::string_view kOutput = "Output";

template <class Names>
std::vector<std::string_view> all_of(const Names& names) {
  return {names.begin(), names.end()};
}

Options question_options() {
  return {
      {"--model", "FILE", kWhat, "a Hugging Face config.json, or a towtank-graph file",
       ValueKind::kFile},
      {"--sequence", "S", kWhat, "tokens a sample (graphs and vit: not needed)", ValueKind::kText},
      {"--global-batch", "B", kWhat, "samples in one optimizer step, over all replicas",
       ValueKind::kText},
      {"--precision",
       "TYPE",
       kWhat,
       "bf16 (default), fp16, fp8, fp32",
       ValueKind::kChoice,
       {"bf16", "fp16", "fp8", "fp32"}},
      {"--optimizer",
       "NAME",
       kWhat,
       "adam (default), sgd, momentum",
       ValueKind::kChoice,
       {"adam", "sgd", "momentum"}},
      {"--train-tokens", "T", kWhat, "tokens to train in all, as 15e12: prints days and cost",
       ValueKind::kText},
      {"--expert-load", "X", kWhat, "most loaded over mean expert (default 1: balanced)",
       ValueKind::kText},
      {"--platform", "NAME|FILE", kWhere, "a machine of the catalogue, or a platform file",
       ValueKind::kPlatform},
      {"--devices", "N", kWhere, "devices, taken in the order of the platform's nodes",
       ValueKind::kText},
      {"--framework", "NAME", kHow,
       "megatron (default), megatron-2021, megatron-deepspeed, nemo, fsdp, torchtitan, "
       "deepspeed, towtank-runtime",
       ValueKind::kChoice, all_of(kFrameworkNames)},
      {"--tensor-beyond-node", "", kHow, "let tensor groups span nodes", ValueKind::kNone},
      {"--calibration", "NAME|FILE,...", kHow,
       "calibrations asked before the platform's own and the shipped ones", ValueKind::kFile},
  };
}

Options output_options() {
  return {
      {"--json", "", kOutput, "the result as JSON (docs/formats.md) instead of text",
       ValueKind::kNone},
      {"--explain", "", kOutput, "every assumption, and the framework's rules with their sources",
       ValueKind::kNone},
  };
}

void append(Options& to, Options more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

CommandSpec plan_spec() {
  CommandSpec spec{
      "plan",
      "search for the fastest plans that fit",
      "plan --model FILE --platform NAME --devices N --sequence S --global-batch B [options]",
      "Searches every way to divide the training over the devices (tensor, pipeline, data, context "
      "and expert parallelism, microbatch, schedule, sharding stage, recomputation) and prints the "
      "plans that fit, fastest first: their predicted step time and memory, why each of them loses "
      "to the first, and which term binds. Nothing is measured and no device is needed.",
      {},
      question_options(),
      {}};
  append(spec.options,
         {{"--pin", "KEY=VALUE,...", kSearch,
           "keep values fixed, as tensor=8,pipeline=4. Keys: tensor, pipeline, data, context, "
           "expert, expert_tensor, stages_per_rank, microbatch, schedule, sharding_stage, "
           "sequence_parallel, recompute",
           ValueKind::kText},
          {"--top", "K", kSearch, "plans to print (default 10)", ValueKind::kText},
          {"--confirm", "K", kSearch,
           "simulate the first K plans as well and say which is fastest when links are shared; "
           "--output then writes that one",
           ValueKind::kText},
          {"--memory-limit", "X", kSearch,
           "share of device memory that a plan may need (default 0.95)", ValueKind::kText}});
  append(spec.options, output_options());
  spec.options.push_back({"--output",
                          "FILE",
                          kOutput,
                          "write the first plan to a file, for predict (-: print it alone)",
                          ValueKind::kFile,
                          {},
                          'o'});
  spec.examples = {
      {"plan --model examples/models/llama-3.1-70b/config.json --platform dgx-h100 --devices 64 "
       "--sequence 8192 --global-batch 128",
       "the fastest plans for Llama-3.1-70B on 64 H100"},
      {"plan --model examples/models/mixtral-8x7b/config.json --platform dgx-a100-80g --devices 64 "
       "--sequence 4096 --global-batch 256 --pin tensor=4,microbatch=1 --top 3",
       "the best three with tensor parallelism and microbatch decided"},
      {"plan --model examples/models/gpt2/config.json --platform dgx-h100 --devices 8 "
       "--sequence 1024 --global-batch 512 --train-tokens 300e9 --json",
       "the same as JSON, with the length of a run over 300 G tokens"},
  };
  return spec;
}

Options plan_key_options() {
  return {
      {"--tensor", "T", kPlan, "tensor parallel degree (default 1)", ValueKind::kText},
      {"--pipeline", "P", kPlan, "pipeline parallel degree (default 1)", ValueKind::kText},
      {"--data", "D", kPlan, "data parallel degree (default: what the others leave)",
       ValueKind::kText},
      {"--context", "C", kPlan, "context parallel degree (default 1)", ValueKind::kText},
      {"--expert", "E", kPlan, "expert parallel degree (default 1)", ValueKind::kText},
      {"--expert-tensor", "T", kPlan, "tensor parallel degree of experts (default 1)",
       ValueKind::kText},
      {"--stages-per-rank", "V", kPlan, "pipeline stages on each rank (default 1)",
       ValueKind::kText},
      {"--microbatch", "B", kPlan, "samples in one forward pass (default 1)", ValueKind::kText},
      {"--schedule", "NAME", kPlan, "gpipe, 1f1b, interleaved, zb-h1 (default: 1f1b in a pipeline)",
       ValueKind::kChoice, all_of(kScheduleNames)},
      {"--sharding-stage", "Z", kPlan,
       "what data parallel ranks divide: 0 nothing, 1 optimizer, 2 gradients, 3 parameters "
       "(default: 1 in a group of several, if the framework has it)",
       ValueKind::kText},
      {"--recompute", "MODE", kPlan, "none, selective, full (default: the framework's)",
       ValueKind::kChoice, all_of(kRecomputeModeNames)},
      {"--sequence-parallel",
       "",
       kPlan,
       "(default with tensor parallelism; --no- turns it off)",
       ValueKind::kNone,
       {},
       0,
       true},
  };
}

CommandSpec predict_spec() {
  CommandSpec spec{
      "predict",
      "step time and memory of one plan",
      "predict PLAN.json | predict --model FILE --platform NAME ... --tensor T ...",
      "Predicts what one given plan does, from a plan file or from its keys as flags. A plan that "
      "breaks a rule is refused with every broken rule and its valid values; one that does not fit "
      "is reported all the same, with what it lacks and the nearest change that fits (exit code "
      "3).",
      {"PLAN.json"},
      question_options(),
      {}};
  append(spec.options, plan_key_options());
  append(spec.options, output_options());
  spec.options.push_back({"--output",
                          "FILE",
                          kOutput,
                          "write the plan to a file (-: print it alone)",
                          ValueKind::kFile,
                          {},
                          'o'});
  spec.examples = {
      {"predict --model examples/models/llama-3.1-70b/config.json --platform dgx-h100 --devices 64 "
       "--sequence 8192 --global-batch 128 --tensor 8 --pipeline 4",
       "a plan by its degrees; the rest is said in the header"},
      {"predict --model examples/models/llama-3-8b/config.json --platform dgx-h100 --devices 8 "
       "--sequence 8192 --global-batch 16 --framework torchtitan --sharding-stage 3 --recompute "
       "selective",
       "fully sharded on one node"},
      {"predict examples/plans/llama-3.1-70b-64xh100.json", "a plan that `towtank plan -o` wrote"},
  };
  return spec;
}

CommandSpec simulate_spec() {
  CommandSpec spec{
      "simulate",
      "one step of a plan with its links shared",
      "simulate PLAN.json | simulate --model FILE --platform NAME ... --tensor T ... | simulate "
      "--replay TRACE...",
      "Runs one step of a plan through SimGrid, where communications that meet on a link share it, "
      "and prints when everything happens: the critical path, the busiest links, idle time, a "
      "chart, and how much later than the closed form of predict it ends. Replicas that behave "
      "alike are simulated once. With --replay the step is one that was recorded, from the traces "
      "of "
      "its ranks: as it was, or with ranks that are slower or faster (--straggler). Needs the "
      "program towtank-sim (libsimgrid-dev).",
      {"PLAN.json|TRACE..."},
      question_options(),
      {}};
  append(spec.options, plan_key_options());
  append(
      spec.options,
      {{"--contention",
        "on|off",
        kHow,
        "off: every communication has its links to itself, as in predict",
        ValueKind::kChoice,
        {"on", "off"}},
       {"--straggler", "RANK", kHow,
        "a slow rank, as rank=12,slowdown=1.3; several behind semicolons", ValueKind::kText},
       {"--background", "LINKS=RATE", kHow,
        "traffic of others: a rate or a share on the links of a level (leaf=40%) or of one unit "
        "(node 3=10 GB/s; node 3 rail 0 up=...); with ,burst=64 MiB it comes at random times",
        ValueKind::kText},
       {"--seed", "N", kHow, "of those random times (default 1)", ValueKind::kText},
       {"--replay", "", kHow, "simulate a step of these traces, which `towtank import` can read",
        ValueKind::kNone},
       {"--step", "N", kHow, "which step of the traces, from 0 (default: that of median length)",
        ValueKind::kText},
       {"--step-marker", "TEXT", kHow,
        "annotations of the traces whose name begins so are steps (default ProfilerStep#)",
        ValueKind::kText},
       {"--links", "", kOutput, "every link that is used, not only the busiest", ValueKind::kNone},
       {"--trace", "FILE", kOutput, "write a trace for Perfetto or chrome://tracing",
        ValueKind::kFile},
       {"--chart", "FILE", kOutput, "write a picture of the step (SVG)", ValueKind::kFile},
       {"--json", "", kOutput, "the result as JSON (docs/formats-sim.md) instead of text",
        ValueKind::kNone}});
  spec.examples = {
      {"simulate --model examples/models/llama-3.1-70b/config.json --platform dgx-h100 --devices "
       "64 --sequence 8192 --global-batch 128 --tensor 8 --pipeline 4 --recompute full",
       "a pipeline with its sends and gradient buckets"},
      {"simulate --model examples/models/llama-3-8b/config.json --platform dgx-h100 --devices 32 "
       "--sequence 8192 --global-batch 64 --tensor 4 --straggler rank=12,slowdown=1.3",
       "one device 30 % slow"},
      {"simulate --model examples/models/llama-3-8b/config.json --platform dgx-h100 --devices 32 "
       "--sequence 8192 --global-batch 64 --tensor 4 --background node=30%",
       "others take up to 30 % of every network port"},
      {"simulate --replay examples/traces/rank0.json examples/traces/rank1.json --straggler "
       "rank=1,slowdown=0.8",
       "a recorded step, if its slow rank were as fast as the other"},
  };
  return spec;
}

CommandSpec platforms_spec() {
  return {
      "platforms",
      "the machines that towtank knows",
      "platforms [show NAME|FILE]",
      "Lists the catalogue, or shows one machine with its device, node and network figures. A "
      "machine of your own is a JSON file of the same form: `platforms show NAME --json` prints "
      "one to start from.",
      {"ACTION", "NAME"},
      {{"--devices", "N", kWhere,
        "how many of them in the SimGrid file (default: all that there are)", ValueKind::kText},
       {"--simgrid-xml", "FILE", kOutput,
        "write the machine's devices and links as a platform file that SimGrid reads",
        ValueKind::kFile},
       {"--json", "", kOutput, "as JSON", ValueKind::kNone}},
      {{"platforms", "every machine in one table"},
       {"platforms show dgx-h100", "one machine"},
       {"platforms show dgx-h100 --json", "its whole file"},
       {"platforms show dgx-h100 --devices 16 --simgrid-xml -", "two nodes of it for SimGrid"}}};
}

CommandSpec model_spec() {
  return {
      "model",
      "what a model consists of",
      "model --model FILE [--sequence S] [options]",
      "Reads a model and prints what the planner sees: parameters by part, FLOP of a sample, "
      "layers and their kinds, and what the file left to the family's defaults.",
      {},
      {{"--model", "FILE", kWhat, "a Hugging Face config.json, or a towtank-graph file",
        ValueKind::kFile},
       {"--sequence", "S", kWhat, "tokens a sample (graphs and vit: not needed)", ValueKind::kText},
       {"--json", "", kOutput, "as JSON", ValueKind::kNone},
       {"--graph", "FILE", kOutput, "write the model as a towtank-graph file (-: print it alone)",
        ValueKind::kFile}},
      {{"model --model examples/models/llama-3.1-70b/config.json --sequence 8192",
        "Llama-3.1-70B in parts"},
       {"model --model examples/models/mixtral-8x7b/config.json --sequence 4096 --json",
        "a mixture of experts, as JSON"}}};
}

std::vector<CommandSpec> make_specs() {
  const OptionSpec json{"--json", "", kOutput, "as JSON", ValueKind::kNone};
  std::vector<CommandSpec> specs{plan_spec(),   predict_spec(),   simulate_spec(),
                                 run_spec(),    platforms_spec(), model_spec(),
                                 import_spec(), calibrate_spec(), validate_spec()};
  specs.push_back({"doctor",
                   "what this build can do, and what is missing",
                   "doctor [--json]",
                   "Checks that the catalogue loads, and says which parts are in this build, which "
                   "are not, and why.",
                   {},
                   {json},
                   {{"doctor", "the state of this build"}}});
  specs.push_back({"version",
                   "version and libraries",
                   "version [--json]",
                   "Prints the version and the libraries that were compiled in.",
                   {},
                   {json},
                   {{"version", "the version"}}});
  specs.push_back(
      {"completion",
       "completion script for a shell",
       "completion bash|zsh|fish",
       "Prints a script that completes commands, options, machine names and files. Load it from "
       "the shell's start-up file.",
       {"SHELL"},
       {},
       {{"completion bash", "for bash: eval \"$(towtank completion bash)\" in ~/.bashrc"}}});
  specs.push_back({"help",
                   "help on a command",
                   "help [COMMAND]",
                   "Prints the help of a command, as --help behind it does.",
                   {"COMMAND"},
                   {},
                   {{"help plan", "the help of plan"}}});
  return specs;
}

const std::vector<CommandSpec>& specs() {
  static const std::vector<CommandSpec> all = make_specs();
  return all;
}

}  // namespace

std::span<const CommandSpec> command_specs() { return specs(); }

const CommandSpec* find_command(std::string_view name) {
  const auto all = command_specs();
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const CommandSpec& spec) { return spec.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace towtank
