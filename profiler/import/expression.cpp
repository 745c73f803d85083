// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/contracts.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr int kMaxDepth = 64;

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool within_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

}  // namespace

/// Recursive descent to postfix steps; the first fault stops it.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  std::variant<Expression, std::string> parse() {
    sum(0);
    skip_space();
    if (fault_.empty() && at_ < text_.size()) unexpected();
    if (!fault_.empty()) return fault_;
    out_.text_ = std::string(text_);
    return std::move(out_);
  }

 private:
  using Op = Expression::Op;

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void unexpected() {
    if (!fault_.empty()) return;
    fault_ = at_ < text_.size() ? "unexpected '" + std::string(1, text_[at_]) + "' at character " +
                                      std::to_string(at_ + 1)
                                : "it ends too early";
  }
  void add(Op op) { out_.steps_.push_back({op, 0, 0}); }

  void sum(int depth) {
    product(depth);
    while (fault_.empty()) {
      if (take('+')) {
        product(depth);
        add(Op::kAdd);
      } else if (take('-')) {
        product(depth);
        add(Op::kSubtract);
      } else {
        return;
      }
    }
  }
  void product(int depth) {
    factor(depth);
    while (fault_.empty()) {
      if (take('*')) {
        factor(depth);
        add(Op::kMultiply);
      } else if (take('/')) {
        factor(depth);
        add(Op::kDivide);
      } else {
        return;
      }
    }
  }
  void factor(int depth) {
    if (depth > kMaxDepth) {
      fault_ = "it nests too deep";
      return;
    }
    skip_space();
    if (at_ >= text_.size()) return unexpected();
    if (take('-')) {
      factor(depth + 1);
      return add(Op::kNegate);
    }
    if (take('(')) {
      sum(depth + 1);
      if (!take(')')) unexpected();
      return;
    }
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (c == '`') return backquoted();
    if (starts_name(c)) return name_or_function(depth);
    unexpected();
  }
  void number() {
    double value = 0;
    const char* first = text_.data() + at_;
    const auto result = std::from_chars(first, text_.data() + text_.size(), value);
    if (result.ec != std::errc()) return unexpected();
    at_ += static_cast<std::size_t>(result.ptr - first);
    out_.steps_.push_back({Op::kNumber, value, 0});
  }
  void backquoted() {
    const std::size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) {
      fault_ = "a backquote is not closed";
      return;
    }
    name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }
  void name(std::string_view word) {
    auto& names = out_.names_;
    const auto it = std::find(names.begin(), names.end(), word);
    const auto index = static_cast<std::size_t>(it - names.begin());
    if (it == names.end()) names.emplace_back(word);
    out_.steps_.push_back({Op::kName, 0, index});
  }
  void name_or_function(int depth) {
    const std::size_t start = at_;
    while (at_ < text_.size() && within_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (!take('(')) return name(word);
    struct Function {
      std::string_view name;
      Op op;
      int arguments;
    };
    constexpr std::array<Function, 5> kFunctions{{{"round", Op::kRound, 1},
                                                  {"floor", Op::kFloor, 1},
                                                  {"ceil", Op::kCeil, 1},
                                                  {"min", Op::kMin, 2},
                                                  {"max", Op::kMax, 2}}};
    const auto known = std::find_if(kFunctions.begin(), kFunctions.end(),
                                    [&](const Function& f) { return f.name == word; });
    if (known == kFunctions.end()) {
      fault_ = in_quotes(word) + " is not a function; known: round, floor, ceil, min, max";
      return;
    }
    for (int i = 0; i < known->arguments; ++i) {
      if (i > 0 && !take(',')) return unexpected();
      sum(depth + 1);
      if (!fault_.empty()) return;
    }
    if (!take(')')) return unexpected();
    add(known->op);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string fault_;
  Expression out_;
};

std::variant<Expression, std::string> Expression::parse(std::string_view text) {
  return ExpressionParser(text).parse();
}

Expression Expression::constant(double value) {
  Expression out;
  out.steps_.push_back({Op::kNumber, value, 0});
  out.text_ = std::to_string(value);
  return out;
}

double Expression::evaluate(const std::vector<double>& values) const {
  EXPECTS(values.size() >= names_.size());
  std::vector<double> stack;
  stack.reserve(steps_.size());
  const auto binary = [&](auto apply) {
    const double right = stack.back();
    stack.pop_back();
    stack.back() = apply(stack.back(), right);
  };
  for (const Step& step : steps_) {
    switch (step.op) {
      case Op::kNumber:
        stack.push_back(step.number);
        break;
      case Op::kName:
        stack.push_back(values[step.name]);
        break;
      case Op::kAdd:
        binary([](double a, double b) { return a + b; });
        break;
      case Op::kSubtract:
        binary([](double a, double b) { return a - b; });
        break;
      case Op::kMultiply:
        binary([](double a, double b) { return a * b; });
        break;
      case Op::kDivide:
        binary([](double a, double b) { return a / b; });
        break;
      case Op::kNegate:
        stack.back() = -stack.back();
        break;
      case Op::kRound:
        stack.back() = std::round(stack.back());
        break;
      case Op::kFloor:
        stack.back() = std::floor(stack.back());
        break;
      case Op::kCeil:
        stack.back() = std::ceil(stack.back());
        break;
      case Op::kMin:  // NaN stays NaN, which std::min would drop
        binary([](double a, double b) { return std::isnan(a + b) ? a + b : std::min(a, b); });
        break;
      case Op::kMax:
        binary([](double a, double b) { return std::isnan(a + b) ? a + b : std::max(a, b); });
        break;
    }
  }
  ENSURES(stack.size() == 1);
  return stack.back();
}

}  // namespace towtank
