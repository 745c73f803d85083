// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `towtank run`: a plan executed by real processes on this machine, and what they measured.
#include <string>

#include "app/command_spec.h"
#include "app/commands.h"
#include "validate/run/run_record.h"
#include "validate/run/runnable.h"

namespace towtank {

[[nodiscard]] CommandSpec run_spec();
[[nodiscard]] Outcome run_run(const Arguments&, const Terminal&);

/// One line of a towtank-case file: the plan, and the median step time and the largest peak memory
/// of the run. `id` names it; `source` says where it ran.
[[nodiscard]] std::string case_line(const PlanFile&, const RunRecord&, const std::string& id,
                                    const std::string& source);
/// A table of ranks by part of the step, losses and memory; at most 100 columns.
[[nodiscard]] std::string measured_text(const RunnablePlan&, const RunRecord&);
/// The same as one object, docs/formats-run.md.
[[nodiscard]] std::string measured_json(const RunRecord&);

}  // namespace towtank
