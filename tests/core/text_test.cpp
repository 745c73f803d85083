// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "core/rng.h"

namespace towtank {
namespace {

std::string nearest_key(std::string_view word) {
  constexpr std::array<std::string_view, 5> kKeys{"hidden_size", "num_layers", "tensor", "pipeline",
                                                  "dp"};
  return nearest(word, std::span<const std::string_view>(kKeys)).value_or("none");
}

TEST(UnitText, NearestForgivesAThirdOfTheLetters) {
  EXPECT_EQ(nearest_key("hiden_size"), "hidden_size");   // one missing
  EXPECT_EQ(nearest_key("hiddne_size"), "hidden_size");  // two swapped: one edit
  EXPECT_EQ(nearest_key("hidden-sise"), "hidden_size");  // two changed
  EXPECT_EQ(nearest_key("tnesor"), "tensor");
  EXPECT_EQ(nearest_key("tXXsor"), "tensor");  // 2 of 6
  EXPECT_EQ(nearest_key("tXXXor"), "none");    // 3 of 6
  EXPECT_EQ(nearest_key("dq"), "dp");          // at least one is forgiven
  EXPECT_EQ(nearest_key("qq"), "none");
  EXPECT_EQ(nearest_key(""), "none");
}

TEST(UnitText, NearestKnowsPrefixesFromThreeLetters) {
  EXPECT_EQ(nearest_key("pip"), "pipeline");
  EXPECT_EQ(nearest_key("tensor_parallel_size"), "tensor");
  EXPECT_EQ(nearest_key("pi"), "none");
  EXPECT_EQ(nearest_key("hidden_size_of_the_model"), "hidden_size");
}

TEST(UnitText, NearestTakesTheFirstOfEquals) {
  const std::vector<std::string> names{"cat", "bat", "rat"};
  EXPECT_EQ(nearest("zat", std::span<const std::string>(names)), "cat");
  EXPECT_EQ(nearest("bat", std::span<const std::string>(names)), "bat");
  EXPECT_EQ(nearest("x", std::span<const std::string>{}), std::nullopt);
}

TEST(UnitText, NearestIsQuickOnHugeWords) {
  const std::vector<std::string> names{std::string(1 << 20, 'a'), "abc"};
  EXPECT_EQ(nearest(std::string(1 << 20, 'b'), std::span<const std::string>(names)), std::nullopt);
  EXPECT_EQ(nearest("abd", std::span<const std::string>(names)), "abc");
}

TEST(UnitText, ListsInEnglish) {
  EXPECT_EQ(join_and({}), "");
  EXPECT_EQ(join_and({"a"}), "a");
  EXPECT_EQ(join_and({"a", "b"}), "a and b");
  EXPECT_EQ(join_and({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(join({"a", "b", "c"}, "/"), "a/b/c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(UnitText, PrintableShowsWhatATerminalWouldHideOrObey) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");      // a control of two bytes
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u202e");  // right-to-left override
  EXPECT_EQ(printable("\xc2\xb5s \xe2\x82\xac \xf0\x9f\x9a\xa2"),
            "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x9a\xa2");  // micro, euro, ship
}

TEST(UnitText, PrintableShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");  // cut
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

TEST(UnitText, PrintableCutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("ab\xe2\x82\xac", 4), "ab...");
  EXPECT_EQ(printable("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

TEST(LawText, PrintableIsPlainForAllBytes) {
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(static_cast<std::size_t>(rng.integer(0, 80)), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.integer(0, 255));
    const std::string shown = printable(bytes);
    EXPECT_LE(shown.size(), 4U * 60U + 3U);
    for (const char c : shown) ASSERT_GE(static_cast<unsigned char>(c), 0x20U);
    EXPECT_EQ(printable(shown, shown.size()), shown);
  }
}

TEST(UnitText, ContentHashIsFnv1a) {
  // Test vectors of the FNV authors (Noll, fnv_test).
  EXPECT_EQ(content_hash(""), "cbf29ce484222325");
  EXPECT_EQ(content_hash("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(content_hash("foobar"), "85944171f73967e8");
  EXPECT_NE(content_hash("ab"), content_hash("ba"));
}

}  // namespace
}  // namespace towtank
