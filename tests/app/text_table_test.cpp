// SPDX-License-Identifier: Apache-2.0
#include "app/text_table.h"

#include <gtest/gtest.h>

namespace towtank {

TEST(UnitTextTable, ColumnsLineUp) {
  TextTable table({{"name", Align::kLeft, 0}, {"n", Align::kRight, 2}, {"why", Align::kLeft, 1}});
  table.add_row({"a", "10", "x"});
  table.add_row({"abcdef", "5", ""});
  EXPECT_EQ(table.text(),
            "name     n why\n"
            "a       10 x\n"
            "abcdef   5\n");
}

TEST(UnitTextTable, AColumnThatSaysNothingIsHidden) {
  TextTable table({{"a", Align::kRight, 0}, {"b", Align::kRight, 1}, {"c", Align::kRight, 1}});
  table.add_row({"1", "1", "1"});
  table.add_row({"2", "1", "2"});
  table.hide_column_if_all(0, "1");  // not all
  table.hide_column_if_all(1, "1");
  EXPECT_EQ(table.text(), "a c\n1 1\n2 2\n");
}

TEST(UnitTextTable, TheLastCellIsCutToTheScreen) {
  TextTable table({{"a", Align::kLeft, 0}, {"b", Align::kLeft, 1}});
  table.add_row({std::string(50, 'x'), std::string(80, 'y')});
  const std::string text = table.text();
  const std::string row = text.substr(text.find('\n') + 1);
  EXPECT_EQ(row, std::string(50, 'x') + " " + std::string(46, 'y') + "...\n");  // 50 + 1 + 49 = 100
}

TEST(UnitTextTable, NoHeadingsNoHeadingLine) {
  TextTable table({{"", Align::kLeft, 2}});
  table.add_row({"x"});
  EXPECT_EQ(table.text(), "  x\n");
}

TEST(UnitText, WrapsAtBlanks) {
  EXPECT_EQ(wrapped("aa bb  cc", 2, 7), "aa bb\n  cc");  // "  aa bb" is 7 wide
  EXPECT_EQ(wrapped("abcdefghij k", 0, 5), "abcdefghij\nk");
  EXPECT_EQ(wrapped("", 3, 10), "");
  EXPECT_EQ(labelled("Model", "x y", 8), "Model   x y\n");
}

TEST(UnitText, SideBySide) {
  EXPECT_EQ(side_by_side("a\nbb\n", "c\nd\ne\n", 4), "a   c\nbb  d\n    e\n");
  EXPECT_EQ(side_by_side("abcdef\n", "g\n", 4), "abcdef g\n");
}

TEST(UnitText, Cut) {
  EXPECT_EQ(cut("abcdef", 6), "abcdef");
  EXPECT_EQ(cut("abcdefg", 6), "abc...");
  EXPECT_EQ(cut("abcdefg", 2), "ab");
}

}  // namespace towtank
