// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/support/expect_fault.h"

namespace towtank {
namespace byte_source_test {

std::string gzip_of(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = text;
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

/// One file of a ustar archive.
std::string member(const std::string& name, const std::string& text) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[12];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(text.size()));
  header.replace(124, 11, size);
  header[156] = '0';
  header.replace(257, 5, "ustar");
  std::string out = header + text;
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

std::string all_of(ByteSource& source) { return read_rest(source, 1 << 20); }

TEST(UnitByteSource, ReadsPlainAndCompressedTextAlike) {
  for (const std::string& data : {std::string("hello"), gzip_of("hello"),
                                  gzip_of("hel") + gzip_of("lo"), gzip_of("hello") + '\0'}) {
    ByteSource source = ByteSource::of_text("a", data);
    EXPECT_EQ(source.peek(3), "hel");
    EXPECT_EQ(all_of(source), "hello");
    EXPECT_FALSE(source.cut_off());
    EXPECT_FALSE(source.next_member());
  }
}

TEST(UnitByteSource, GoesThroughArchives) {
  const std::string tar = member("d/a.json", "first") + member("d/b.json.gz", gzip_of("second")) +
                          std::string(1024, '\0');
  for (const std::string& data : {tar, gzip_of(tar)}) {
    ByteSource source = ByteSource::of_text("x.tar", data);
    EXPECT_EQ(source.name(), "x.tar: d/a.json");
    EXPECT_EQ(source.peek(100), "first");
    EXPECT_EQ(all_of(source), "first");
    ASSERT_TRUE(source.next_member());
    EXPECT_EQ(source.name(), "x.tar: d/b.json.gz");
    EXPECT_EQ(all_of(source), "second");
    EXPECT_FALSE(source.next_member());
    EXPECT_FALSE(source.cut_off());
  }
}

/// What a member leaves unread is skipped.
TEST(UnitByteSource, NextMemberSkipsTheRestOfTheOne) {
  ByteSource source = ByteSource::of_text(
      "x.tar", member("a", std::string(3000, 'x')) + member("b", "y") + std::string(1024, '\0'));
  char c = 0;
  EXPECT_EQ(source.read(&c, 1), 1U);
  ASSERT_TRUE(source.next_member());
  EXPECT_EQ(all_of(source), "y");
}

TEST(ImportByteSource, DataThatEndEarlyAreToldAndKept) {
  const std::string text(100'000, 'a');
  const std::string data = gzip_of(text);
  ByteSource source = ByteSource::of_text("a", data.substr(0, data.size() - 30));
  EXPECT_LT(all_of(source).size(), text.size());
  EXPECT_TRUE(source.cut_off());

  ByteSource archive = ByteSource::of_text("x.tar", member("a", "hello").substr(0, 514));
  EXPECT_EQ(all_of(archive), "he");
  EXPECT_TRUE(archive.cut_off());
}

TEST(FaultByteSource, SaysWhyAFileCannotBeRead) {
  EXPECT_FAULT(ByteSource::open("/nowhere/a.json"), "/nowhere/a.json: no such file");
  EXPECT_FAULT(ByteSource::open(TOWTANK_SOURCE_DIR),
               std::string(TOWTANK_SOURCE_DIR) + ": is a directory, not a file");
  EXPECT_FAULT(ByteSource::of_text("a", ""), "a: is empty");
}

}  // namespace byte_source_test
}  // namespace towtank
