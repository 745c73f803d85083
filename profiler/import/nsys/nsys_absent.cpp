// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/absent_reader.h"
#include "profiler/import/nsys/nsys_reader.h"

namespace towtank {

std::unique_ptr<TraceReader> nsys_reader() {
  return std::make_unique<AbsentReader>(
      "Nsight Systems", [](std::string_view head) { return head.starts_with("SQLite format 3"); },
      "libsqlite3-dev");
}

bool reads_nsys() { return false; }

}  // namespace towtank
