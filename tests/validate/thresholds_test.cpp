// SPDX-License-Identifier: Apache-2.0
#include "validate/thresholds.h"

#include <gtest/gtest.h>

namespace towtank::thresholds_test {

std::vector<Threshold> parse(const std::string& text) {
  Faults faults;
  auto out = parse_thresholds(text, "--threshold", faults);
  faults.throw_if_any();
  return out;
}

std::string fault(const std::string& text) {
  try {
    static_cast<void>(parse(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Set a: 12 %, tau 0.8, one out of memory missed. Set b has no ranking.
Validation two_scores() {
  Validation v;
  SetScore a{"a", {}, {}}, b{"b", {}, {}};
  a.score.mape = 0.12;
  a.score.bias = -0.11;
  a.score.tau = 0.8;
  a.score.coverage90 = 0.9;
  a.score.measured_oom.ran = 1;
  b.score.mape = 0.05;
  v.sets = {a, b};
  return v;
}

TEST(UnitThresholds, ReadsBarsWithAndWithoutASet) {
  const auto bars = parse("mape=10,vtrain-multi:tau=0.85");
  ASSERT_EQ(bars.size(), 2U);
  EXPECT_EQ(bars[0].set, "");
  EXPECT_EQ(bars[0].figure, ThresholdFigure::kMape);
  EXPECT_EQ(bars[0].bar, 10);
  EXPECT_EQ(bars[1].set, "vtrain-multi");
  EXPECT_EQ(bars[1].figure, ThresholdFigure::kTau);
  EXPECT_EQ(bars[1].bar, 0.85);
}

TEST(UnitThresholds, EveryFigureHasItsDirection) {
  const Validation v = two_scores();
  EXPECT_EQ(missed(parse("mape=10"), v), std::vector<std::string>{"a: mape is 12, must be <= 10"});
  EXPECT_TRUE(missed(parse("mape=12,b:mape=5"), v).empty());
  EXPECT_EQ(missed(parse("a:tau=0.85"), v),
            std::vector<std::string>{"a: tau is 0.8, must be >= 0.85"});
  EXPECT_TRUE(missed(parse("tau=0.8"), v).empty());
  EXPECT_EQ(missed(parse("bias=10"), v), std::vector<std::string>{"a: bias is 11, must be <= 10"});
  EXPECT_EQ(missed(parse("coverage90=95"), v),
            std::vector<std::string>{"a: coverage90 is 90, must be >= 95"});
  EXPECT_EQ(missed(parse("oom_missed=0"), v),
            std::vector<std::string>{"a: oom_missed is 1, must be <= 0"});
}

TEST(UnitThresholds, ABarOnWhatIsNotThereIsMissed) {
  const Validation v = two_scores();
  EXPECT_EQ(missed(parse("b:tau=0.5"), v),
            std::vector<std::string>{"b: tau cannot be computed: no case has what it needs"});
  EXPECT_EQ(missed(parse("c:mape=5"), v),
            std::vector<std::string>{"c: no case of this set was given"});
}

TEST(FaultThresholds, SaysWhatABarLooksLike) {
  EXPECT_EQ(fault("mappe=10"),
            "--threshold: \"mappe\" is not a figure that has a bar. Did you mean mape?");
  EXPECT_EQ(fault("mape"), "--threshold: \"mape\" has no number. Give one as mape=10.");
  EXPECT_EQ(fault("a:tau=high"), "--threshold: \"a:tau=high\" has no number. Give one as mape=10.");
}

}  // namespace towtank::thresholds_test
