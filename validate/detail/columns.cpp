// SPDX-License-Identifier: Apache-2.0
#include "validate/detail/columns.h"

#include <fmt/format.h>

#include <algorithm>

namespace towtank::detail {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::string_view kGap = "  ";

/// 0 for what prints as -0.
double without_minus_zero(double value, double half_unit) {
  return value < 0 && value > -half_unit ? 0 : value;
}

std::string cut(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() <= kWidth) return line;
  return line.substr(0, kWidth - 3) + "...";
}

}  // namespace

std::string to_text(const Columns& columns) {
  std::vector<std::size_t> widths;
  for (const auto& row : columns.rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : columns.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool left =
          i == 0 || std::find(columns.left.begin(), columns.left.end(), i) != columns.left.end();
      if (i > 0) line += kGap;
      line += left ? fmt::format("{:<{}}", row[i], widths[i])
                   : fmt::format("{:>{}}", row[i], widths[i]);
    }
    out += cut(std::move(line)) + "\n";
  }
  return out;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    const bool blank = line.find_first_not_of(' ') == std::string::npos;
    if (!blank && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (blank ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

std::string percent_cell(double fraction) {
  return fmt::format("{:.1f}", without_minus_zero(100 * fraction, 0.05));
}

std::string parameters_cell(double parameters) {
  constexpr double kTera = 1e12, kGiga = 1e9, kMega = 1e6;
  if (parameters >= kTera) return fmt::format("{:.3g}T", parameters / kTera);
  if (parameters >= kGiga) return fmt::format("{:.3g}B", parameters / kGiga);
  return fmt::format("{:.3g}M", parameters / kMega);
}

std::string ratio_cell(double value) {
  return fmt::format("{:.2f}", without_minus_zero(value, 0.005));
}

}  // namespace towtank::detail
