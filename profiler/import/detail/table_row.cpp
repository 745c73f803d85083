// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/detail/table_row.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/contracts.h"
#include "core/input_error.h"
#include "core/text.h"
#include "profiler/import/source_text.h"

namespace towtank::detail {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_in(std::string_view text) {
  if (text == "True" || text == "true") return 1;
  if (text == "False" || text == "false") return 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? value : kNone;
}

}  // namespace

TableRow::TableRow(const CsvMapping& mapping, std::string file, std::vector<std::string> columns)
    : mapping_(&mapping), file_(std::move(file)), columns_(std::move(columns)) {
  stem_ = base_name(file_);
  if (const std::size_t dot = stem_.find_last_of('.'); dot != std::string::npos && dot > 0) {
    stem_.resize(dot);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::string& name = columns_[i];
    const std::string plain = name;
    for (int twin = 2; column_index_.contains(name); ++twin) {
      name = plain + "#" + std::to_string(twin);
    }
    column_index_[name] = i;
  }
}

std::string TableRow::place() const { return at_line(file_, line_); }

std::size_t TableRow::column(const std::string& name, const std::string& where) const {
  const auto found = column_index_.find(name);
  if (found != column_index_.end()) return found->second;
  // Short names are all near each other.
  const auto near = name.size() > 2 ? nearest(name, columns_) : std::nullopt;
  throw InputError({where, "names the column " + in_quotes(name),
                    printable(file_, 400) + " has none of this name",
                    near ? "Did you mean " + in_quotes(*near) + "?"
                         : "It has " + printable(join(columns_, ", "), 300) + "."});
}

void TableRow::take(std::vector<std::string> cells, long line) {
  EXPECTS(cells.size() == columns_.size());
  cells_ = std::move(cells);
  line_ = line;
  numbers_.assign(cells_.size(), std::nullopt);
  lets_.clear();
  for (const auto& let : mapping_->lets) lets_.push_back(number(let.second));
}

double TableRow::cell_number(std::size_t column) {
  auto& known = numbers_[column];
  if (!known) known = number_in(cells_[column]);
  return *known;
}

/// "AR_GPU*_" finds 8 in AR_GPU8_1M: the digits between what stands before and after the star.
double TableRow::file_number(const NumberRule& rule) const {
  const std::size_t star = rule.file_pattern.find('*');
  const std::string before = rule.file_pattern.substr(0, star);
  const std::string after = rule.file_pattern.substr(star + 1);
  const std::string name = base_name(file_);
  for (std::size_t at = name.find(before); at != std::string::npos;
       at = name.find(before, at + 1)) {
    const std::size_t first = at + before.size();
    const std::size_t end = std::min(name.find_first_not_of("0123456789", first), name.size());
    if (end > first && name.compare(end, after.size(), after) == 0) {
      return number_in(std::string_view(name).substr(first, end - first));
    }
  }
  throw InputError({rule.where, in_quotes(rule.file_pattern) + " is not in the file's name",
                    printable(file_, 400), ""});
}

double TableRow::evaluate(const Expression& expression, const std::string& where) {
  auto [it, is_new] = names_.try_emplace(expression.text());
  if (is_new) {
    for (const std::string& name : expression.names()) {
      const auto& lets = mapping_->lets;
      const auto let = std::find_if(lets.begin(), lets.end(),
                                    [&](const auto& item) { return item.first == name; });
      if (let != lets.end()) {
        it->second.push_back({true, static_cast<std::size_t>(let - lets.begin())});
      } else {
        it->second.push_back({false, column(name, where)});
      }
    }
  }
  values_.clear();
  for (const Name& name : it->second) {
    // A `let` that is defined later has no value yet.
    values_.push_back(!name.is_let                ? cell_number(name.index)
                      : name.index < lets_.size() ? lets_[name.index]
                                                  : kNone);
  }
  return expression.evaluate(values_);
}

double TableRow::number(const NumberRule& rule) {
  if (rule.expression) return evaluate(*rule.expression, rule.where);
  if (!rule.file_pattern.empty()) return file_number(rule);
  const auto found = rule.values.find(filled(rule.pattern, rule.where));
  return found == rule.values.end() ? kNone : found->second;
}

std::string TableRow::filled(const std::string& pattern, const std::string& where) const {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = pattern.find('{', at);
    const std::size_t close = pattern.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return out + pattern.substr(at);
    out += pattern.substr(at, open - at);
    const std::string name = pattern.substr(open + 1, close - open - 1);
    out += name == "file" && !column_index_.contains(name) ? stem_ : cells_[column(name, where)];
    at = close + 1;
  }
  return out;
}

std::optional<std::string> TableRow::text(const TextRule& rule) const {
  std::string text = filled(rule.pattern, rule.where);
  if (!rule.is_look_up) return text;
  const auto found = rule.values.find(text);
  if (found == rule.values.end()) return std::nullopt;
  return found->second;
}

std::string TableRow::looked_up(const TextRule& rule) const {
  return rule.pattern + " = " + in_quotes(filled(rule.pattern, rule.where));
}

bool TableRow::has_text(const std::string& name, const std::string& text,
                        const std::string& where) const {
  return cells_[column(name, where)] == text;
}

bool TableRow::holds(const RowCondition& condition) {
  if (!condition.value) {
    const std::string& cell = cells_[column(condition.column, condition.where)];
    const auto& texts = condition.texts;
    return (std::find(texts.begin(), texts.end(), cell) != texts.end()) != condition.negated;
  }
  const double value = number(*condition.value);
  return (!condition.at_least || value >= *condition.at_least) &&
         (!condition.above || value > *condition.above) &&
         (!condition.at_most || value <= *condition.at_most) &&
         (!condition.below || value < *condition.below);
}

bool TableRow::holds(const RowConditions& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const RowCondition& condition) { return holds(condition); });
}

}  // namespace towtank::detail
