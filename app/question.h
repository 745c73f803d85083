// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a command was asked: workload, platform and devices, read from arguments or from a plan
/// file, and the PlanProblem over them.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "model/cost/calibration.h"
#include "placement/evaluator.h"
#include "placement/plan_json.h"

namespace towtank {

/// Owns what its problem refers to; stays where it is.
struct Question {
  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  ModelGraph graph;
  Workload workload;
  Platform platform;
  std::string platform_name;  ///< of the catalogue; empty if the platform is a file of the user's
  int devices = 0;
  Framework framework = Framework::kMegatron;
  std::vector<std::string> defaults;  ///< what was not stated, and what was taken for it

  std::vector<Calibration> calibrations;  ///< of --calibration, asked before all others
  PlanProblem problem;                    ///< after pose()
  std::unique_ptr<CostModel> costs;
};

/// From --model, --platform, --devices, ... Throws InputError with every fault.
[[nodiscard]] std::unique_ptr<Question> read_question(const ArgumentReader&);
/// From a plan file; `name` stands in messages. Throws InputError with every fault.
[[nodiscard]] std::unique_ptr<Question> question_of(const PlanFile&, const std::string& name);

/// What predicts durations on a problem's device and network.
[[nodiscard]] std::unique_ptr<CostModel> make_costs(const Question&, const PlanProblem&);
/// --calibration: shipped ones by name, files by path. Throws InputError.
[[nodiscard]] std::vector<Calibration> read_calibrations(const ArgumentReader&);
/// Takes the devices and makes the cost model, or says how many devices there are.
[[nodiscard]] std::optional<TooManyDevices> pose(Question&);
/// "dgx-box has 8 devices, 16 were asked for ..."
[[nodiscard]] std::string too_many_text(const Question&, const TooManyDevices&);

/// Writes a plan of this question as a plan file.
[[nodiscard]] std::string plan_file_text(const Question&, const Plan&);

/// --model and --sequence read into a graph and the model's part of a workload.
void read_model(const ArgumentReader&, ModelGraph& graph, Workload& workload);

}  // namespace towtank
