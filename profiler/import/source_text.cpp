// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/source_text.h"

#include "core/file.h"
#include "core/input_error.h"
#include "core/text.h"

namespace towtank {

std::string base_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string at_line(const std::string& path, long line) {
  return printable(path, 400) + ": line " + std::to_string(line);
}

SourceText read_source(const std::string& path) {
  SourceText out{path == "-" ? "standard input" : path, read_file(path, kMaxTableBytes)};
  if (out.text.starts_with("\x1f\x8b")) {
    throw InputError({printable(path, 400), "is gzip data", "tables are read as text",
                      "Give it as gunzip -c FILE | towtank import -."});
  }
  return out;
}

}  // namespace towtank
