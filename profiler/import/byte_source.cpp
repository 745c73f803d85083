// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/input_error.h"
#include "core/text.h"

namespace towtank {
namespace {

constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kMostPeek = 64 << 10;
constexpr std::size_t kMaxNested = 1ULL << 30;
constexpr std::string_view kGzip = "\x1f\x8b";

// The layout of a tar header: POSIX.1-1988 (ustar).
constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarNameSize = 100;
constexpr std::size_t kTarSizeAt = 124, kTarSizeSize = 12;
constexpr std::size_t kTarTypeAt = 156;
constexpr std::size_t kTarMagicAt = 257;
constexpr std::size_t kTarPrefixAt = 345, kTarPrefixSize = 155;
constexpr std::string_view kTarMagic = "ustar";

[[noreturn]] void cannot_read(const std::string& name, int error) {
  throw InputError({name, error == ENOENT ? "no such file" : "cannot be read",
                    error == ENOENT ? "" : std::generic_category().message(error), ""});
}

std::string field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view text = header.substr(at, size);
  return std::string(text.substr(0, text.find('\0')));
}

std::optional<std::uint64_t> octal(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\0') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

struct ByteSource::State {
  std::string file;  ///< as messages name it
  std::string name;
  std::string path;
  int descriptor = -1;
  std::string text;  ///< in place of a file
  std::size_t text_at = 0;
  bool gzip = false, inflate_ended = false, input_ended = false;
  bool cut = false;
  z_stream zip{};
  std::vector<char> input = std::vector<char>(kChunk);
  // Inflated bytes that are not taken yet.
  std::vector<char> ahead;
  std::size_t ahead_at = 0;
  bool archive = false;
  bool inner = false;  ///< in an archive: not looked into again, since archives can hold themselves
  std::uint64_t member_left = 0, padding = 0;
  std::unique_ptr<ByteSource> nested;  ///< of a compressed member

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (gzip) inflateEnd(&zip);
    if (descriptor > STDERR_FILENO) ::close(descriptor);
  }

  std::size_t raw(char* to, std::size_t size) {
    if (descriptor < 0) {
      const std::size_t n = std::min(size, text.size() - text_at);
      std::memcpy(to, text.data() + text_at, n);
      text_at += n;
      return n;
    }
    while (true) {
      const ssize_t n = ::read(descriptor, to, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) cannot_read(file, errno);
    }
  }

  std::size_t inflated(char* to, std::size_t size) {
    zip.next_out = reinterpret_cast<Bytef*>(to);
    zip.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
    const uInt room = zip.avail_out;
    while (zip.avail_out == room && !cut) {
      if (zip.avail_in == 0 && !input_ended) {
        zip.next_in = reinterpret_cast<Bytef*>(input.data());
        zip.avail_in = static_cast<uInt>(raw(input.data(), input.size()));
        input_ended = zip.avail_in == 0;
      }
      if (inflate_ended) {
        if (zip.avail_in == 0) break;
        // Another gzip member; zero bytes after the last one are padding.
        if (*zip.next_in == 0) {
          zip.avail_in = 0;
          continue;
        }
        inflateReset(&zip);
        inflate_ended = false;
      }
      const int result = inflate(&zip, Z_NO_FLUSH);
      inflate_ended = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END && (result != Z_BUF_ERROR || input_ended)) {
        cut = true;
      }
    }
    return room - zip.avail_out;
  }

  /// Of the file as a whole, inflated.
  std::size_t flat(char* to, std::size_t size) {
    if (size == 0) return 0;
    if (ahead_at < ahead.size()) {
      const std::size_t n = std::min(size, ahead.size() - ahead_at);
      std::memcpy(to, ahead.data() + ahead_at, n);
      ahead_at += n;
      return n;
    }
    return gzip ? inflated(to, size) : raw(to, size);
  }

  void look_ahead(std::size_t size) {
    ahead.erase(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(ahead_at));
    ahead_at = 0;
    while (ahead.size() < size) {
      const std::size_t had = ahead.size();
      ahead.resize(size);
      const std::size_t n =
          gzip ? inflated(ahead.data() + had, size - had) : raw(ahead.data() + had, size - had);
      ahead.resize(had + n);
      if (n == 0) break;
    }
  }

  bool exactly(char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const std::size_t n = flat(to + done, size - done);
      if (n == 0) return false;
      done += n;
    }
    return true;
  }

  bool skip(std::uint64_t size) {
    std::array<char, 4096> waste{};
    while (size > 0) {
      const std::size_t n =
          flat(waste.data(), static_cast<std::size_t>(std::min<std::uint64_t>(size, waste.size())));
      if (n == 0) return false;
      size -= n;
    }
    return true;
  }

  std::size_t take(char* to, std::size_t size) {
    if (size == 0) return 0;
    if (nested) return nested->read(to, size);
    if (!archive) return flat(to, size);
    const std::size_t n =
        flat(to, static_cast<std::size_t>(std::min<std::uint64_t>(size, member_left)));
    if (n == 0 && member_left > 0 && size > 0) cut = true;
    member_left -= n;
    return n;
  }

  /// Finds out what the bytes are; before the first read.
  void start() {
    std::array<char, 2> magic{};
    std::size_t n = 0;
    while (n < magic.size()) {
      const std::size_t more = raw(magic.data() + n, magic.size() - n);
      if (more == 0) break;
      n += more;
    }
    if (n == 0) throw InputError({file, "is empty", "", ""});
    if (std::string_view(magic.data(), n) == kGzip) {
      gzip = inflateInit2(&zip, 15 + 16) == Z_OK;  // 15: the largest window; 16: gzip framing
      if (!gzip) throw InputError({file, "cannot be inflated", "zlib would not start", ""});
      std::memcpy(input.data(), magic.data(), n);
      zip.next_in = reinterpret_cast<Bytef*>(input.data());
      zip.avail_in = static_cast<uInt>(n);
      path.clear();
    } else {
      ahead.assign(magic.data(), magic.data() + n);
    }
    look_ahead(kTarBlock);
    const std::string_view head(ahead.data(), ahead.size());
    archive = !inner && head.size() == kTarBlock && head.substr(kTarMagicAt).starts_with(kTarMagic);
  }

  bool next() {
    nested.reset();
    if (!archive || !skip(member_left + padding)) return false;
    member_left = padding = 0;
    std::array<char, kTarBlock> block{};
    std::string long_name;
    while (exactly(block.data(), block.size())) {
      const std::string_view header(block.data(), block.size());
      if (header[0] == '\0') return false;
      const auto size = octal(header.substr(kTarSizeAt, kTarSizeSize));
      if (!size || !header.substr(kTarMagicAt).starts_with(kTarMagic)) break;
      const std::uint64_t filled = (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
      const char type = header[kTarTypeAt];
      if (type == 'L' && *size > 0 && *size < kMostPeek) {  // GNU: the name of the next member
        std::string block_text(filled, '\0');
        if (!exactly(block_text.data(), filled)) break;
        long_name = field(block_text, 0, *size);
        continue;
      }
      if ((type != '0' && type != '\0') || *size == 0) {
        if (!skip(filled)) break;
        continue;
      }
      open_member(header, long_name, *size, filled - *size);
      return true;
    }
    cut = true;
    return false;
  }

  void open_member(std::string_view header, const std::string& long_name, std::uint64_t size,
                   std::uint64_t pad) {
    const std::string prefix = field(header, kTarPrefixAt, kTarPrefixSize);
    std::string member = field(header, 0, kTarNameSize);
    if (!prefix.empty()) member.insert(0, prefix + "/");
    name = file + ": " + printable(long_name.empty() ? member : long_name, 400);
    member_left = size;
    padding = pad;
    look_ahead(kGzip.size());
    if (size < kMaxNested && std::string_view(ahead.data(), ahead.size()).starts_with(kGzip)) {
      std::string whole(size, '\0');
      if (!exactly(whole.data(), whole.size())) cut = true;
      member_left = 0;
      auto state = std::make_unique<State>();
      state->file = state->name = name;
      state->text = std::move(whole);
      state->inner = true;
      state->start();
      nested.reset(new ByteSource(std::move(state)));
    }
  }
};

ByteSource::ByteSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

ByteSource ByteSource::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->file = state->name = path == "-" ? "standard input" : printable(path, 400);
  if (path == "-") {
    state->descriptor = STDIN_FILENO;
  } else {
    struct stat info {};
    if (path.find('\0') != std::string::npos || ::stat(path.c_str(), &info) != 0) {
      cannot_read(state->file, path.find('\0') != std::string::npos ? ENOENT : errno);
    }
    if (S_ISDIR(info.st_mode)) {
      throw InputError({state->file, "is a directory, not a file", "", ""});
    }
    state->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (state->descriptor < 0) cannot_read(state->file, errno);
    if (S_ISREG(info.st_mode)) state->path = path;
  }
  state->start();
  ByteSource out(std::move(state));
  if (out.state_->archive && !out.next_member()) {
    throw InputError({out.name(), "is an archive without a file", "", ""});
  }
  return out;
}

ByteSource ByteSource::of_text(std::string name, std::string text) {
  auto state = std::make_unique<State>();
  state->file = state->name = std::move(name);
  state->text = std::move(text);
  state->start();
  ByteSource out(std::move(state));
  if (out.state_->archive && !out.next_member()) {
    throw InputError({out.name(), "is an archive without a file", "", ""});
  }
  return out;
}

const std::string& ByteSource::name() const { return state_->name; }
const std::string& ByteSource::plain_path() const {
  static const std::string none;
  return state_->archive ? none : state_->path;
}
bool ByteSource::cut_off() const {
  return state_->cut || (state_->nested && state_->nested->cut_off());
}
bool ByteSource::next_member() { return state_->next(); }
std::size_t ByteSource::read(char* to, std::size_t size) { return state_->take(to, size); }

std::string_view ByteSource::peek(std::size_t size) {
  if (state_->nested) return state_->nested->peek(size);
  size = std::min(size, kMostPeek);
  if (state_->archive) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, state_->member_left));
  }
  state_->look_ahead(size);
  return {state_->ahead.data(), std::min(size, state_->ahead.size())};
}

std::string read_rest(ByteSource& source, std::size_t limit) {
  std::string out;
  std::vector<char> chunk(kChunk);
  while (const std::size_t n = source.read(chunk.data(), chunk.size())) {
    if (out.size() + n > limit) {
      throw InputError(
          {source.name(), "is larger than the limit of this format", "it is read as a whole", ""});
    }
    out.append(chunk.data(), n);
  }
  return out;
}

}  // namespace towtank
