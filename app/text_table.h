// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Columns of text that line up: what every report prints. ASCII only, so that a width is a count
/// of bytes.
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

inline constexpr std::size_t kScreenWidth = 100;  ///< no line of a report is wider

enum class Align { kLeft, kRight };

struct TableColumn {
  std::string heading;
  Align align = Align::kRight;
  int gap = 2;  ///< blanks in front of the column; the first column's are its indent
};

/// Lines of columns; the last cell of a row may be cut to fit the screen, with "..." at its end.
class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  /// Pre: as many cells as columns.
  void add_row(std::vector<std::string> cells);
  /// A column whose cells are all alike and equal to this text is not printed.
  void hide_column_if_all(std::size_t column, std::string_view text);
  /// The headings and the rows, each ending in a newline. No headings if all are empty.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells,
                                 const std::vector<std::size_t>& widths) const;
  std::vector<TableColumn> columns_;
  std::vector<bool> hidden_ = std::vector<bool>(columns_.size(), false);
  std::vector<std::vector<std::string>> rows_;
};

/// Breaks text at blanks into lines of at most `width`; lines after the first are indented. A word
/// that is longer than a line stays whole.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent,
                                  std::size_t width = kScreenWidth);

/// "label     text", the text wrapped beside its label.
[[nodiscard]] std::string labelled(std::string_view label, std::string_view text,
                                   std::size_t indent = 11);

/// Two blocks of lines next to each other; the right one starts at a column.
[[nodiscard]] std::string side_by_side(std::string_view left, std::string_view right,
                                       std::size_t column);

/// Text cut to a width, with "..." where something is missing.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);

}  // namespace towtank
