// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "tests/support/expect_fault.h"

namespace towtank {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, gone after it.
class FileFolder : public ::testing::Test {
 protected:
  FileFolder() {
    std::string pattern = (fs::temp_directory_path() / "towtank-file-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~FileFolder() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string make(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  fs::path folder_;
};

/// Root may read and write everything: while this lives, the process is nobody.
class AsNobody {
 public:
  AsNobody() : user_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    if (user_ == 0 && ::seteuid(kNobody) != 0) throw std::runtime_error("cannot become nobody");
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (::geteuid() != user_ && ::seteuid(user_) != 0) std::abort();
  }

 private:
  uid_t user_;
};

/// While this lives, no file can grow beyond a few bytes: a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

class UnitFile : public FileFolder {};
class FaultFile : public FileFolder {};

TEST_F(UnitFile, ReadsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(read_file(make("bytes", all)), all);
  std::string large;
  while (large.size() < 300'000) large += all;
  EXPECT_EQ(read_file(make("large", large)), large);
}

TEST_F(UnitFile, LimitIsInclusive) {
  const std::string file = make("ten", "0123456789");
  EXPECT_EQ(read_file(file, Bytes{10}), "0123456789");
  EXPECT_FAULT(read_file(file, Bytes{9}),
               file + ": is 10 B, larger than the limit of 9 B (configuration files are small)");
}

TEST_F(UnitFile, ReadsPipes) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "through a pipe"; });
  EXPECT_EQ(read_file(pipe), "through a pipe");
  writer.join();
}

TEST_F(FaultFile, PipesHaveTheLimitToo) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "0123456789"; });
  EXPECT_FAULT(read_file(pipe, Bytes{9}),
               pipe + ": is larger than the limit of 9 B (configuration files are small)");
  writer.join();
}

TEST_F(FaultFile, ReadSaysWhatIsWrong) {
  EXPECT_FAULT(read_file(path("none.json")), path("none.json") + ": no such file");
  EXPECT_FAULT(read_file(make("file", "x") + "/below"), path("file/below") + ": no such file");
  EXPECT_FAULT(read_file(folder_.string()), folder_.string() + ": is a directory, not a file");
  EXPECT_FAULT(read_file(make("empty", "")), path("empty") + ": is empty");
  EXPECT_FAULT(read_file("/dev/zero"), "/dev/zero: is a device or socket, not a file");
  EXPECT_FAULT(read_file(""), "file name: is empty");
  EXPECT_FAULT(read_file(std::string("a\0b", 3)), "a\\x00b: no such file");
  EXPECT_FAULT(read_file("no\nsuch"), "no\\nsuch: no such file");
}

TEST_F(FaultFile, LargeFilesAreRefusedUnread) {
  const std::string file = make("sparse", "x");
  fs::resize_file(file, 3ULL << 30);
  EXPECT_FAULT(
      read_file(file),
      file + ": is 3 GiB, larger than the limit of 64 MiB (configuration files are small)");
  EXPECT_FAULT(read_file(file, Bytes{1LL << 30}),
               file + ": is 3 GiB, larger than the limit of 1 GiB");
}

TEST_F(FaultFile, UnreadableFile) {
  const std::string file = make("secret", "x");
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(file, fs::perms::none);
  const AsNobody nobody;
  EXPECT_FAULT(read_file(file), file + ": permission denied (the file must be readable)");
}

TEST_F(UnitFile, WritesWholeAndLeavesNothingElse) {
  const std::string text = std::string("a\0b\n", 4);
  write_file(path("out"), text);
  EXPECT_EQ(content("out"), text);
  write_file(path("out"), "shorter");
  EXPECT_EQ(content("out"), "shorter");
  write_file(path("none"), "");
  EXPECT_EQ(content("none"), "");
  EXPECT_EQ(entries(), 2);
}

TEST_F(UnitFile, KeepsModeAndLink) {
  make("target", "old");
  fs::permissions(path("target"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content("target"), "new");
  EXPECT_EQ(fs::status(path("target")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(UnitFile, WritesIntoDevicesInsteadOfReplacingThem) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FaultFile, WriteSaysWhatIsWrong) {
  EXPECT_FAULT(write_file(path("no/such/out"), "x"),
               path("no/such/out") +
                   ": cannot be written (its folder does not exist). Make the folder first.");
  EXPECT_FAULT(write_file(folder_.string(), "x"),
               folder_.string() + ": cannot be written (it is a directory)");
  EXPECT_FAULT(write_file("", "x"), "file name: is empty");
}

TEST_F(FaultFile, FailedWriteLeavesTheOldContentAndNothingElse) {
  make("old", "old");
  const auto write = [&] {
    const FullDisk full(4);
    write_file(path("old"), "more than four bytes");
  };
  EXPECT_FAULT(write(), path("old") + ": cannot be written (File too large)");
  EXPECT_EQ(content("old"), "old");
  EXPECT_EQ(entries(), 1);
  EXPECT_FAULT(write_file("/dev/full", "x"),
               "/dev/full: cannot be written (No space left on device)");
}

TEST_F(FaultFile, UnwritableFileAndFolder) {
  make("old", "old");
  const auto denied = [&](const std::string& name) {
    return path(name) + ": cannot be written (permission denied)";
  };
  fs::permissions(path("old"), fs::perms::owner_read);
  fs::permissions(folder_, fs::perms::all);
  {
    const AsNobody nobody;
    EXPECT_FAULT(write_file(path("old"), "new"), denied("old"));
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  {
    const AsNobody nobody;
    EXPECT_FAULT(write_file(path("new"), "new"), denied("new"));
  }
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(content("old"), "old");
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace towtank
