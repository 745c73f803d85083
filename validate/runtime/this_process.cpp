// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/this_process.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include <array>

namespace towtank {

void use_one_thread() {
  at::set_num_threads(1);
  // OPENBLAS_NUM_THREADS is read when the library is loaded, before main.
  using SetThreads = void (*)(int);
  if (void* function = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<SetThreads>(function)(1);
  }
}

void end_with_parent(int parent) {
  if (parent <= 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before the kernel was asked.
  if (getppid() != parent) raise(SIGKILL);
}

void stay_on_core(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(core), &one);
  sched_setaffinity(0, sizeof one, &one);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

bool is_lost_peer(std::string_view text) {
  for (const std::string_view sign :
       {"Connection closed by peer", "Connection reset by peer", "Broken pipe",
        "Connection refused", "lost rank 0", "Socket Timeout", "Application timeout"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace towtank
