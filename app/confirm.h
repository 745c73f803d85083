// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Plans that a search found, simulated: whether sharing of links changes their order.
#include <string>
#include <variant>
#include <vector>

#include "app/question.h"
#include "placement/search.h"

namespace towtank {

struct ConfirmedPlan {
  std::size_t plan = 0;  ///< into the search's plans
  Seconds simulated;
};
/// Fastest first, in simulated time; equal ones in the search's order.
struct Confirmation {
  std::vector<ConfirmedPlan> plans;
  std::vector<std::string> faults;  ///< "plan 3: ..." for those that could not be simulated
};

/// The first `count` plans, on as many workers as there are cores.
[[nodiscard]] Confirmation confirm(const Question&, const std::vector<RankedPlan>&, int count);

/// A table of simulated against predicted times, and one sentence.
[[nodiscard]] std::string confirmation_text(const Confirmation&, const std::vector<RankedPlan>&);

}  // namespace towtank
