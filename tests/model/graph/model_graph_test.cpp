// SPDX-License-Identifier: Apache-2.0
// Work and cuts of whole graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/graph/graph_testing.h"
#include "tests/support/near.h"

namespace towtank::model_graph_test {
namespace {

using graph_testing::gpt_config;
using graph_testing::import_example;
using graph_testing::import_text;
using ::testing::Each;
using testing::kSameArithmetic;
using ::testing::SizeIs;

// A step of a GPT: 72 B s L h^2 (1 + s/(6h) + V/(12 h L)), forward and twice that backward,
// attention counted as 4 s q.
TEST(UnitWork, GptFollowsTheClosedForm) {
  const double h = 12288, layers = 96, s = 2048, v = 51200;
  const ForwardWork work = forward_work(import_example("gpt3-175b"));
  const double counted = 3 * (work.matmul + work.attention_counted).value;
  EXPECT_CLOSE(counted, 72 * s * layers * h * h * (1 + s / (6 * h) + v / (12 * h * layers)),
               kSameArithmetic);
  EXPECT_EQ(work.attention_run.value, work.attention_counted.value / 2);
}

TEST(UnitWork, Llama3PerToken) {
  const double s = 8192, h = 4096, q = 4096, u = 1024, f = 14336, v = 128256, layers = 32;
  const ForwardWork work = forward_work(import_example("llama-3-8b", 8192));
  EXPECT_EQ(work.matmul.value,
            s * (layers * (2 * h * (q + 2 * u) + 2 * q * h + 6 * h * f) + 2 * h * v));
  EXPECT_EQ(work.attention_run.value, s * layers * 2 * s * q);
}

TEST(UnitWork, ExpertsCountTheChosenOnes) {
  const double s = 4096, h = 4096, f = 14336, v = 32000, layers = 32;
  const ForwardWork work = forward_work(import_example("mixtral-8x7b", 4096));
  EXPECT_EQ(work.matmul.value,
            s * (layers * (2 * h * 6144 + 2 * h * h + 2 * 6 * h * f + 2 * h * 8) + 2 * h * v));
}

TEST(UnitWork, LatentAttentionAndFurtherTokens) {
  const double s = 4096, h = 7168, a = 128, v = 129280;
  const double latent = h * 1536 + 1536 * a * 192 + h * 576 + 512 * a * 256 + a * 128 * h;
  const double moe = 3 * h * 2048 * (8 + 1) + h * 256;
  const double dense = 3 * h * 18432;
  const double mtp = latent + moe + 2 * h * h + h * v;
  const ForwardWork work = forward_work(import_example("deepseek-v3", 4096));
  EXPECT_CLOSE(work.matmul.value, 2 * s * (61 * latent + 58 * moe + 3 * dense + h * v + mtp),
               kSameArithmetic);
  EXPECT_EQ(work.attention_run.value, s * s * a * (192 + 128) * 62);
}

// Head over layer, forward: formulas of the ratio 2hV to a layer's work.
TEST(UnitWork, HeadWeighsAsManyLayersAsPublished) {
  const auto ratio = [](const char* name, int s) {
    const ModelGraph graph = import_example(name, s);
    const auto run = [](const LayerKind& kind) {
      const ForwardWork w = forward_work(kind);
      return (w.matmul + w.attention_run).value;
    };
    return run(graph_testing::kind_of(graph, static_cast<int>(graph.layers.size()) - 1)) /
           run(graph_testing::block_of(graph));
  };
  EXPECT_NEAR(ratio("llama-3-8b", 8192), 2.1, 0.05);
  EXPECT_NEAR(ratio("llama-3.1-70b", 8192), 1.1, 0.05);
  EXPECT_NEAR(ratio("llama-3.1-405b", 8192), 0.6, 0.05);
  EXPECT_NEAR(ratio("qwen3-8b", 4096), 3.0, 0.05);
}

TEST(UnitWork, EncodersAreNotHalved) {
  const ForwardWork work = forward_work(import_example("bert-large", 512));
  EXPECT_EQ(work.attention_run.value, work.attention_counted.value);
  EXPECT_EQ(work.attention_run.value, 24 * 4.0 * 512 * 512 * 1024);
}

// --- cuts ----------------------------------------------------------------------------------------

TEST(UnitCuts, ChainPassesOneTensor) {
  const ModelGraph graph = import_example("llama-3-8b", 8192);
  const std::vector<double> cuts = graph.cut_elements();
  EXPECT_THAT(cuts, SizeIs(graph.free_layers()));
  EXPECT_THAT(cuts, Each(8192.0 * 4096));
}

TEST(UnitCuts, FurtherTokenModuleReadsTheLastBlock) {
  const ModelGraph graph = import_example("deepseek-v3", 4096);
  EXPECT_THAT(graph.cut_elements(), Each(4096.0 * 7168));
  // Embedding, 61 blocks, head, module.
  ASSERT_EQ(graph.layers.size(), 64U);
  EXPECT_TRUE(graph.layers[LayerId{63}].beyond_total);
  EXPECT_EQ(graph.layers[LayerId{63}].pin, Pin::kLast);
  EXPECT_EQ(graph.edges.back(), (Edge{LayerId{61}, LayerId{63}, 4096.0 * 7168}));
}

TEST(UnitCuts, DecoderOfT5CarriesTheEncodersOutput) {
  const ModelGraph graph = import_example("t5-base", 512);
  const double one = 512.0 * 768;
  const std::vector<double> cuts = graph.cut_elements();
  ASSERT_EQ(graph.free_layers(), 24);
  // In front of the encoder: what both stacks read, one table output. Inside it, the decoder's
  // input travels along; before the second decoder layer it is used up, the encoder's output not.
  EXPECT_EQ(cuts[0], one);
  EXPECT_EQ(cuts[1], 2 * one);
  EXPECT_EQ(cuts[12], 2 * one);
  EXPECT_EQ(cuts[13], 2 * one);
  EXPECT_EQ(cuts[23], 2 * one);
}

TEST(UnitLayers, EndsArePinned) {
  const ModelGraph graph = import_text(gpt_config(1024, 16, 24));
  EXPECT_EQ(graph.free_layers(), 24);
  EXPECT_EQ(graph.layers[LayerId{0}].pin, Pin::kFirst);
  EXPECT_EQ(graph.layers[LayerId{25}].pin, Pin::kLast);
  EXPECT_EQ(graph.layers.size(), 26U);
  EXPECT_EQ(graph.kinds.size(), 3U);
}

}  // namespace
}  // namespace towtank::model_graph_test
