// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The bytes of a file, of standard input or of a text, from first to last: gzip data inflated on
/// the way (also of several members), tar archives member by member. What is held at once is a
/// buffer, never the file.
///
///   ByteSource source = ByteSource::open("traces.tar.gz");
///   do { read(source) } while (source.next_member());
///
/// A member that is itself compressed is held whole while it is read.
/// Not read: zstd, zip, sparse tar members.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace towtank {

class ByteSource {
 public:
  /// "-": standard input. Throws InputError if the file cannot be opened, or is empty.
  [[nodiscard]] static ByteSource open(const std::string& path);
  /// The text may be gzip data or an archive, as a file may be.
  [[nodiscard]] static ByteSource of_text(std::string name, std::string text);
  ByteSource(ByteSource&&) noexcept;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  /// The file as the user gave it; in an archive with its member: "a.tar.gz: rank0.json".
  [[nodiscard]] const std::string& name() const;
  /// Path if the bytes stand in a regular file as they are, for libraries that open files
  /// themselves; else empty.
  [[nodiscard]] const std::string& plain_path() const;
  /// Up to `size` bytes; 0 at the end of the file or member. Throws InputError if it cannot read.
  [[nodiscard]] std::size_t read(char* to, std::size_t size);
  /// The next bytes without taking them: fewer than `size` (<= 64 KiB) only at the end.
  [[nodiscard]] std::string_view peek(std::size_t size);
  /// Whether compressed data or an archive ended or broke before its end; known at the end.
  [[nodiscard]] bool cut_off() const;
  /// Goes on to the next file of an archive; false if there is none, or this is no archive.
  [[nodiscard]] bool next_member();

 private:
  struct State;
  explicit ByteSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// All bytes that are left. Throws InputError if there are more than `limit`.
[[nodiscard]] std::string read_rest(ByteSource& source, std::size_t limit);

}  // namespace towtank
