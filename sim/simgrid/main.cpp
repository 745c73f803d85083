// SPDX-License-Identifier: Apache-2.0
// towtank-sim: reads simulations from standard input and answers on standard output, one after the
// other (sim/detail/wire_format.h). Each runs in a child process, because SimGrid's engine is
// global and its errors abort: what goes wrong is that simulation's answer. Runs no thread.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "sim/simgrid/engine.h"

namespace {

using namespace towtank::detail;

/// What a child hands back: the reply, or the channels that it would have needed.
void run_child(const SimulationRequest& request, const RouteChannels& channels, int descriptor) {
  std::string message;
  try {
    const auto result = run_engine(request, channels);
    if (const auto* needed = std::get_if<RouteChannels>(&result)) {
      const std::string text(reinterpret_cast<const char*>(needed->data()),
                             needed->size() * sizeof(int));
      const std::uint64_t length = text.size() + 1;
      message.assign(reinterpret_cast<const char*>(&length), sizeof length);
      message += "c" + text;
    } else {
      const std::string reply = encode(SimulationReply(std::get<towtank::TaskTimes>(result)));
      const std::uint64_t length = reply.size() - kLengthBytes + 1;
      message.assign(reinterpret_cast<const char*>(&length), sizeof length);
      message += "t" + reply.substr(kLengthBytes);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "towtank-sim: %s\n", error.what());
    _exit(1);
  }
  _exit(write_message(descriptor, message) ? 0 : 1);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("the simulation ended with a signal: ") + strsignal(WTERMSIG(status));
  }
  return "the simulation ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::string reply_to(const SimulationRequest& request) {
  RouteChannels channels = first_channels(request);
  while (true) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return encode(SimulationReply("no pipe could be made"));
    const pid_t child = fork();
    if (child < 0) return encode(SimulationReply("no process could be made"));
    if (child == 0) {
      close(pipe_ends[0]);
      run_child(request, channels, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    std::string message;
    const bool whole = read_message(pipe_ends[0], message) && !message.empty();
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!whole) return encode(SimulationReply(how_it_ended(status)));
    if (message[0] == 't') {
      const std::uint64_t length = message.size() - 1;
      return std::string(reinterpret_cast<const char*>(&length), sizeof length) + message.substr(1);
    }
    std::memcpy(channels.data(), message.data() + 1, channels.size() * sizeof(int));
  }
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  std::string message;
  while (read_message(STDIN_FILENO, message)) {
    std::string reply;
    try {
      reply = reply_to(decode_request(message));
    } catch (const std::exception& error) {
      reply = encode(SimulationReply(std::string(error.what())));
    }
    if (!write_message(STDOUT_FILENO, reply)) return 1;
  }
  return 0;
}
