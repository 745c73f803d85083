// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Published measurements beside the checkout, where they are there: tables with commas.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace towtank::testing {

inline const std::string kMeasuredData = std::string(TOWTANK_SOURCE_DIR) + "/../shared/data/";

/// Rows of a file as text by column; the first line names the columns. Empty if there is no file.
[[nodiscard]] inline std::vector<std::map<std::string, std::string>> data_rows(
    const std::string& file) {
  std::vector<std::map<std::string, std::string>> rows;
  std::ifstream in(kMeasuredData + file);
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::istringstream cells(line);
    std::map<std::string, std::string> row;
    std::size_t column = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++column) {
      if (names.size() == column && rows.empty() && row.empty()) {
        names.push_back(cell);
      } else if (column < names.size()) {
        row[names[column]] = cell;
      }
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

/// Mean of |ln(predicted / measured)|, and of ln: 0.1 is about 10 %.
struct LogError {
  double sum_of_magnitudes = 0.0, sum = 0.0;
  int count = 0;
  void add(double predicted, double measured) {
    const double error = std::log(predicted / measured);
    sum_of_magnitudes += std::abs(error);
    sum += error;
    ++count;
  }
  [[nodiscard]] double mean() const { return sum_of_magnitudes / count; }
  [[nodiscard]] double bias() const { return sum / count; }
};

}  // namespace towtank::testing

/// Says which table is missing and leaves the test.
#define SKIP_WITHOUT_ROWS(rows, file) \
  if ((rows).empty())                 \
  GTEST_SKIP() << "no measured rows: " << ::towtank::testing::kMeasuredData << (file)
