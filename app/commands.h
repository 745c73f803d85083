// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One function a command: arguments in, what is to be printed and written out. A command prints
/// nothing itself, so that nothing has happened when it throws.
#include <string>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/run_app.h"

namespace towtank {

struct Outcome {
  int exit_code = kExitOk;
  std::string out;                    ///< to standard output
  std::vector<std::string> messages;  ///< to standard error, one a line, "towtank: " before each
  std::vector<std::pair<std::string, std::string>>
      files;  ///< path, content; written before out; "-": in its place
};

[[nodiscard]] Outcome run_plan(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_predict(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_platforms(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_model(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_doctor(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_version(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_completion(const Arguments&, const Terminal&);
[[nodiscard]] Outcome run_help(const Arguments&, const Terminal&);

}  // namespace towtank
