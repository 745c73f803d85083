// SPDX-License-Identifier: Apache-2.0
#include "app/question.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/calibration_json.h"
#include "model/cost/choose_costs.h"
#include "model/graph/hf_import.h"
#include "platforms/catalogue.h"
#include "platforms/platform_json.h"

namespace towtank {
namespace {

constexpr int kMostDevices = 1 << 22;
constexpr int kMostTokens = 1 << 26;
constexpr int kMostBatch = 1 << 30;
constexpr std::array<std::string_view, 4> kPrecisions{"bf16", "fp16", "fp8", "fp32"};
constexpr std::array<std::string_view, 3> kOptimizers{"adam", "sgd", "momentum"};

/// The edge of the program: faults of several inputs are told together, so one input's must not
/// end the reading of the next.
template <class Action>
void collecting(Faults& faults, Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    for (const Fault& fault : error.faults()) faults.add(fault);
  }
}

/// "llama-3.1-70b" of "models/llama-3.1-70b/config.json", "unet" of "unet.json".
std::string name_of_path(const std::string& path) {
  const auto base = [](std::string_view p) {
    const std::size_t slash = p.find_last_of('/');
    return std::string(slash == std::string_view::npos ? p : p.substr(slash + 1));
  };
  std::string stem = base(path);
  stem = stem.substr(0, stem.rfind('.'));
  if (stem != "config") return stem;
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : base(path.substr(0, slash));
  return folder.empty() || folder == "." || folder == ".." ? stem : folder;
}

void set_model(const JsonFile& file, const std::string& name, Workload& workload,
               const ModelGraph& graph) {
  workload.model_name = graph.name.empty() || graph.name == graph.family ? name : graph.name;
  workload.model_json = file.root().dump();
  workload.model_hash = content_hash(workload.model_json);
  workload.sequence_length = graph.sample_tokens;
}

void read_workload_options(const ArgumentReader& arguments, Question& q) {
  Workload& w = q.workload;
  w.global_batch = arguments.need_integer("--global-batch", 1, kMostBatch,
                                          "Say how many samples one optimizer step has, as 128.");
  constexpr std::array<DType, 4> kTypes{DType::kBf16, DType::kFp16, DType::kFp8, DType::kFp32};
  const auto precision = arguments.choice("--precision", kPrecisions);
  w.precision = kTypes[precision.value_or(0)];
  const auto optimizer = arguments.choice("--optimizer", kOptimizers);
  w.optimizer = static_cast<OptimizerKind>(optimizer.value_or(0));
  w.train_tokens = arguments.number("--train-tokens", 1, 1e18);
  const auto load = arguments.number("--expert-load", 1, 1000);
  w.expert_load = load.value_or(1.0);
  const auto framework = arguments.choice("--framework", kFrameworkNames);
  q.framework = static_cast<Framework>(framework.value_or(0));
  if (!arguments.has("--framework")) q.defaults.emplace_back("framework megatron");
  if (!arguments.has("--precision")) q.defaults.emplace_back("precision bf16");
  if (!arguments.has("--optimizer")) q.defaults.emplace_back("optimizer Adam");
}

/// Defaults that depend on what was read.
void add_defaults(Question& q, bool load_stated) {
  const double gradient =
      state_bytes(q.framework, q.workload.precision, q.workload.optimizer).value.gradient;
  q.defaults.push_back(gradient == 4 ? "fp32 main gradients"
                                     : three_digits(8 * gradient) + "-bit gradients");
  const bool experts = std::any_of(q.graph.kinds.begin(), q.graph.kinds.end(),
                                   [](const LayerKind& k) { return k.limits.experts > 0; });
  if (experts && !load_stated) q.defaults.emplace_back("balanced experts");
}

void check_train_tokens(const Question& q, const std::string& where, Faults& faults) {
  if (q.workload.train_tokens && q.graph.sample_tokens == 0) {
    faults.add({where, "is stated, but a sample of this model has no tokens", "", "Leave it out."});
  }
}

/// Graphs count a sample of their own; a length that they do not have would change nothing.
void check_sequence(const ModelGraph& graph, const std::optional<int>& asked) {
  if (!asked || *asked == graph.sample_tokens) return;
  const std::string has = graph.sample_tokens > 0
                              ? "a sample of this model has " + with_thousands(graph.sample_tokens)
                              : "a sample of this model is not a sequence";
  throw InputError(
      {"--sequence", with_thousands(*asked) + " tokens are asked for", has, "Leave it out"});
}

bool in_catalogue(const std::string& name) {
  return name != "-" && name.find('/') == std::string::npos && !name.ends_with(".json");
}

}  // namespace

void read_model(const ArgumentReader& arguments, ModelGraph& graph, Workload& workload) {
  const std::string path =
      arguments.need_text("--model", "Give a Hugging Face config.json or a towtank-graph file.");
  const auto sequence = arguments.integer("--sequence", 1, kMostTokens);
  const bool misread = arguments.has("--sequence") && !sequence;
  if (path.empty() || misread) return;
  collecting(arguments.faults(), [&] {
    const JsonFile file = JsonFile::load(path);
    graph = import_model(file, sequence.value_or(0));
    check_sequence(graph, sequence);
    set_model(file, name_of_path(path), workload, graph);
  });
}

std::unique_ptr<Question> read_question(const ArgumentReader& arguments) {
  auto q = std::make_unique<Question>();
  Faults& faults = arguments.faults();
  read_model(arguments, q->graph, q->workload);
  const std::string platform =
      arguments.need_text("--platform", "towtank platforms lists the machines that it knows.");
  q->devices = arguments.need_integer("--devices", 1, kMostDevices,
                                      "Say how many devices the job has, as 64.");
  read_workload_options(arguments, *q);
  collecting(faults, [&] { q->calibrations = read_calibrations(arguments); });
  if (!platform.empty()) {
    collecting(faults, [&] { q->platform = load_platform(platform); });
    if (in_catalogue(platform)) q->platform_name = q->platform.name;
  }
  if (faults.empty()) check_train_tokens(*q, "--train-tokens", faults);
  faults.throw_if_any();
  add_defaults(*q, arguments.has("--expert-load"));
  return q;
}

std::unique_ptr<Question> question_of(const PlanFile& file, const std::string& name) {
  auto q = std::make_unique<Question>();
  Faults faults;
  q->workload = file.workload;
  q->devices = file.devices;
  q->framework = file.plan.framework;
  q->defaults = file.defaults_taken;
  collecting(faults, [&] {
    const JsonFile model = JsonFile::parse(file.workload.model_json, name + ": /workload/model");
    q->graph = import_model(model, file.workload.sequence_length);
  });
  collecting(faults, [&] {
    if (file.platform_inline.empty()) {
      q->platform = load_platform(file.platform_name);
      q->platform_name = q->platform.name;
      return;
    }
    q->platform = parse_platform(JsonFile::parse(file.platform_inline, name + ": /platform"));
  });
  if (faults.empty()) check_train_tokens(*q, name + ": /workload/train_tokens", faults);
  const bool changed = !file.platform_hash.empty() && q->platform.hash != file.platform_hash;
  if (faults.empty() && changed) {
    q->defaults.push_back("platform " + q->platform.name +
                          " as it is now (the file was written for "
                          "another state of it)");
  }
  faults.throw_if_any();
  return q;
}

std::vector<Calibration> read_calibrations(const ArgumentReader& arguments) {
  std::vector<Calibration> out;
  std::string rest = arguments.text("--calibration").value_or("");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    out.push_back(load_calibration(rest.substr(0, end)));
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return out;
}

std::unique_ptr<CostModel> make_costs(const Question& q, const PlanProblem& problem) {
  return load_cost_model(*problem.platform, problem.device(), problem.view, q.calibrations);
}

std::optional<TooManyDevices> pose(Question& q) {
  auto made = make_problem(q.graph, q.workload, q.platform, q.devices);
  if (const auto* few = std::get_if<TooManyDevices>(&made)) return *few;
  q.problem = std::get<PlanProblem>(std::move(made));
  q.costs = make_costs(q, q.problem);
  q.problem.costs = q.costs.get();
  return std::nullopt;
}

std::string too_many_text(const Question& q, const TooManyDevices& few) {
  return to_text(Fault{"--devices", with_thousands(few.asked) + " devices are asked for",
                       q.platform.name + " has " + with_thousands(few.available),
                       "Ask for fewer, or for another machine"});
}

std::string plan_file_text(const Question& q, const Plan& plan) {
  PlanFile file;
  file.workload = q.workload;
  file.platform_name = q.platform_name;
  file.platform_hash = q.platform.hash;
  if (q.platform_name.empty()) file.platform_inline = to_json(q.platform).dump();
  file.devices = q.devices;
  file.plan = plan;
  file.generated_by = "towtank " + std::string(build_info().version);
  return to_text(to_json(file));
}

}  // namespace towtank
