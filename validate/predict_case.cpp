// SPDX-License-Identifier: Apache-2.0
#include "validate/predict_case.h"

#include <algorithm>
#include <numeric>

#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/analytic.h"
#include "model/cost/choose_costs.h"
#include "model/graph/hf_import.h"
#include "placement/validity.h"
#include "platforms/catalogue.h"
#include "platforms/platform_json.h"

namespace towtank {
namespace {

[[noreturn]] void refuse(const Case& c, const std::string& key, std::string problem,
                         std::string why = "", std::string hint = "") {
  throw InputError(Fault{c.where + ": " + c.id + ": /" + key, std::move(problem), std::move(why),
                         std::move(hint)});
}

/// Runs an action and puts the case and its key in front of whatever it finds at fault.
template <class Action>
auto in_case(const Case& c, const std::string& key, Action&& action) {
  try {
    return action();
  } catch (const InputError& error) {
    std::vector<Fault> faults = error.faults();
    for (Fault& fault : faults) {
      fault.where = c.where + ": " + c.id + ": /" + key + ": " + fault.where;
    }
    throw InputError(std::move(faults));
  }
}

/// Layers of each stage when embedding and head count as one layer each: every stage as full as the
/// fullest must be, from the first on (DeepSpeed runtime/utils.py, partition_balanced on equal
/// weights); where the count divides, that is Megatron-LM's split too.
std::vector<int> counted_split(int counted, int stages) {
  const int most = (counted + stages - 1) / stages;
  std::vector<int> split;
  int left = counted;
  for (int s = 0; s < stages; ++s) {
    const int others = stages - s - 1;
    split.push_back(std::min(most, left - others));
    left -= split.back();
  }
  return split;
}

/// The layers of each stage that a case states; empty: as the launcher splits them.
std::vector<int> stated_split(const Case& c, int stages, int free_layers,
                              std::vector<std::string>& assumptions) {
  std::vector<int> split = c.tokens.layers_per_stage;
  if (!c.tokens.stages.empty()) {
    std::vector<int> layers;
    for (const CaseStage& stage : c.tokens.stages) layers.push_back(stage.layers);
    if (!split.empty() && split != layers) {
      refuse(c, "notes", "has stages and layers per stage that disagree");
    }
    split = std::move(layers);
  }
  const bool crowded = stages > free_layers;
  const bool ends = c.tokens.ends_count_as_layers || crowded;
  if (crowded && stages > free_layers + 2) {
    refuse(c, "plan/stages_per_rank", "makes " + std::to_string(stages) + " stages",
           "the model has " + std::to_string(free_layers) + " layers, embedding and head");
  }
  if (crowded && !c.tokens.ends_count_as_layers) {
    assumptions.emplace_back("more stages than layers: embedding and head are stages too");
  }
  if (split.empty() && ends) split = counted_split(free_layers + 2, stages);
  if (split.empty()) return split;
  if (split.size() != static_cast<std::size_t>(stages)) {
    refuse(c, "notes", "splits layers over " + std::to_string(split.size()) + " stages",
           "pipeline * stages_per_rank = " + std::to_string(stages));
  }
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  if (sum == free_layers) return split;
  if (!ends || sum != free_layers + 2) {
    refuse(c, "notes", "splits " + std::to_string(sum) + " layers over the stages",
           "the model has " + std::to_string(free_layers));
  }
  split.front() -= 1;
  split.back() -= 1;
  return split;
}

void apply_split(const Case& c, const std::vector<int>& split, Plan& plan) {
  int next = 0;
  for (std::size_t s = 0; s < split.size(); ++s) {
    PlanStage stage;
    stage.first = next;
    stage.last = next + split[s];
    next = stage.last;
    if (plan.recompute == RecomputeMode::kFull) stage.recompute_full = split[s];
    if (plan.recompute == RecomputeMode::kSelective) stage.recompute_selective = split[s];
    if (!c.tokens.stages.empty()) {
      const auto& replicas = c.tokens.stages[s].replicas;
      const bool alike = std::all_of(replicas.begin(), replicas.end(), [&](const CaseReplica& r) {
        return r.device_kind == replicas.front().device_kind;
      });
      if (alike) stage.device_kind = replicas.front().device_kind;
    }
    plan.stages.push_back(std::move(stage));
  }
}

/// Bytes a parameter that the notes or the set's rule state beside the framework's own.
void apply_states(const Case& c, const CaseRule& rule, Plan& plan) {
  const CaseNotes& notes = c.tokens;
  const Workload& w = c.body.workload;
  const bool by_rule = rule.follows != rule.stated && plan.framework == rule.follows;
  if (!notes.pure && !notes.bf16_optimizer && !notes.fp16_gradients && !by_rule) return;
  if (plan.state_override) {
    refuse(c, "notes", "states bytes a parameter", "plan.optimizer does too");
  }
  const Framework of = by_rule ? rule.states.value_or(plan.framework) : plan.framework;
  StateBytes bytes = state_bytes(of, w.precision, w.optimizer).value;
  const double low = bytes_per_element(w.precision);
  if (notes.pure) {
    // Adam's two moments, no main copy.
    bytes.parameter = bytes.gradient = bytes.gathered = low;
    bytes.optimizer = w.optimizer == OptimizerKind::kAdam       ? 2 * low
                      : w.optimizer == OptimizerKind::kMomentum ? low
                                                                : 0;
  }
  if (notes.fp16_gradients) bytes.gradient = 2;
  // Sets that follow a row by rule state the fp32 gradient copy where there was one.
  if (notes.fp16_gradients || by_rule) bytes.extra = 0;
  if (notes.bf16_optimizer) bytes.extra = 4;
  plan.state_override = bytes;
}

const CaseRule& rule_for(const Case& c) { return rule_of_set(c.set()); }

/// A copy of the platform with one node for each replica, in rank order.
Platform platform_of_stages(const Case& c, const Platform& whole) {
  const Plan& plan = c.body.plan;
  if (plan.context > 1) refuse(c, "plan/context", "is over 1 beside unequal stages");
  Platform out = whole;
  out.nodes.clear();
  for (const CaseStage& stage : c.tokens.stages) {
    if (stage.replicas.size() != static_cast<std::size_t>(plan.data)) {
      refuse(c, "notes", "has a stage of " + std::to_string(stage.replicas.size()) + " replicas",
             "data is " + std::to_string(plan.data));
    }
    for (const CaseReplica& replica : stage.replicas) {
      if (replica.tensor != plan.tensor) {
        refuse(c, "notes", "has a replica on " + std::to_string(replica.tensor) + " devices",
               "tensor is " + std::to_string(plan.tensor));
      }
      std::optional<NodeKind> node;
      for (const NodeKind& kind : whole.node_kinds) {
        if (whole.device_kinds[kind.device].name == replica.device_kind) node = kind;
      }
      if (!node || node->devices < replica.tensor) {
        refuse(c, "notes", "names the device " + in_quotes(replica.device_kind),
               c.body.platform_name + " has no node with " + std::to_string(replica.tensor) +
                   " of it");
      }
      node->devices = replica.tensor;
      NodeGroup group = whole.nodes.front();
      group.kind = out.node_kinds.push_back(*node);
      group.count = 1;
      out.nodes.push_back(std::move(group));
    }
  }
  return out;
}

/// The key that a broken plan rule is about.
std::string key_of_rule(const std::string& rule) {
  if (rule == "devices") return "devices";
  if (rule == "batch") return "workload/global_batch";
  if (rule == "sequence_parallel" || rule == "expert" || rule == "schedule" ||
      rule == "sharding_stage" || rule == "rank_map" || rule == "stages") {
    return "plan/" + rule;
  }
  if (rule == "interleaving") return "plan/stages_per_rank";
  return "plan";
}

/// What a framework is said not to do, and can be predicted all the same: the run is the evidence.
bool contradicted_by_run(const Case& c, const Invalid& broken) {
  if (c.measured.outcome != CaseOutcome::kRan) return false;
  if (broken.rule == "sharding_stage" || broken.rule == "sequence_parallel") return true;
  return broken.rule == "schedule" && c.body.plan.pipeline > 1 &&
         c.body.plan.schedule != ScheduleKind::kNone;
}

void check(const Case& c, Plan plan, const ModelGraph& graph, const NetworkView& view,
           std::vector<std::string>& assumptions) {
  // The rules of an era stand for what its Megatron-LM did, not for what it could run.
  if (rule_for(c).follows != rule_for(c).stated) plan.framework = c.body.plan.framework;
  std::vector<Fault> faults;
  for (const Invalid& broken : check_plan(plan, graph, c.body.workload, view, {true})) {
    if (contradicted_by_run(c, broken)) {
      assumptions.push_back("it ran, against the rule: " + broken.problem);
      continue;
    }
    faults.push_back(
        {c.where + ": " + c.id + ": /" + key_of_rule(broken.rule), to_text(broken), "", ""});
  }
  if (!faults.empty()) throw InputError(std::move(faults));
}

std::vector<std::string> stated_assumptions(const Case& c) {
  std::vector<std::string> out = c.body.defaults_taken;
  const CaseRule& rule = rule_for(c);
  if (!rule.reason.empty()) out.emplace_back(rule.reason);
  if (c.tokens.packed_samples) {
    out.emplace_back(
        "packed samples: attention over the whole sequence (their lengths are not "
        "stated)");
  }
  return out;
}

}  // namespace

CostModelMaker analytic_costs() {
  return [](const Platform&, const DeviceKind& device,
            const NetworkView& view) -> std::unique_ptr<CostModel> {
    return std::make_unique<AnalyticCostModel>(device, view);
  };
}

CostModelMaker calibrated_costs(std::vector<Calibration> user) {
  return [calibrations = std::move(user)](const Platform& platform, const DeviceKind& device,
                                          const NetworkView& view) {
    return load_cost_model(platform, device, view, calibrations);
  };
}

Plan plan_of_case(const Case& c, const ModelGraph& graph, std::vector<std::string>& assumptions) {
  Plan plan = c.body.plan;
  const CaseRule& rule = rule_for(c);
  const Framework stated = plan.framework;
  plan.framework = framework_followed(rule, stated, plan.pipeline);
  if (plan.framework != stated) {
    assumptions.push_back("framework rules: " +
                          std::string(kFrameworkNames[static_cast<std::size_t>(plan.framework)]));
  }
  apply_states(c, rule, plan);
  plan.compile = plan.compile || c.tokens.compile;
  plan.sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  if (plan.stages.empty()) {
    apply_split(
        c, stated_split(c, plan.pipeline * plan.stages_per_rank, graph.free_layers(), assumptions),
        plan);
  }
  expand_stages(plan, graph.free_layers());
  return plan;
}

const Platform& CasePredictor::platform_of(const Case& c) {
  const PlanFile& body = c.body;
  const std::string& name =
      body.platform_inline.empty() ? body.platform_name : body.platform_inline;
  const auto found = platforms_.find(name);
  if (found != platforms_.end()) return found->second;
  Platform platform = in_case(c, "platform", [&] {
    return body.platform_inline.empty() ? load_platform(name)
                                        : parse_platform(JsonFile::parse(name, "inline"));
  });
  return platforms_.emplace(name, std::move(platform)).first->second;
}

const ModelGraph& CasePredictor::graph_of(const Case& c) {
  const Workload& w = c.body.workload;
  const std::string model = completed_model(c.set(), w.model_json);
  const auto key = std::pair(model, w.sequence_length);
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return found->second;
  ModelGraph graph = in_case(c, "workload", [&] {
    return import_model(JsonFile::parse(model, "model"), w.sequence_length);
  });
  return graphs_.emplace(key, std::move(graph)).first->second;
}

CasePrediction CasePredictor::predict(const Case& c) {
  const ModelGraph& graph = graph_of(c);
  Platform mixed;
  const Platform* platform = &platform_of(c);
  CasePrediction out;
  out.assumptions = stated_assumptions(c);
  if (!c.tokens.stages.empty()) {
    mixed = platform_of_stages(c, *platform);
    platform = &mixed;
  }
  Workload workload = c.body.workload;
  const CaseRule& rule = rule_for(c);
  auto made = make_problem(graph, workload, *platform, c.body.devices);
  if (const auto* few = std::get_if<TooManyDevices>(&made)) {
    refuse(c, "devices", "is " + with_thousands(few->asked),
           platform->name + " has " + with_thousands(few->available));
  }
  auto& problem = std::get<PlanProblem>(made);
  if (rule.tf32 && workload.precision == DType::kFp32 && problem.device().peak_of(DType::kTf32)) {
    workload.precision = DType::kTf32;
  }
  const std::unique_ptr<CostModel> costs = maker_(*platform, problem.device(), problem.view);
  problem.costs = costs.get();
  problem.tensor_beyond_node = true;
  out.plan = plan_of_case(c, graph, out.assumptions);
  check(c, out.plan, graph, problem.view, out.assumptions);

  out.whole = ClosedFormEvaluator(problem).evaluate(out.plan);
  out.step_time = out.whole.step_time;
  out.memory_kind = rule.memory;
  out.peak_memory = memory_by_rule(out.whole.peak_memory(), rule);
  out.capacity = problem.capacity;
  out.parameters = graph.total_parameters();
  const bool fits = out.whole.peak_memory().total() <= problem.capacity;
  out.outcome = fits ? CaseOutcome::kRan : CaseOutcome::kOom;
  return out;
}

}  // namespace towtank
