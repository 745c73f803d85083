// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <algorithm>
#include <cstdint>

namespace towtank {
namespace {

/// Longer words are not typing mistakes, and the distance costs the product of both lengths.
constexpr std::size_t kMaxWord = 128;

/// Edits to turn a into b, a swap of neighbours being one edit (optimal string alignment:
/// Damerau 1964, Levenshtein 1966; no substring is edited twice).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before_last(width);
  std::vector<std::size_t> last(width);
  std::vector<std::size_t> row(width);
  for (std::size_t j = 0; j < width; ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[width - 1];
}

template <class Text>
std::optional<std::string> nearest_of(std::string_view word, std::span<const Text> candidates) {
  if (word.empty() || word.size() > kMaxWord) return std::nullopt;
  const std::size_t limit = std::clamp<std::size_t>(word.size() / 3, 1, 4);
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kMaxWord) continue;
    const std::size_t shorter = std::min(word.size(), candidate.size());
    const bool prefix = shorter >= 3 && word.substr(0, shorter) == candidate.substr(0, shorter);
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (!prefix && longer - shorter > limit) continue;
    const std::size_t distance = prefix ? longer - shorter : edit_distance(word, candidate);
    if (!prefix && distance > limit) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best) return std::nullopt;
  return std::string(*best);
}

char hex_digit(unsigned value) { return "0123456789abcdef"[value & 15U]; }

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;  ///< bytes; 0 if they are not UTF-8
};

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80U) return {first, 1};
  const std::size_t size = first >= 0xf5U   ? 0
                           : first >= 0xf0U ? 4
                           : first >= 0xe0U ? 3
                           : first >= 0xc2U ? 2
                                            : 0;
  if (size == 0 || text.size() < size) return {};
  std::uint32_t value = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3fU);
  }
  const bool too_long = (size == 3 && value < 0x800U) || (size == 4 && value < 0x10000U);
  const bool surrogate = value >= 0xd800U && value <= 0xdfffU;
  if (too_long || surrogate || value > 0x10ffffU) return {};
  return {value, size};
}

/// Controls, and the marks that reorder what a terminal shows.
bool is_invisible(std::uint32_t c) {
  return c < 0x20U || (c >= 0x7fU && c < 0xa0U) || (c >= 0x200bU && c <= 0x200fU) ||
         (c >= 0x2028U && c <= 0x202eU) || (c >= 0x2060U && c <= 0x2069U) || c == 0xfeffU;
}

std::string escaped_byte(unsigned byte) {
  return {'\\', 'x', hex_digit(byte >> 4U), hex_digit(byte)};
}

std::string escaped(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x80U) return escaped_byte(c);
  return {'\\', 'u', hex_digit(c >> 12U), hex_digit(c >> 8U), hex_digit(c >> 4U), hex_digit(c)};
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  return nearest_of(word, candidates);
}

std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates) {
  return nearest_of(word, candidates);
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += separator;
    text += items[i];
  }
  return text;
}

std::string join_and(const std::vector<std::string>& items) {
  if (items.size() < 2) return join(items, "");
  const std::vector<std::string> head(items.begin(), items.end() - 1);
  return join(head, ", ") + " and " + items.back();
}

std::string printable(std::string_view text, std::size_t max) {
  std::string result;
  std::size_t i = 0;
  while (i < text.size()) {
    const CodePoint c = decode_utf8(text.substr(i));
    const std::size_t size = std::max<std::size_t>(c.size, 1);
    if (i + size > max) break;
    if (c.size == 0) {
      result += escaped_byte(static_cast<unsigned char>(text[i]));
    } else if (is_invisible(c.value)) {
      result += escaped(c.value);
    } else {
      result += text.substr(i, size);
    }
    i += size;
  }
  if (i < text.size()) result += "...";
  return result;
}

std::string in_quotes(std::string_view text, std::size_t max) {
  return '"' + printable(text, max) + '"';
}

std::string content_hash(std::string_view bytes) {
  // Fowler, Noll, Vo: offset basis and prime of the 64-bit FNV-1a (RFC 9923).
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x00000100000001b3ULL;
  }
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = hex_digit(static_cast<unsigned>((hash >> (4U * i)) & 15U));
  }
  return text;
}

}  // namespace towtank
