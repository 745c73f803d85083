// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A JSON file of any size, read one value at a time: the buffer holds the value in hand and what
/// was read behind it.
///
///   stream.parse([&](JsonCursor& cursor) { ... })
///
/// runs its argument on the unread bytes, again from the same place whenever they did not suffice,
/// and takes what the cursor passed. So the argument must start afresh on each call, and slices
/// are valid until the next one.
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/import/byte_source.h"
#include "profiler/import/kineto/json_cursor.h"

namespace towtank {

class JsonStream {
 public:
  enum class Result {
    kOk,
    kBad,      ///< not JSON; nothing is taken
    kEnd,      ///< the file ends before the value does; nothing is taken
    kTooLong,  ///< a value longer than kLongest; nothing is taken
  };
  static constexpr std::size_t kLongest = 64U << 20;

  explicit JsonStream(ByteSource& source);

  template <class Parse>
  Result parse(Parse&& run) {
    while (true) {
      JsonCursor cursor(begin_, end_);
      run(cursor);
      if (cursor.ok()) {
        begin_ = cursor.at();
        return Result::kOk;
      }
      if (!cursor.ran_out()) {
        bad_at_ = cursor.bad_at();
        return Result::kBad;
      }
      if (static_cast<std::size_t>(end_ - begin_) >= kLongest) return Result::kTooLong;
      if (!more()) return Result::kEnd;
    }
  }
  /// The next byte that is no space, not taken; 0 at the end of the file.
  char peek();
  /// Takes n bytes. Pre: peek() found as many.
  void take(std::size_t n = 1) { begin_ += n; }
  /// Goes behind the next place that looks like the end of one object of an array before another:
  /// "}, {". False at the end of the file.
  bool resynchronise();
  /// Bytes of the file before what is unread.
  [[nodiscard]] std::uint64_t offset() const {
    return passed_ + static_cast<std::uint64_t>(begin_ - buffer_.data());
  }
  /// Where the last bad value went wrong.
  [[nodiscard]] std::uint64_t bad_offset() const {
    return passed_ + static_cast<std::uint64_t>(bad_at_ - buffer_.data());
  }

 private:
  /// Reads on; false at the end of the file.
  bool more();

  ByteSource& source_;
  std::vector<char> buffer_;
  const char* begin_;  ///< of what is unread
  const char* end_;
  const char* bad_at_;
  std::uint64_t passed_ = 0;  ///< bytes of the file before the buffer
};

}  // namespace towtank
