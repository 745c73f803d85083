// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/one_input.h"
#include "validate/case_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    static_cast<void>(parse_cases(text, "fuzz.jsonl"));
  });
}
