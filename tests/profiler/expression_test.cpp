// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace towtank {
namespace expression_test {

double value_of(std::string_view text, const std::vector<double>& values = {}) {
  auto parsed = Expression::parse(text);
  EXPECT_TRUE(std::holds_alternative<Expression>(parsed)) << text;
  return std::get<Expression>(parsed).evaluate(values);
}

std::string fault_in(std::string_view text) {
  const auto parsed = Expression::parse(text);
  const auto* fault = std::get_if<std::string>(&parsed);
  return fault != nullptr ? *fault : "(none)";
}

TEST(UnitExpression, PrecedenceIsTheUsualOne) {
  EXPECT_EQ(value_of("2 + 3 * 4"), 2 + 3 * 4);
  EXPECT_EQ(value_of("(2 + 3) * 4"), (2 + 3) * 4);
  EXPECT_EQ(value_of("100 / 10 / 5"), 100 / 10 / 5);
  EXPECT_EQ(value_of("10 - 3 - 2"), 10 - 3 - 2);
  EXPECT_EQ(value_of("-2 * -3"), 6);
  EXPECT_EQ(value_of("1.5e3"), 1500);
}

TEST(UnitExpression, FunctionsOfOneAndTwoArguments) {
  EXPECT_EQ(value_of("ceil(7 / 2)"), 4);
  EXPECT_EQ(value_of("floor(7 / 2)"), 3);
  EXPECT_EQ(value_of("round(2.5)"), 3);
  EXPECT_EQ(value_of("min(3, max(1, 2)) + 1"), 3);
}

TEST(UnitExpression, NamesAreListedOnceAndMayBeQuoted) {
  const auto parsed = Expression::parse("n_head * `size(B)` + n_head - time_stats.emb.median");
  const auto& e = std::get<Expression>(parsed);
  EXPECT_EQ(e.names(), (std::vector<std::string>{"n_head", "size(B)", "time_stats.emb.median"}));
  EXPECT_EQ(e.evaluate({2, 10, 1}), 2 * 10 + 2 - 1);
}

TEST(UnitExpression, WhatIsNotANumberSpreads) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* text : {"x + 1", "0 * x", "min(1, x)", "max(x, 1)", "-x", "ceil(x)"}) {
    EXPECT_TRUE(std::isnan(value_of(text, {nan}))) << text;
  }
}

TEST(FaultExpression, SaysWhereItStops) {
  EXPECT_EQ(fault_in("2 +"), "it ends too early");
  EXPECT_EQ(fault_in(""), "it ends too early");
  EXPECT_EQ(fault_in("2 )"), "unexpected ')' at character 3");
  EXPECT_EQ(fault_in("(2"), "it ends too early");
  EXPECT_EQ(fault_in("2 3"), "unexpected '3' at character 3");
  EXPECT_EQ(fault_in("a = 2"), "unexpected '=' at character 3");
  EXPECT_EQ(fault_in("`a"), "a backquote is not closed");
  EXPECT_EQ(fault_in("sqrt(2)"), "\"sqrt\" is not a function; known: round, floor, ceil, min, max");
  EXPECT_EQ(fault_in("min(2)"), "unexpected ')' at character 6");
  EXPECT_EQ(fault_in(std::string(2000, '(')), "it nests too deep");
  EXPECT_EQ(fault_in(std::string(2000, '-') + "1"), "it nests too deep");
}

}  // namespace expression_test
}  // namespace towtank
