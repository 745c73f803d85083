// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Arithmetic on the columns of a table: "(n_head + 2 * n_kv_head) * n_embd / n_head".
///
///   numbers     12  0.5  1e6
///   names       letters, digits, _ and . (not first a digit); any other name in backquotes:
///               `size(B)`
///   operators   + - * /  and a minus sign, with the usual precedence; parentheses
///   functions   round(x) floor(x) ceil(x) min(x, y) max(x, y)
///
/// Everything is a double. A name without a number is NaN, and so is whatever it enters.
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace towtank {

class Expression {
 public:
  /// The text is well formed, or why not ("unexpected ) at character 5").
  [[nodiscard]] static std::variant<Expression, std::string> parse(std::string_view text);
  [[nodiscard]] static Expression constant(double value);

  /// Names in the order of their first use, without backquotes.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Pre: values[i] is that of names()[i].
  [[nodiscard]] double evaluate(const std::vector<double>& values) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  friend class ExpressionParser;
  enum class Op {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kNegate,
    kRound,
    kFloor,
    kCeil,
    kMin,
    kMax
  };
  struct Step {
    Op op = Op::kNumber;
    double number = 0;
    std::size_t name = 0;
  };
  std::string text_;
  std::vector<std::string> names_;
  std::vector<Step> steps_;  ///< postfix
};

}  // namespace towtank
