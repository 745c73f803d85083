// SPDX-License-Identifier: Apache-2.0
#include "core/input_error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/contracts.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace {

TEST(FaultInputError, TextHasOneGrammar) {
  EXPECT_EQ(to_text(Fault{"h100.json: /memory", "\"-80 GiB\" is negative", "must be > 0", ""}),
            "h100.json: /memory: \"-80 GiB\" is negative (must be > 0)");
  EXPECT_EQ(to_text(Fault{"cfg.json: /hiden_size", "unknown key", "", "Did you mean \"h\"?"}),
            "cfg.json: /hiden_size: unknown key. Did you mean \"h\"?");
  EXPECT_EQ(to_text(Fault{"--devices", "0 is too small", "must be >= 1", "Leave it out"}),
            "--devices: 0 is too small (must be >= 1). Leave it out.");
  EXPECT_EQ(to_text(Fault{"x", "is empty", "", ""}), "x: is empty");
  EXPECT_EQ(to_text(Fault{"", "no input.", "", "Name a file!"}), "no input. Name a file!");
}

TEST(FaultInputError, TellsEveryFault) {
  const std::vector<Fault> faults{{"a", "is bad", "", ""}, {"b", "is worse", "why", ""}};
  const InputError error(faults);
  EXPECT_STREQ(error.what(), "a: is bad\nb: is worse (why)");
  EXPECT_EQ(error.faults(), faults);
}

TEST(FaultInputError, LongListsAreCutInTheTextOnly) {
  const std::vector<Fault> faults(53, Fault{"a", "is bad", "", ""});
  const InputError error(faults);
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "a: is bad\n";
  EXPECT_EQ(error.what(), expected + "... and " + std::to_string(53 - 50) + " more");
  EXPECT_EQ(error.faults().size(), 53U);
}

TEST(FaultInputError, CollectorThrowsOnlyIfThereIsAny) {
  Faults faults;
  EXPECT_TRUE(faults.empty());
  EXPECT_NO_THROW(faults.throw_if_any());
  faults.add({"a", "is bad", "", ""});
  faults.add({"b", "is bad", "", ""});
  EXPECT_EQ(faults.all().size(), 2U);
  EXPECT_FAULT(faults.throw_if_any(), "a: is bad\nb: is bad");
}

TEST(FaultInputError, NoFaultsIsADefect) {
  EXPECT_THROW(throw InputError(std::vector<Fault>{}), ContractViolation);
}

TEST(FaultContracts, SayWhatBrokeAndWhere) {
  const auto broken = [] { ENSURES(1 + 1 == 3); };
  const int line = __LINE__ - 1;
  try {
    broken();
    FAIL() << "nothing was thrown";
  } catch (const ContractViolation& violation) {
    EXPECT_EQ(violation.what(),
              "core/input_error_test.cpp:" + std::to_string(line) +
                  ": ENSURES(1 + 1 == 3) does not hold (a defect in towtank, not in your input). "
                  "Please report it.");
  }
}

TEST(FaultContracts, HoldSilently) {
  EXPECT_NO_THROW(EXPECTS(true));
  EXPECT_THROW(EXPECTS(false), ContractViolation);
}

}  // namespace
}  // namespace towtank
