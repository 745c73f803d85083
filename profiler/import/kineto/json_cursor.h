// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Walks over JSON in a buffer without copying: strings and values are slices of it.
///
/// The buffer ends with a zero byte behind `end`, and 8 more bytes may be read behind that. Nothing
/// is checked that costs time: a slice is what stands between its delimiters, escapes left as they
/// are. Once something is not as asked, the cursor stops and says so: `ran_out` if the buffer ended
/// (more of the file may mend it), `bad` if the text is not JSON; every call after that does
/// nothing and returns empty slices.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace towtank {

class JsonCursor {
 public:
  JsonCursor(const char* begin, const char* end) : at_(begin), end_(end) {}

  [[nodiscard]] const char* at() const { return at_; }
  [[nodiscard]] bool ok() const { return state_ == State::kOk; }
  [[nodiscard]] bool ran_out() const { return state_ == State::kRanOut; }
  /// Where the text stopped being JSON.
  [[nodiscard]] const char* bad_at() const { return bad_at_; }

  /// The next byte that is no space; 0 at the end.
  char peek() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
    return *at_;
  }
  /// Takes the byte if it comes next.
  bool take(char c) {
    if (peek() != c || !ok()) return false;
    ++at_;
    return true;
  }
  /// Takes the byte, which must come next.
  void need(char c) {
    if (peek() == c && ok()) {
      ++at_;
    } else {
      fail();
    }
  }
  void fail() {
    if (!ok()) return;
    bad_at_ = at_;
    state_ = *at_ == '\0' && at_ >= end_ ? State::kRanOut : State::kBad;
    at_ = end_;
  }

  /// What stands between the quotes.
  std::string_view string() {
    need('"');
    const char* const begin = at_;
    skip_string_rest();
    return ok() ? std::string_view(begin, static_cast<std::size_t>(at_ - begin - 1))
                : std::string_view();
  }
  /// A string with its quotes, a number, a word, an array or an object.
  std::string_view value() {
    peek();
    const char* const begin = at_;
    skip_value();
    return ok() ? std::string_view(begin, static_cast<std::size_t>(at_ - begin))
                : std::string_view();
  }
  void skip_value() {
    switch (peek()) {
      case '"':
        ++at_;
        skip_string_rest();
        return;
      case '{':
      case '[':
        ++at_;
        skip_containers(1);
        return;
      default:
        skip_word();
    }
  }
  /// Skips to behind the end of the `depth` innermost containers that are open.
  void skip_containers(int depth) {
    while (depth > 0) {
      const char c = *at_++;
      if (c == '"') {
        skip_string_rest();
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        --depth;
      } else if (c == '\0') {
        --at_;
        fail();
        return;
      }
    }
  }

 private:
  enum class State { kOk, kRanOut, kBad };

  void skip_word() {
    const char* const begin = at_;
    while (*at_ > ' ' && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ != ':') ++at_;
    // A word at the very end may go on in what follows.
    if (at_ == begin || *at_ == '\0') fail();
  }

  void skip_string_rest() {
    while (ok()) {
      at_ = find_special(at_);
      if (*at_ == '"') {
        ++at_;
        return;
      }
      if (*at_ == '\\' && at_[1] != '\0') {
        at_ += 2;
      } else if (*at_ == '\0' && at_ < end_) {
        ++at_;  // a zero byte inside of a string
      } else {
        at_ = end_;
        fail();
      }
    }
  }

  /// The first quote, backslash or zero byte.
  static const char* find_special(const char* at) {
    if constexpr (std::endian::native == std::endian::little) {
      constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
      const auto zero_bytes = [](std::uint64_t v) { return (v - kOnes) & ~v & kHighs; };
      while (true) {
        std::uint64_t v = 0;
        std::memcpy(&v, at, sizeof v);
        const std::uint64_t found =
            zero_bytes(v) | zero_bytes(v ^ (kOnes * '"')) | zero_bytes(v ^ (kOnes * '\\'));
        if (found != 0) return at + std::countr_zero(found) / 8;
        at += sizeof v;
      }
    }
    while (*at != '"' && *at != '\\' && *at != '\0') ++at;
    return at;
  }

  const char* at_;
  const char* end_;
  const char* bad_at_ = nullptr;
  State state_ = State::kOk;
};

}  // namespace towtank
