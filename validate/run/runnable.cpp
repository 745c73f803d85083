// SPDX-License-Identifier: Apache-2.0
#include "validate/run/runnable.h"

#include "model/graph/hf_import.h"
#include "placement/evaluator.h"
#include "placement/validity.h"
#include "platforms/catalogue.h"
#include "platforms/platform_json.h"

namespace towtank {
namespace {

std::string n(std::int64_t value) { return std::to_string(value); }

class RunnableCheck {
 public:
  RunnableCheck(const RunnablePlan& runnable, std::string where, Faults& faults)
      : r_(runnable), where_(std::move(where)), faults_(faults) {}

  void run(bool fp64) {
    const Plan& p = r_.plan;
    if (p.context > 1) add("/plan/context", "is " + n(p.context), "context parallelism is not run");
    if (p.expert_tensor > 1) {
      add("/plan/expert_tensor", "is " + n(p.expert_tensor), "experts are not divided further");
    }
    if (p.compile) add("/plan/compile", "is true", "nothing is compiled here");
    if (r_.file.workload.optimizer != OptimizerKind::kAdam) {
      add("/workload/optimizer", "is not adam", "only Adam is run");
    }
    const DType precision = r_.file.workload.precision;
    if (!fp64 && precision != DType::kFp32 && precision != DType::kTf32) {
      add("/workload/precision", "is not fp32", "the runtime computes in fp32 on a CPU",
          "Set \"precision\": \"fp32\" and predict again");
    }
    if (p.tensor == 1) return;
    divides("the vocabulary", r_.shape.vocabulary);
    for (const BlockShape& b : r_.shape.blocks) {
      if (b.kv_heads % p.tensor != 0) {
        divides("the key-value heads", b.kv_heads);
        break;
      }
    }
    if (p.sequence_parallel) divides("the sequence", r_.shape.tokens);
  }

 private:
  void divides(const std::string& what, std::int64_t size) {
    if (size % r_.plan.tensor == 0) return;
    add("/plan/tensor", "is " + n(r_.plan.tensor),
        what + ", " + n(size) + ", does not divide by it");
  }
  void add(const std::string& pointer, std::string problem, std::string why,
           std::string hint = "") {
    faults_.add({where_ + ": " + pointer, std::move(problem), std::move(why), std::move(hint)});
  }

  const RunnablePlan& r_;
  std::string where_;
  Faults& faults_;
};

Platform platform_of(const PlanFile& file, const std::string& path) {
  if (!file.platform_inline.empty()) {
    return parse_platform(JsonFile::parse(file.platform_inline, path + ": /platform"));
  }
  return load_platform(file.platform_name);
}

}  // namespace

RunnablePlan load_runnable(const std::string& path, bool fp64) {
  RunnablePlan r;
  r.file = parse_plan_file(JsonFile::load(path));
  const Workload& workload = r.file.workload;
  r.graph = import_model(JsonFile::parse(workload.model_json, path + ": /workload/model"),
                         workload.sequence_length);
  r.plan = r.file.plan;
  Faults faults;
  const Platform platform = platform_of(r.file, path);
  const auto problem = make_problem(r.graph, workload, platform, r.file.devices);
  if (const auto* few = std::get_if<TooManyDevices>(&problem)) {
    faults.add({path + ": /devices", "is more than the platform has",
                n(r.file.devices) + " of " + n(few->available), ""});
    faults.throw_if_any();
  }
  const NetworkView& view = std::get<PlanProblem>(problem).view;
  for (const Invalid& broken : check_plan(r.plan, r.graph, workload, view, {true})) {
    faults.add({path + ": /plan", broken.problem, "", broken.hint});
  }
  faults.throw_if_any();
  expand_stages(r.plan, r.graph.free_layers());
  r.shape = model_shape(r.graph, path + ": /workload/model", faults);
  RunnableCheck(r, path, faults).run(fp64);
  faults.throw_if_any();
  return r;
}

}  // namespace towtank
