// SPDX-License-Identifier: Apache-2.0
/// Hugging Face configs and towtank-graph files: import_model tells them apart by content.
#include "model/graph/hf_import.h"
#include "model/graph/shard.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    const ModelGraph graph = import_model(JsonFile::parse(text, "fuzz.json"), 1024);
    static_cast<void>(graph.total_parameters());
    const FrameworkRules& rules = rules_of(Framework::kMegatron);
    for (const LayerKind& kind : graph.kinds) {
      ShardDegrees degrees;
      degrees.tensor = 2;
      if (check_shard(kind, degrees, rules).empty()) {
        static_cast<void>(shard(kind, degrees, rules, DType::kBf16, 1.0));
      }
    }
  });
}
