// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/kineto/json_stream.h"

#include <algorithm>
#include <cstring>

namespace towtank {
namespace {

constexpr std::size_t kFirstBuffer = 1U << 20;
/// What a cursor may read behind the end: its zero byte, and a whole word from there.
constexpr std::size_t kPadding = 16;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

JsonStream::JsonStream(ByteSource& source)
    : source_(source),
      buffer_(kFirstBuffer + kPadding),
      begin_(buffer_.data()),
      end_(buffer_.data()),
      bad_at_(buffer_.data()) {
  more();
}

bool JsonStream::more() {
  const auto unread = static_cast<std::size_t>(end_ - begin_);
  passed_ += static_cast<std::uint64_t>(begin_ - buffer_.data());
  std::memmove(buffer_.data(), begin_, unread);
  if (unread + kPadding > buffer_.size() / 2) buffer_.resize(buffer_.size() * 2);
  const std::size_t n = source_.read(buffer_.data() + unread, buffer_.size() - kPadding - unread);
  begin_ = bad_at_ = buffer_.data();
  end_ = begin_ + unread + n;
  std::memset(buffer_.data() + unread + n, 0, kPadding);
  return n > 0;
}

char JsonStream::peek() {
  do {
    while (begin_ < end_ && is_space(*begin_)) ++begin_;
    if (begin_ < end_) return *begin_;
  } while (more());
  return '\0';
}

bool JsonStream::resynchronise() {
  char last = '\0', before_last = '\0';
  do {
    for (; begin_ < end_; ++begin_) {
      const char c = *begin_;
      if (is_space(c)) continue;
      if (c == '{' && last == ',' && before_last == '}') return true;
      before_last = last;
      last = c;
    }
  } while (more());
  return false;
}

}  // namespace towtank
