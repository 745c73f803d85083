// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What bad input is told, compared whole: people read these texts, so a test does too.
#include <string>
#include <utility>

#include "core/input_error.h"

namespace towtank::testing {

/// The text of the InputError that an action throws; says so if it throws none.
template <class Action>
[[nodiscard]] std::string fault_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no InputError was thrown)";
}

}  // namespace towtank::testing

/// EXPECT_FAULT(load("x.json"), "x.json: no such file"); several faults are lines of one text.
/// For files that include Google Test.
#define EXPECT_FAULT(statement, text) \
  EXPECT_EQ(::towtank::testing::fault_of([&] { static_cast<void>(statement); }), (text))
