// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/input_error.h"
#include "validate/runtime/commands.h"

namespace towtank {
namespace {

constexpr int kExitInternal = 1;
constexpr int kExitBadInput = 2;

constexpr std::array kCommands{
    RuntimeCommand{"run",
                   "PLAN [--steps N] [--warm-up N] [--seed N] [--learning-rate X] [--timeout S] "
                   "[--fp64] [--record FILE] [--gradients STEM]",
                   "this process's rank of a plan; RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT say "
                   "which (torchrun, srun)",
                   run_run_command},
    RuntimeCommand{"version", "", "what this program is linked with", run_version_command},
};

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void write_notice(std::string_view line) {
  const std::string text = "towtank-runtime: " + std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);  // one write a line: ranks share the stream
}

const char* environment(const char* name) { return std::getenv(name); }

std::string help() {
  std::string text = "usage: towtank-runtime COMMAND ...\n";
  for (const RuntimeCommand& c : kCommands) {
    text += "  " + std::string(c.name) + " " + std::string(c.takes) + "\n      " +
            std::string(c.says) + "\n";
  }
  return text;
}

int run(const std::vector<std::string>& words) {
  if (words.empty() || words.front() == "--help" || words.front() == "help") {
    write_out(help());
    return words.empty() ? kExitBadInput : 0;
  }
  const RuntimeWorld world{write_out, write_notice, environment};
  std::string names;
  for (const RuntimeCommand& c : kCommands) {
    if (c.name == words.front()) return c.function({words.begin() + 1, words.end()}, world);
    names += " " + std::string(c.name);
  }
  write_notice(words.front() + ": no such command (there are:" + names + ")");
  return kExitBadInput;
}

}  // namespace
}  // namespace towtank

int main(int argc, char** argv) {
  using namespace towtank;
  try {
    return run({argv + 1, argv + argc});
  } catch (const InputError& error) {
    for (const Fault& fault : error.faults()) write_notice(to_text(fault));
    return kExitBadInput;
  } catch (const std::exception& error) {
    write_notice(error.what());
    return kExitInternal;
  }
}
