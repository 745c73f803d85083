// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Comma-separated text, record by record (RFC 4180: fields in double quotes may hold the
/// separator, line ends and doubled quotes). Spaces around a plain field are dropped. Lines that
/// are empty, or start with '#', are skipped.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

class CsvReader {
 public:
  /// The text must outlive the reader.
  explicit CsvReader(std::string_view text, char separator = ',');
  /// False at the end. A quote that never closes takes the rest as one field.
  [[nodiscard]] bool next(std::vector<std::string>& cells);
  /// Line on which the last record starts, from 1.
  [[nodiscard]] long line() const { return record_line_; }
  /// The last record had a quote that never closed.
  [[nodiscard]] bool unclosed() const { return unclosed_; }

 private:
  void skip_blank_lines();
  std::string quoted();
  std::string plain();

  std::string_view text_;
  std::size_t at_ = 0;
  char separator_;
  long line_ = 1;
  long record_line_ = 0;
  bool unclosed_ = false;
};

}  // namespace towtank
