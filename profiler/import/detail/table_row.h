// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The rules of a mapping applied to one row at a time of one table: names are looked up once,
/// cells are read as numbers once.
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/import/csv_mapping.h"

namespace towtank::detail {

class TableRow {
 public:
  /// The mapping must outlive it. `file`: as in faults.
  TableRow(const CsvMapping& mapping, std::string file, std::vector<std::string> columns);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Takes the cells of the next row and works out the mapping's `let`. Pre: one cell a column.
  void take(std::vector<std::string> cells, long line);

  /// NaN where a cell is no number or a look-up has no such text.
  [[nodiscard]] double number(const NumberRule&);
  /// nullopt where a look-up has no such text.
  [[nodiscard]] std::optional<std::string> text(const TextRule&) const;
  [[nodiscard]] bool holds(const RowConditions&);
  [[nodiscard]] bool has_text(const std::string& column, const std::string& text,
                              const std::string& where) const;
  [[nodiscard]] std::string place() const;  ///< "a.csv: line 12"
  /// What a text rule looked up, for reasons: `{precision} = "x"`.
  [[nodiscard]] std::string looked_up(const TextRule&) const;

 private:
  struct Name {
    bool is_let = false;
    std::size_t index = 0;
  };
  [[nodiscard]] std::size_t column(const std::string& name, const std::string& where) const;
  [[nodiscard]] double cell_number(std::size_t column);
  [[nodiscard]] double file_number(const NumberRule&) const;
  [[nodiscard]] double evaluate(const Expression&, const std::string& where);
  [[nodiscard]] bool holds(const RowCondition&);
  [[nodiscard]] std::string filled(const std::string& pattern, const std::string& where) const;

  const CsvMapping* mapping_;
  std::string file_, stem_;
  std::vector<std::string> columns_;
  std::map<std::string, std::size_t> column_index_;
  std::unordered_map<std::string, std::vector<Name>> names_;  ///< by the expression's text
  std::vector<std::string> cells_;
  std::vector<std::optional<double>> numbers_;
  std::vector<double> lets_;
  std::vector<double> values_;
  long line_ = 0;
};

}  // namespace towtank::detail
