// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "app/run_app.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const char* no_color = std::getenv("NO_COLOR");
  towtank::Terminal terminal;
  terminal.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  terminal.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  terminal.no_color = no_color != nullptr && *no_color != '\0';
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int code = towtank::run_app(arguments, std::cout, std::cerr, terminal);
  std::cout.flush();
  if (!std::cout && code == towtank::kExitOk) {
    std::cerr << "towtank: standard output: cannot be written\n";
    return towtank::kExitInternal;
  }
  return code;
}
