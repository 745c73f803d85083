// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "core/contracts.h"
#include "sim/detail/wire_format.h"

extern char** environ;  // NOLINT: POSIX asks for this declaration

namespace towtank {
namespace {

using detail::SimulationReply;

constexpr std::string_view kNoWorker =
    "towtank-sim, the program that simulates, is not here: install libsimgrid-dev and build again, "
    "or set TOWTANK_SIM to its path";

/// A running towtank-sim. A socket pair rather than pipes: writing to a dead worker is an error
/// then, not a signal.
class Worker {
 public:
  explicit Worker(const std::string& path) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string name = path;
    char* arguments[] = {name.data(), nullptr};
    if (posix_spawn(&process_, path.c_str(), &actions, nullptr, arguments, environ) != 0) {
      process_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    descriptor_ = ends[0];
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (descriptor_ >= 0) close(descriptor_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  [[nodiscard]] SimulationResult run(const SimulationJob& job, bool contention) {
    EXPECTS(job.tasks != nullptr && job.network != nullptr);
    std::string message = detail::encode(detail::request_of(*job.tasks, *job.network, contention));
    if (process_ <= 0) return SimulationFault{"towtank-sim could not be started"};
    if (!send_all(message) || !detail::read_message(descriptor_, message)) {
      return SimulationFault{"towtank-sim ended before it answered"};
    }
    try {
      SimulationReply reply = detail::decode_reply(message);
      if (auto* times = std::get_if<TaskTimes>(&reply)) return std::move(*times);
      return SimulationFault{std::get<std::string>(reply)};
    } catch (const std::runtime_error& error) {
      return SimulationFault{std::string("the answer of towtank-sim: ") + error.what()};
    }
  }

 private:
  [[nodiscard]] bool send_all(const std::string& message) const {
    std::size_t done = 0;
    while (done < message.size()) {
      const ssize_t n =
          ::send(descriptor_, message.data() + done, message.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

  int descriptor_ = -1;
  pid_t process_ = -1;
};

}  // namespace

std::string find_worker() {
  // The one place of this library that reads the environment: where the other program is.
  if (const char* stated = std::getenv("TOWTANK_SIM"); stated != nullptr && *stated != '\0') {
    return stated;
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const auto& folder : {self.parent_path(), self.parent_path().parent_path()}) {
    if (access((folder / "towtank-sim").c_str(), X_OK) == 0) return folder / "towtank-sim";
  }
  return "";
}

std::optional<SimulationFault> missing_worker(const SimulateOptions& options) {
  const std::string path = options.worker.empty() ? find_worker() : options.worker;
  if (access(path.c_str(), X_OK) == 0) return std::nullopt;
  return SimulationFault{std::string(kNoWorker)};
}

SimulationResult simulate(const TaskGraph& tasks, const Network& network,
                          const SimulateOptions& options) {
  const SimulationJob job{&tasks, &network};
  return simulate_all(std::span(&job, 1), options).front();
}

std::vector<SimulationResult> simulate_all(std::span<const SimulationJob> jobs,
                                           const SimulateOptions& options) {
  EXPECTS(options.parallel >= 1);
  const std::string path = options.worker.empty() ? find_worker() : options.worker;
  std::vector<SimulationResult> results(jobs.size(), SimulationFault{std::string(kNoWorker)});
  if (jobs.empty() || access(path.c_str(), X_OK) != 0) return results;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    auto worker = std::make_unique<Worker>(path);
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      results[i] = worker->run(jobs[i], options.contention);
      if (std::holds_alternative<SimulationFault>(results[i])) {
        worker = std::make_unique<Worker>(path);  // it may be gone
      }
    }
  };
  const auto workers =
      std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(options.parallel));
  if (workers == 1) {
    work();
    return results;
  }
  std::vector<std::jthread> threads;
  for (std::size_t w = 0; w < workers; ++w) threads.emplace_back(work);
  threads.clear();  // joins
  return results;
}

}  // namespace towtank
