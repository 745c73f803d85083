// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small text helpers for messages: the nearest known word, lists in English, quoting.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace towtank {

/// The candidate with the least Damerau-Levenshtein distance to the word, if that is at most a
/// third of its length (at least 1, at most 4) or one is a prefix of the other (3 letters or more).
/// Ties: the first.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string_view> candidates);

/// "a, b and c"
[[nodiscard]] std::string join_and(const std::vector<std::string>& items);
[[nodiscard]] std::string join(const std::vector<std::string>& items, std::string_view separator);
/// Makes control bytes and invalid UTF-8 visible and cuts after max bytes, so that any input can
/// stand in a message.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max = 60);

/// The printable text in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t max = 60);

/// 64-bit FNV-1a as 16 hex digits: names inputs in provenance; not for security.
[[nodiscard]] std::string content_hash(std::string_view bytes);

}  // namespace towtank
