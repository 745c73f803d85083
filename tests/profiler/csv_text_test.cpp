// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/csv_text.h"

#include <gtest/gtest.h>

namespace towtank {
namespace csv_text_test {

using Records = std::vector<std::vector<std::string>>;

Records records_of(std::string_view text, char separator = ',') {
  CsvReader reader(text, separator);
  Records out;
  for (std::vector<std::string> cells; reader.next(cells);) out.push_back(cells);
  return out;
}

TEST(ImportCsvText, PlainFieldsLoseTheirBlanks) {
  EXPECT_EQ(records_of("a, b ,c\n1,,3\n"), (Records{{"a", "b", "c"}, {"1", "", "3"}}));
}

TEST(ImportCsvText, LineEndsOfEveryKind) {
  EXPECT_EQ(records_of("a,b\r\n1,2\r\n\r\n3,4"), (Records{{"a", "b"}, {"1", "2"}, {"3", "4"}}));
  EXPECT_EQ(records_of(""), Records{});
  EXPECT_EQ(records_of("\n\n"), Records{});
}

TEST(ImportCsvText, QuotesHoldSeparatorsLineEndsAndQuotes) {
  EXPECT_EQ(records_of("\"a,b\",\"c\"\"d\",\"e\nf\"\nx,y,z\n"),
            (Records{{"a,b", "c\"d", "e\nf"}, {"x", "y", "z"}}));
}

TEST(ImportCsvText, CommentsAndAByteOrderMarkAreSkipped) {
  EXPECT_EQ(records_of("\xef\xbb\xbf# made by hand\na;b\n#\n1;2\n", ';'),
            (Records{{"a", "b"}, {"1", "2"}}));
}

TEST(ImportCsvText, LinesAreCountedAsAnEditorDoes) {
  CsvReader reader("# c\na\n\n\"x\ny\"\nb\n");
  std::vector<std::string> cells;
  std::vector<long> lines;
  while (reader.next(cells)) lines.push_back(reader.line());
  EXPECT_EQ(lines, (std::vector<long>{2, 4, 6}));
}

TEST(ImportCsvText, AQuoteThatNeverClosesIsNoted) {
  CsvReader reader("a,\"b\nc,d\n");
  std::vector<std::string> cells;
  ASSERT_TRUE(reader.next(cells));
  EXPECT_TRUE(reader.unclosed());
  EXPECT_FALSE(reader.next(cells));
}

}  // namespace csv_text_test
}  // namespace towtank
