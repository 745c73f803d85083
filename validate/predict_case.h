// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the model says of a case: the plan's keys and notes become a Plan over a Platform of the
/// catalogue, and the closed form evaluates it.
///
///   step_time    Prediction::step_time
///   peak_memory  the fullest rank, as the set reads memory (case_rules.h)
///   outcome      oom where reserved + context of the fullest rank exceed the device's memory
///
/// A case of several device kinds (notes: stages=[...]) gets its own copy of the platform, with one
/// node of `tensor` devices for each replica in rank order; all ranks then take the time of the
/// slowest kind, and the prediction says so.
///
/// Not modelled: the attention spans of packed samples (counted as one sequence); fitted constants
/// of one case. What cannot be expressed is an InputError that names the case and its key.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/cost_model.h"
#include "placement/evaluator.h"
#include "validate/case.h"
#include "validate/case_rules.h"

namespace towtank {

struct CasePrediction {
  Seconds step_time;
  Bytes peak_memory;
  CaseOutcome outcome = CaseOutcome::kRan;
  MemoryKind memory_kind = MemoryKind::kDeviceTotal;
  Plan plan;                             ///< as evaluated: notes applied, stages expanded
  Prediction whole;                      ///< breakdown, memory by rank, intervals, basis
  Bytes capacity;                        ///< of the smallest device
  double parameters = 0;                 ///< of the model
  std::vector<std::string> assumptions;  ///< nulls of the case, rules of its set; the framework's
                                         ///< and the model's stand in whole.assumptions
};

/// Makes the cost model for a device of a platform on a network.
using CostModelMaker = std::function<std::unique_ptr<CostModel>(const Platform&, const DeviceKind&,
                                                                const NetworkView&)>;
/// Rooflines (AnalyticCostModel).
[[nodiscard]] CostModelMaker analytic_costs();
/// The best that calibrations give, these before the platform's own and the shipped ones
/// (load_cost_model).
[[nodiscard]] CostModelMaker calibrated_costs(std::vector<Calibration> user = {});

/// Predicts cases one after the other; keeps platforms and graphs for the next.
class CasePredictor {
 public:
  explicit CasePredictor(CostModelMaker maker = calibrated_costs()) : maker_(std::move(maker)) {}
  /// Throws InputError if the case cannot be expressed.
  [[nodiscard]] CasePrediction predict(const Case&);

 private:
  [[nodiscard]] const Platform& platform_of(const Case&);
  [[nodiscard]] const ModelGraph& graph_of(const Case&);

  CostModelMaker maker_;
  std::map<std::string, Platform> platforms_;
  std::map<std::pair<std::string, int>, ModelGraph> graphs_;
};

/// The plan that a case's keys and notes state, stages expanded. `graph` is the case's model.
[[nodiscard]] Plan plan_of_case(const Case&, const ModelGraph& graph,
                                std::vector<std::string>& assumptions);

}  // namespace towtank
