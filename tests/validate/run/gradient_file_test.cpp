// SPDX-License-Identifier: Apache-2.0
#include "validate/run/gradient_file.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace towtank {
namespace gradient_file_test {

// [[0 1 2 3], [4 5 6 7]], columns over two tensor ranks, the first rank's part over two data ranks.
std::vector<std::vector<GradientPiece>> three_ranks() {
  return {{{"w", {2, 4}, 1, 0, 2, 0, {0, 1, 4}}},
          {{"w", {2, 4}, 1, 0, 2, 3, {5}}},
          {{"w", {2, 4}, 1, 1, 2, 0, {2, 3, 6, 7}}}};
}

TEST(UnitGradientFile, PiecesMakeTheWhole) {
  EXPECT_EQ(assemble(three_ranks(), 0).at("w"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(UnitGradientFile, RoundTrip) {
  for (const auto& pieces : three_ranks()) {
    const auto read = decode_gradients(encode(pieces));
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].whole, pieces[0].whole);
    EXPECT_EQ(read[0].values, pieces[0].values);
    EXPECT_EQ(read[0].begin, pieces[0].begin);
  }
}

TEST(FaultGradientFile, MissingUnequalAndCut) {
  auto ranks = three_ranks();
  ranks.pop_back();
  EXPECT_THROW(static_cast<void>(assemble(ranks, 0)), std::runtime_error);
  ranks = three_ranks();
  ranks.push_back({{"w", {2, 4}, 1, 0, 2, 3, {5.5}}});
  EXPECT_THROW(static_cast<void>(assemble(ranks, 0.01)), std::runtime_error);
  EXPECT_NO_THROW(static_cast<void>(assemble(ranks, 0.1)));
  const std::string bytes = encode(three_ranks()[0]);
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    EXPECT_THROW(static_cast<void>(decode_gradients(bytes.substr(0, n))), std::runtime_error) << n;
  }
}

TEST(UnitGradientFile, ErrorIsRelativeToTheLargest) {
  const Difference d = compare({{"a", {1, -4}}, {"b", {8}}}, {{"a", {1, -3}}, {"b", {8.5}}});
  EXPECT_EQ(d.name, "a");
  EXPECT_DOUBLE_EQ(d.error, 1.0 / 4);
  EXPECT_EQ(d.parameters, 2);
  // A gradient of rounding is measured by a thousandth of the largest of all.
  EXPECT_DOUBLE_EQ(compare({{"a", {1e-9}}, {"b", {1}}}, {{"a", {3e-9}}, {"b", {1}}}).error, 2e-6);
  EXPECT_THROW(static_cast<void>(compare({{"a", {1}}}, {{"b", {1}}})), std::runtime_error);
}

}  // namespace gradient_file_test
}  // namespace towtank
