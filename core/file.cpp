// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "core/contracts.h"
#include "core/input_error.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

constexpr std::size_t kMaxNameInText = 400;

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : printable(path, kMaxNameInText);
}

std::string system_text(int error) { return std::generic_category().message(error); }

/// Owns a descriptor, so that a fault closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  /// Some file systems report a failed write at close only.
  [[nodiscard]] bool close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void refuse_read(const std::string& path, int error) {
  const std::string name = shown_name(path);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      throw InputError({name, "no such file", "", ""});
    case EACCES:
    case EPERM:
      throw InputError({name, "permission denied", "the file must be readable", ""});
    case EISDIR:
      throw InputError({name, "is a directory, not a file", "", ""});
    default:
      throw InputError({name, "cannot be read", system_text(error), ""});
  }
}

[[noreturn]] void refuse_size(const std::string& path, const std::string& size, Bytes limit) {
  throw InputError({shown_name(path), "is " + size + "larger than the limit of " + to_text(limit),
                    limit <= kMaxConfigBytes ? "configuration files are small" : "", ""});
}

bool is_standard_stream(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/");
}

int open_for_reading(const std::string& path, Bytes limit) {
  if (path.empty()) throw InputError({"file name", "is empty", "", ""});
  if (path.find('\0') != std::string::npos) refuse_read(path, ENOENT);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) refuse_read(path, errno);
  if (S_ISDIR(info.st_mode)) refuse_read(path, EISDIR);
  const bool known = S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode);
  if (!known && !is_standard_stream(path)) {
    throw InputError({shown_name(path), "is a device or socket, not a file", "", ""});
  }
  if (S_ISREG(info.st_mode) && info.st_size > limit.value) {
    refuse_size(path, to_text(Bytes{info.st_size}) + ", ", limit);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) refuse_read(path, errno);
  return fd;
}

void write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category());
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

InputError write_fault(const std::string& path, int error) {
  const std::string name = shown_name(path);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return InputError(
          {name, "cannot be written", "its folder does not exist", "Make the folder first."});
    case EACCES:
    case EPERM:
      return InputError({name, "cannot be written", "permission denied", ""});
    case EISDIR:
      return InputError({name, "cannot be written", "it is a directory", ""});
    default:
      return InputError({name, "cannot be written", system_text(error), ""});
  }
}

/// A name beside the target that no other process uses, opened anew.
int open_temporary(const std::string& target, std::string& temporary) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    temporary = target + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Through the links of a name to the file it means, so that a rename does not replace a link.
std::string link_target(std::string path) {
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::string target(4096, '\0');
    const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
    if (n < 0) return path;
    target.resize(static_cast<std::size_t>(n));
    const std::size_t slash = path.rfind('/');
    if (target.starts_with('/') || slash == std::string::npos) {
      path = target;
    } else {
      path.replace(slash + 1, std::string::npos, target);
    }
  }
  return path;
}

}  // namespace

std::string read_file(const std::string& path, Bytes limit) {
  EXPECTS(limit.value > 0);
  const Descriptor file(path == "-" ? STDIN_FILENO : open_for_reading(path, limit));
  const auto max = static_cast<std::size_t>(limit.value);
  std::string content;
  // st_size is no guide (pipes, /proc): read until the end, by doubling, one byte past the limit.
  std::size_t used = 0;
  while (true) {
    content.resize(std::min(max + 1, std::max<std::size_t>(2 * used, 64 << 10)));
    const ssize_t n = ::read(file.get(), content.data() + used, content.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_read(path, errno);
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (used > max) refuse_size(path, "", limit);
  }
  content.resize(used);
  if (content.empty()) throw InputError({shown_name(path), "is empty", "", ""});
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  if (path.empty()) throw InputError({"file name", "is empty", "", ""});
  if (path.find('\0') != std::string::npos) throw write_fault(path, EINVAL);
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) throw write_fault(path, EISDIR);
  // Never rename over a device such as /dev/null or a pipe: write into it.
  const bool in_place = exists && !S_ISREG(info.st_mode);
  // A rename would replace a file that its owner made read-only.
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    throw write_fault(path, errno);
  const std::string target = in_place ? path : link_target(path);
  std::string temporary;
  Descriptor file(in_place ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)
                           : open_temporary(target, temporary));
  if (file.get() < 0) throw write_fault(path, errno);
  try {
    write_all(file.get(), content);
    if (exists && !in_place && ::fchmod(file.get(), info.st_mode & 07777U) != 0) {
      throw std::system_error(errno, std::generic_category());
    }
    const bool written =
        file.close() && (in_place || ::rename(temporary.c_str(), target.c_str()) == 0);
    if (!written) throw std::system_error(errno, std::generic_category());
  } catch (const std::system_error& error) {
    if (!in_place) ::unlink(temporary.c_str());
    throw write_fault(path, error.code().value());
  }
}

}  // namespace towtank
