// SPDX-License-Identifier: Apache-2.0
#include "validate/run/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "validate/run/recorder.h"

extern char** environ;  // NOLINT: POSIX asks for this declaration

namespace towtank {
namespace {

/// How long ranks may take to end by themselves after one failed: they lose its connections at
/// once.
constexpr double kGrace = 2.0;
constexpr int kPollMilliseconds = 100;

/// A port that nobody listens on now. Another process may take it before rank 0 does; that is then
/// one clear error.
int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (s >= 0 && bind(s, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  if (s >= 0) close(s);
  if (port == 0) throw std::runtime_error("no free port on 127.0.0.1");
  return port;
}

/// The environment with some names set.
class Environment {
 public:
  void set(const std::string& name, const std::string& value) {
    own_.push_back(name + "=" + value);
  }
  /// Valid while this object lives and does not change.
  std::vector<char*> pointers() {
    std::vector<char*> out;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (!is_own(*entry)) out.push_back(*entry);
    }
    for (std::string& entry : own_) out.push_back(entry.data());
    out.push_back(nullptr);
    return out;
  }

 private:
  [[nodiscard]] bool is_own(const char* entry) const {
    return std::any_of(own_.begin(), own_.end(), [&](const std::string& own) {
      const std::size_t name = own.find('=') + 1;
      return std::strncmp(own.c_str(), entry, name) == 0;
    });
  }
  std::vector<std::string> own_;
};

/// One rank: its process, and its standard error line by line.
struct RankProcess {
  pid_t process = -1;
  int descriptor = -1;
  int out = -1;  ///< standard output, of rank 0 only
  std::string unfinished;
  std::vector<std::string> lines, noise;  ///< its own; those of the libraries that it uses
  std::optional<int> status;              ///< of waitpid
  int order = 0;                          ///< in which ranks ended
};

std::string signal_text(int rank, int signal) {
  return "rank " + std::to_string(rank) + " was ended by signal " + std::to_string(signal) + " (" +
         strsignal(signal) + ")";
}

class Job {
 public:
  explicit Job(const LaunchOptions& options) : options_(options) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    kill_all();
    for (RankProcess& rank : ranks_) {
      if (rank.process > 0 && !rank.status) waitpid(rank.process, nullptr, 0);
      for (const int descriptor : {rank.descriptor, rank.out}) {
        if (descriptor >= 0) close(descriptor);
      }
    }
  }

  LaunchResult run() {
    const int port = options_.port > 0 ? options_.port : free_port();
    for (int rank = 0; rank < options_.ranks; ++rank) start(rank, port);
    const double begin = monotonic_seconds();
    std::optional<double> failed_at;
    while (alive() > 0) {
      read_lines();
      reap();
      const double now = monotonic_seconds();
      if (!failed_at && any_failed()) failed_at = now;
      if (options_.interrupted && options_.interrupted()) return stopped("was interrupted");
      if (options_.limit.value > 0 && now - begin > options_.limit.value) {
        return stopped("did not end within its limit");
      }
      if (failed_at && now - *failed_at > kGrace) {
        kill_all();
        failed_at = now + 1e9;  // once
      }
    }
    read_lines();
    LaunchResult out = result();
    out.out = std::move(out_);
    return out;
  }

 private:
  void start(int rank, int port) {
    ranks_.emplace_back();
    RankProcess& own = ranks_.back();
    const int error_end = open_pipe(own.descriptor);
    const int out_end = rank == 0 ? open_pipe(own.out) : -1;
    Environment environment;
    environment.set("RANK", std::to_string(rank));
    environment.set("LOCAL_RANK", std::to_string(rank));
    environment.set("WORLD_SIZE", std::to_string(options_.ranks));
    environment.set("MASTER_ADDR", "127.0.0.1");
    environment.set("MASTER_PORT", std::to_string(port));
    environment.set("OPENBLAS_NUM_THREADS", "1");
    environment.set("OMP_NUM_THREADS", "1");
    environment.set("TOWTANK_PARENT", std::to_string(getpid()));
    if (options_.pin) environment.set("TOWTANK_CORE", std::to_string(core_of(rank)));
    std::vector<std::string> words{options_.program};
    words.insert(words.end(), options_.words.begin(), options_.words.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, error_end, STDERR_FILENO);
    if (out_end >= 0) {
      posix_spawn_file_actions_adddup2(&actions, out_end, STDOUT_FILENO);
    } else {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    const int error = posix_spawn(&own.process, options_.program.c_str(), &actions, nullptr,
                                  arguments.data(), environment.pointers().data());
    posix_spawn_file_actions_destroy(&actions);
    close(error_end);
    if (out_end >= 0) close(out_end);
    if (error != 0) {
      own.process = -1;
      throw std::runtime_error(options_.program + " could not be started: " + strerror(error));
    }
  }

  /// Sets the reading end, returns the writing one.
  static int open_pipe(int& reading) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for what a rank says");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    reading = ends[0];
    return ends[1];
  }

  static int core_of(int rank) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
      for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(static_cast<unsigned>(core), &allowed)) cores.push_back(core);
      }
    }
    if (cores.empty()) return 0;
    return cores[static_cast<std::size_t>(rank) % cores.size()];
  }

  /// Waits a little for what ranks say.
  void read_lines() {
    std::vector<pollfd> waiting;
    for (const RankProcess& rank : ranks_) {
      waiting.push_back({rank.descriptor, POLLIN, 0});
      if (rank.out >= 0) waiting.push_back({rank.out, POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), kPollMilliseconds);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      RankProcess& rank = ranks_[r];
      if (take(rank.descriptor, rank.unfinished) && !rank.unfinished.empty()) {
        rank.unfinished += '\n';
      }
      take(rank.out, out_);
      split_lines(static_cast<int>(r), rank);
    }
  }

  /// Appends what there is to read; true at the end, where the descriptor is closed.
  static bool take(int& descriptor, std::string& text) {
    std::array<char, 65536> bytes{};
    while (descriptor >= 0) {
      const ssize_t n = read(descriptor, bytes.data(), bytes.size());
      if (n < 0) return false;
      if (n == 0) {
        close(descriptor);
        descriptor = -1;
        return true;
      }
      text.append(bytes.data(), static_cast<std::size_t>(n));
    }
    return false;
  }

  void split_lines(int number, RankProcess& rank) const {
    for (std::size_t end = 0; (end = rank.unfinished.find('\n')) != std::string::npos;) {
      std::string line = rank.unfinished.substr(0, end);
      rank.unfinished.erase(0, end + 1);
      constexpr std::string_view kProgram = "towtank-runtime: ";
      const bool own = line.starts_with(kProgram);
      if (own) line.erase(0, kProgram.size());
      if (options_.on_line) options_.on_line(number, line);
      (own ? rank.lines : rank.noise).push_back(std::move(line));
    }
  }

  void reap() {
    for (RankProcess& rank : ranks_) {
      int status = 0;
      if (rank.status || rank.process <= 0) continue;
      if (waitpid(rank.process, &status, WNOHANG) == rank.process) {
        rank.status = status;
        rank.order = ++ended_;
      }
    }
  }

  [[nodiscard]] int alive() const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) {
      return rank.process > 0 && !rank.status;
    }));
  }

  [[nodiscard]] bool any_failed() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const RankProcess& rank) { return rank.status && *rank.status != 0; });
  }

  void kill_all() {
    for (RankProcess& rank : ranks_) {
      if (rank.process <= 0 || rank.status) continue;
      killed_ = true;
      kill(rank.process, SIGKILL);
    }
  }

  LaunchResult stopped(const std::string& why) {
    kill_all();  // and the destructor waits for them
    return {1, -1, {"the run " + why + "; its ranks were ended"}, ""};
  }

  /// Which rank is at fault: by kind of end, then by the order in which they ended.
  [[nodiscard]] LaunchResult result() const {
    const auto weight = [this](const RankProcess& rank) {
      const int status = *rank.status;
      if (status == 0) return 4;
      if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL && killed_ ? 3 : 0;
      return WEXITSTATUS(status) == kLostPeerExit ? 2 : 1;
    };
    const auto worst = std::min_element(
        ranks_.begin(), ranks_.end(), [&](const RankProcess& a, const RankProcess& b) {
          return std::pair(weight(a), a.order) < std::pair(weight(b), b.order);
        });
    LaunchResult out;
    const int status = *worst->status;
    if (status == 0) return out;
    out.rank = static_cast<int>(worst - ranks_.begin());
    out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (WIFSIGNALED(status)) {
      out.messages.push_back(signal_text(out.rank, WTERMSIG(status)));
    } else if (worst->lines.empty() && !worst->noise.empty()) {
      out.messages = worst->noise;
    } else if (worst->lines.empty()) {
      out.messages.push_back("rank " + std::to_string(out.rank) + " ended with exit code " +
                             std::to_string(out.exit_code));
    } else {
      out.messages = worst->lines;
    }
    if (out.exit_code == kLostPeerExit) out.exit_code = 1;
    return out;
  }

  const LaunchOptions& options_;
  std::vector<RankProcess> ranks_;
  std::string out_;
  int ended_ = 0;
  bool killed_ = false;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) { return Job(options).run(); }

std::string find_runtime() {
  // Beside sim/simulate.cpp's the one place of the libraries that reads the environment: where the
  // other program is.
  if (const char* stated = std::getenv("TOWTANK_RUNTIME"); stated != nullptr && *stated != '\0') {
    return stated;
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const auto& folder : {self.parent_path(), self.parent_path().parent_path()}) {
    if (access((folder / "towtank-runtime").c_str(), X_OK) == 0) return folder / "towtank-runtime";
  }
  return "";
}

}  // namespace towtank
