// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/csv_text.h"

namespace towtank {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

}  // namespace

CsvReader::CsvReader(std::string_view text, char separator) : text_(text), separator_(separator) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

void CsvReader::skip_blank_lines() {
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return;
    at_ = end < text_.size() ? end + 1 : end;
    ++line_;
  }
}

std::string CsvReader::quoted() {
  std::string field;
  ++at_;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      field += c;
    } else if (at_ < text_.size() && text_[at_] == '"') {
      field += '"';
      ++at_;
    } else {
      static_cast<void>(plain());  // what stands between the closing quote and the separator
      return field;
    }
  }
  unclosed_ = true;
  return field;
}

std::string CsvReader::plain() {
  const std::size_t start = at_;
  while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
  std::string_view field = text_.substr(start, at_ - start);
  if (field.ends_with('\r')) field.remove_suffix(1);
  return trimmed(field);
}

bool CsvReader::next(std::vector<std::string>& cells) {
  cells.clear();
  unclosed_ = false;
  skip_blank_lines();
  if (at_ >= text_.size()) return false;
  record_line_ = line_;
  while (true) {
    const std::size_t first = text_.find_first_not_of(" \t", at_);
    const bool has_quote = first != std::string_view::npos && text_[first] == '"';
    if (has_quote) at_ = first;
    cells.push_back(has_quote ? quoted() : plain());
    if (at_ >= text_.size()) return true;
    const char end = text_[at_++];
    if (end == '\n') {
      ++line_;
      return true;
    }
  }
}

}  // namespace towtank
