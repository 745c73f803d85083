// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "core/unit_text.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    static_cast<void>(parse_seconds(text));
    static_cast<void>(parse_bytes(text));
    static_cast<void>(parse_bytes_per_second(text));
    const JsonFile file = JsonFile::parse(text, "fuzz.json");
    const JsonReader root = file.root();
    if (root.is_object()) {
      for (const std::string& key : root.keys()) {
        static_cast<void>(root.at(key).as_seconds());
        static_cast<void>(root.at(key).as_integer({0, 10}));
      }
      root.no_other_keys();
    }
    file.finish();
  });
}
