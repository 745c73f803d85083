// SPDX-License-Identifier: Apache-2.0
/// nccl-tests and all_reduce_bench output, told by their text; a table needs a mapping.
#include "profiler/import/import_profile.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    ImportOptions options;
    options.ranks = 8;
    static_cast<void>(import_profile({{"fuzz.txt", text}}, "", options));
  });
}
