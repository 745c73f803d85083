// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Text in columns that line up, two blanks between them: the first column to the left, others to
/// the right, those marked to the left. ASCII only.
#include <string>
#include <vector>

namespace towtank::detail {

struct Columns {
  std::vector<std::vector<std::string>> rows;  ///< the first is the heading
  std::vector<std::size_t> left;               ///< columns beside the first that align left
};

/// Each row a line; a line is cut at 100 columns with "..." where something is missing.
[[nodiscard]] std::string to_text(const Columns&);

/// Text broken at blanks into lines of at most 100 columns, the later ones indented.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent);

// Figures of a table; "-" for what is not known.
[[nodiscard]] std::string percent_cell(double fraction);       ///< "12.3", "-4.0", in percent
[[nodiscard]] std::string ratio_cell(double value);            ///< "0.85"
[[nodiscard]] std::string parameters_cell(double parameters);  ///< "22.1B", "1.01T"

template <class T, class F>
[[nodiscard]] std::string cell_or_dash(const T& value, F&& to_cell) {
  return value ? to_cell(*value) : std::string("-");
}

}  // namespace towtank::detail
