// SPDX-License-Identifier: Apache-2.0
#include "validate/run/model_shape.h"

#include <gmock/gmock.h>

#include "model/graph/hf_import.h"

namespace towtank {
namespace model_shape_test {

ModelShape shape_of(const std::string& model, Faults& faults) {
  const std::string path =
      std::string(TOWTANK_SOURCE_DIR) + "/examples/models/" + model + "/config.json";
  return model_shape(import_model(JsonFile::load(path), 512), model, faults);
}

// The shape's own sum of parameters is compared with the graph's inside model_shape().
TEST(UnitModelShape, BundledDecoders) {
  for (const char* model : {"gpt2", "llama-2-7b", "llama-3-8b", "llama-3.1-70b", "mistral-7b",
                            "qwen2-7b", "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b"}) {
    Faults faults;
    const ModelShape shape = shape_of(model, faults);
    EXPECT_TRUE(faults.empty()) << model << ": "
                                << (faults.empty() ? "" : to_text(faults.all()[0]));
    EXPECT_GT(shape.blocks.size(), 10U);
  }
  Faults faults;
  const ModelShape gpt2 = shape_of("gpt2", faults);
  EXPECT_EQ(gpt2.total_parameters(), 124'439'808);  // transformers' own count
  EXPECT_TRUE(gpt2.tied);
  EXPECT_TRUE(gpt2.blocks[0].layer_norm);
  EXPECT_TRUE(gpt2.blocks[0].mlp_bias);
  EXPECT_FALSE(gpt2.blocks[0].gated);
  const ModelShape mixtral = shape_of("mixtral-8x7b", faults);
  EXPECT_EQ(mixtral.blocks[0].experts, 8);
  EXPECT_EQ(mixtral.blocks[0].chosen, 2);
  EXPECT_TRUE(shape_of("qwen3-8b", faults).blocks[0].head_norm);
}

TEST(FaultModelShape, OthersAreRefused) {
  for (const char* model : {"deepseek-v3", "gemma2-9b", "falcon-7b", "bert-base", "gpt-oss-120b",
                            "qwen1.5-moe-a2.7b", "bloom-176b", "t5-base"}) {
    Faults faults;
    static_cast<void>(shape_of(model, faults));
    EXPECT_FALSE(faults.empty()) << model;
  }
}

}  // namespace model_shape_test
}  // namespace towtank
