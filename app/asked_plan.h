// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A plan that a command is asked about: from a plan file, or from its keys as flags.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands.h"
#include "app/question.h"
#include "placement/validity.h"

namespace towtank {

/// A question and the plan that is asked about.
struct AskedPlan {
  std::unique_ptr<Question> question;
  Plan plan;          ///< stages are not expanded
  std::string where;  ///< of the plan, in messages
};

/// `beside_file`: options that may stand beside a plan file. Throws InputError with every fault.
[[nodiscard]] AskedPlan read_asked_plan(const Arguments&, const ArgumentReader&,
                                        std::span<const std::string_view> beside_file, Faults&);

/// Every rule that the plan breaks, each a message.
[[nodiscard]] Outcome invalid_plan(const std::string& where, const std::vector<Invalid>&);

}  // namespace towtank
