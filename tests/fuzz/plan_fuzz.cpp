// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "placement/plan_json.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    static_cast<void>(to_json(parse_plan_file(JsonFile::parse(text, "fuzz.json"))));
  });
}
