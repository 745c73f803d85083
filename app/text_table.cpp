// SPDX-License-Identifier: Apache-2.0
#include "app/text_table.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {
namespace {

void trim_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

void TextTable::add_row(std::vector<std::string> cells) {
  EXPECTS(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::hide_column_if_all(std::size_t column, std::string_view text) {
  EXPECTS(column < columns_.size());
  hidden_[column] =
      std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row[column] == text; });
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].heading.size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  return widths;
}

std::string TextTable::line(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::string out;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (hidden_[c]) continue;
    out.append(static_cast<std::size_t>(columns_[c].gap), ' ');
    std::string cell = cells[c];
    if (c + 1 == columns_.size() && out.size() < kScreenWidth) {
      cell = cut(cell, kScreenWidth - out.size());
    }
    const std::size_t blanks = widths[c] > cell.size() ? widths[c] - cell.size() : 0;
    const bool right = columns_[c].align == Align::kRight;
    if (right) out.append(blanks, ' ');
    out += cell;
    if (!right) out.append(blanks, ' ');
  }
  trim_right(out);
  return out + "\n";
}

std::string TextTable::text() const {
  const std::vector<std::size_t> width = widths();
  std::vector<std::string> headings;
  for (const TableColumn& column : columns_) headings.push_back(column.heading);
  const bool any = std::any_of(headings.begin(), headings.end(),
                               [](const std::string& h) { return !h.empty(); });
  std::string out = any ? line(headings, width) : "";
  for (const auto& row : rows_) out += line(row, width);
  return out;
}

std::string cut(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, width));
  return std::string(text.substr(0, width - 3)) + "...";
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  bool first = true;
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  return out;
}

std::string labelled(std::string_view label, std::string_view text, std::size_t indent) {
  std::string out(label);
  out.append(label.size() < indent ? indent - label.size() : 1, ' ');
  return out + wrapped(text, indent) + "\n";
}

std::string side_by_side(std::string_view left, std::string_view right, std::size_t column) {
  const auto a = lines_of(left);
  const auto b = lines_of(right);
  std::string out;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string line(i < a.size() ? a[i] : std::string_view{});
    if (i < b.size()) {
      line.append(line.size() < column ? column - line.size() : 1, ' ');
      line += b[i];
    }
    trim_right(line);
    out += line + "\n";
  }
  return out;
}

}  // namespace towtank
