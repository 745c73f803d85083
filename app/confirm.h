// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Plans that a search found, simulated: whether sharing of links changes their order. And, before
/// anybody simulates, for how many of them it could.
///
/// A simulated step is never shorter than its closed form, so a plan whose closed form is longer
/// than some simulated step loses to that one, simulated or not.
#include <optional>
#include <string>
#include <vector>

#include "app/question.h"
#include "placement/search.h"

namespace towtank {

/// Share by which sharing of links lengthens a step at most, in nine of ten plans that searches
/// rank high: what tests/app/confirm_test.cpp counts over models and machines of the catalogue.
inline constexpr double kDisagreement = 0.03;

/// Plans that lie so near the first that sharing of links could put them before it.
struct NearPlans {
  int count = 0;            ///< the first among them
  bool more_known = false;  ///< the list ends before they do
};
/// `top`: plans that were asked for; a shorter list is all there are. Pre: plans is not empty.
[[nodiscard]] NearPlans near_plans(const std::vector<RankedPlan>& plans, int top);
/// One sentence, and the command that simulates them: `command` with --confirm behind it. Nothing
/// where only one plan was asked for.
[[nodiscard]] std::string near_plans_text(const NearPlans&, const std::string& command);

struct ConfirmedPlan {
  std::size_t plan = 0;  ///< into the search's plans
  Seconds simulated;
};
/// Fastest first, in simulated time; equal ones in the search's order.
struct Confirmation {
  std::vector<ConfirmedPlan> plans;
  std::vector<std::string> faults;    ///< "plan 3: ..." for those that could not be simulated
  std::optional<Seconds> next_bound;  ///< closed form of the first plan that was not; none left
};

/// The first `count` plans, on as many workers as there are cores.
[[nodiscard]] Confirmation confirm(const Question&, const std::vector<RankedPlan>&, int count);

/// A table of simulated against predicted times, and what they prove.
[[nodiscard]] std::string confirmation_text(const Confirmation&, const std::vector<RankedPlan>&);

}  // namespace towtank
