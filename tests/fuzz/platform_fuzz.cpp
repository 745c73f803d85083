// SPDX-License-Identifier: Apache-2.0
#include "platforms/allocate.h"
#include "platforms/platform_json.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    const Platform platform = parse_platform(JsonFile::parse(text, "fuzz.json"));
    for (const int devices : {1, 8, 64}) {
      const auto allocated = allocate(platform, devices);
      if (const auto* allocation = std::get_if<Allocation>(&allocated)) {
        static_cast<void>(network_view(platform, *allocation));
      }
    }
  });
}
