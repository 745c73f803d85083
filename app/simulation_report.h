// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A simulated step as people and programs read it. Every time is a simulated one and says so.
#include <cstdint>
#include <optional>
#include <string>

#include "app/report.h"
#include "sim/step_result.h"

namespace towtank {

/// A step, and what it is compared with.
struct SimulationReport {
  const LoweredStep* step = nullptr;
  const StepResult* result = nullptr;
  Seconds closed_form;     ///< of the plan, no rank slow
  bool contention = true;  ///< links are shared
  bool all_links = false;
  std::optional<std::string> background;  ///< as it was asked
  std::uint64_t seed = 1;
};

[[nodiscard]] std::string simulation_text(const Question&, const std::string& title,
                                          const SimulationReport&, const Style&);
/// A towtank-simulation object (docs/formats-sim.md).
[[nodiscard]] std::string simulation_json(const Question&, const Plan&, const SimulationReport&);

}  // namespace towtank
