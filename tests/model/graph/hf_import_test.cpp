// SPDX-License-Identifier: Apache-2.0
// How Hugging Face configs are read: defaults, spellings, nesting, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/model/graph/graph_testing.h"
#include "tests/support/expect_fault.h"

namespace towtank::hf_import_test {
namespace {

using graph_testing::block_of;
using graph_testing::import_example;
using graph_testing::import_text;
using graph_testing::kind_of;
using graph_testing::kLlama3;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A config with fields set to JSON values, removed where the value is "".
std::string edited(const std::string& config,
                   const std::vector<std::pair<std::string, std::string>>& edits) {
  Json json = Json::parse(config);
  for (const auto& [key, value] : edits) {
    json.erase(key);
    if (!value.empty()) json[key] = Json::parse(value);
  }
  return json.dump();
}

const Op& op_of(const LayerKind& kind, const std::string& name) {
  for (const Op& op : kind.ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range("no op " + name);
}

std::optional<int> window_of(const ModelGraph& graph, int layer) {
  return op_of(kind_of(graph, layer + 1), "attention").window;
}

// --- defaults ------------------------------------------------------------------------------------

TEST(ImportDefaults, AreTheFamilysOwnAndAreTold) {
  const ModelGraph graph = import_text(kLlama3);
  EXPECT_THAT(graph.assumptions, ElementsAre("tie_word_embeddings = false (llama default)",
                                             "attention_bias = false (llama default)",
                                             "mlp_bias = false (llama default)"));
}

TEST(ImportDefaults, CompleteFilesAssumeNothing) {
  for (const char* name : {"llama-3.1-70b", "mixtral-8x7b", "qwen3-8b", "deepseek-v2-lite"}) {
    EXPECT_THAT(import_example(name).assumptions, IsEmpty()) << name;
  }
}

TEST(ImportDefaults, KeyValueHeadsAreAllHeadsInLlamaAndEightInMistral) {
  const std::string llama = edited(kLlama3, {{"num_key_value_heads", ""}});
  EXPECT_EQ(op_of(block_of(import_text(llama)), "attention").kv_heads, 32);
  EXPECT_EQ(
      op_of(block_of(import_text(edited(llama, {{"num_key_value_heads", "null"}}))), "attention")
          .kv_heads,
      32);
  const std::string mistral = edited(llama, {{"model_type", R"("mistral")"}});
  EXPECT_EQ(op_of(block_of(import_text(mistral)), "attention").kv_heads, 8);
}

TEST(ImportDefaults, TiesFollowTheClass) {
  EXPECT_TRUE(import_text(graph_testing::gpt_config(768, 12, 2)).tied_embedding);
  EXPECT_TRUE(import_example("gemma-7b").tied_embedding);
  EXPECT_TRUE(import_example("falcon-7b").tied_embedding);
  EXPECT_TRUE(import_example("t5-base", 512).tied_embedding);
  EXPECT_TRUE(import_example("bert-base", 512).tied_embedding);
  EXPECT_FALSE(import_text(kLlama3).tied_embedding);
  EXPECT_TRUE(import_text(edited(kLlama3, {{"tie_word_embeddings", "true"}})).tied_embedding);
}

TEST(ImportDefaults, QueryWidthMayDifferFromTheHiddenSize) {
  // Mistral Nemo: 32 heads of 128 on 5120.
  const ModelGraph nemo = import_text(
      R"({"model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
          "intermediate_size": 14336, "vocab_size": 131072, "sliding_window": null})");
  EXPECT_EQ(op_of(block_of(nemo), "projection").inner, 4096);
  EXPECT_EQ(op_of(block_of(nemo), "projection").columns, 5120);
  EXPECT_EQ(op_of(block_of(nemo), "qkv").columns, 4096 + 2 * 1024);
}

TEST(ImportDefaults, Qwen2HasBiasesThatNoFileStates) {
  const ModelGraph graph = import_example("qwen2-7b");
  const Op& qkv = op_of(block_of(graph), "qkv");
  EXPECT_EQ(qkv.parameters, 3584.0 * 4608 + 4608);
  EXPECT_EQ(op_of(block_of(graph), "projection").replicated_parameters, 0);
  EXPECT_THAT(graph.assumptions,
              Contains("biases of Q, K and V (the qwen2 class always has them)"));
}

TEST(ImportDefaults, LlamaBiasesAreWhereTheFileSays) {
  const ModelGraph graph =
      import_text(edited(kLlama3, {{"attention_bias", "true"}, {"mlp_bias", "true"}}));
  const LayerKind& block = block_of(graph);
  EXPECT_EQ(op_of(block, "qkv").parameters, 4096.0 * 6144 + 6144);
  EXPECT_EQ(op_of(block, "projection").replicated_parameters, 4096);
  EXPECT_EQ(op_of(block, "fc1").parameters, 2 * 4096.0 * 14336 + 2 * 14336);
  EXPECT_EQ(op_of(block, "fc2").replicated_parameters, 4096);
}

TEST(ImportDefaults, DeepseeksHeadDimIsTheRotaryWidth) {
  const ModelGraph graph = import_text(
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 4,
          "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
          "vocab_size": 129280, "head_dim": 64})");
  EXPECT_EQ(op_of(block_of(graph), "attention").head_width, 128 + 64);
  EXPECT_EQ(op_of(block_of(graph), "attention").value_width, 128);
}

TEST(ImportDefaults, FalconsOldFilesMeanOneKeyValueHead) {
  const ModelGraph graph = import_text(
      R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
          "num_attention_heads": 71, "num_kv_heads": 71, "multi_query": true,
          "vocab_size": 65024})");
  EXPECT_EQ(graph.total_parameters(), 6'921'720'704);
}

TEST(ImportDefaults, DropoutRatesOfZeroHaveNoMasks) {
  const std::string gpt = graph_testing::gpt_config(768, 12, 2);
  const auto masks = [](const ModelGraph& graph) {
    int count = 0;
    for (const LayerKind& kind : graph.kinds) {
      for (const Op& op : kind.ops) count += op.dropout_only ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(masks(import_text(gpt)), 3);
  EXPECT_EQ(masks(import_text(edited(gpt, {{"resid_pdrop", "0.0"}, {"embd_pdrop", "0"}}))), 0);
  EXPECT_EQ(masks(import_text(kLlama3)), 0);
}

// --- windows and experts by layer ----------------------------------------------------------------

TEST(ImportLayers, MistralSlidesUnlessNull) {
  const ModelGraph slides = import_example("mistral-7b", 8192);
  EXPECT_EQ(window_of(slides, 0), 4096);
  const std::string config = edited(kLlama3, {{"model_type", R"("mistral")"}});
  EXPECT_EQ(window_of(import_text(config, 8192), 0), 4096);
  EXPECT_EQ(window_of(import_text(edited(config, {{"sliding_window", "null"}}), 8192), 0),
            std::nullopt);
}

TEST(ImportLayers, Qwen2SlidesAfterItsFullLayers) {
  const std::string config = edited(
      kLlama3,
      {{"model_type", R"("qwen2")"}, {"sliding_window", "1024"}, {"max_window_layers", "20"}});
  EXPECT_EQ(window_of(import_text(config), 31), std::nullopt);
  const ModelGraph slides = import_text(edited(config, {{"use_sliding_window", "true"}}));
  EXPECT_EQ(window_of(slides, 19), std::nullopt);
  EXPECT_EQ(window_of(slides, 20), 1024);
}

TEST(ImportLayers, GemmaAlternates) {
  const ModelGraph two = import_example("gemma2-9b", 8192);
  EXPECT_EQ(window_of(two, 0), 4096);
  EXPECT_EQ(window_of(two, 1), std::nullopt);
  const ModelGraph three = import_example("gemma3-4b", 8192);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(window_of(three, i).has_value(), i % 6 != 5) << i;
  }
  EXPECT_EQ(window_of(three, 0), 1024);
}

TEST(ImportLayers, GptOssTakesItsListOfTypes) {
  const ModelGraph graph = import_example("gpt-oss-120b", 4096);
  EXPECT_EQ(window_of(graph, 0), 128);
  EXPECT_EQ(window_of(graph, 1), std::nullopt);
}

TEST(ImportLayers, ThreeConventionsForExperts) {
  const auto sparse = [](const ModelGraph& graph, int layer) {
    return kind_of(graph, layer + 1).limits.experts > 0;
  };
  const ModelGraph deepseek = import_example("deepseek-v3", 4096);
  EXPECT_FALSE(sparse(deepseek, 2));
  EXPECT_TRUE(sparse(deepseek, 3));
  const std::string qwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 6,
          "num_attention_heads": 32, "intermediate_size": 6144, "vocab_size": 151936,
          "decoder_sparse_step": 2, "mlp_only_layers": [3]})";
  const ModelGraph stepped = import_text(qwen);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(sparse(stepped, i), i == 1 || i == 5) << i;
  const ModelGraph listed = import_text(
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 3,
          "num_attention_heads": 128, "intermediate_size": 18432, "vocab_size": 129280,
          "moe_layer_freq": [0, 1, 0]})");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sparse(listed, i), i == 1) << i;
}

// --- spellings and nesting -----------------------------------------------------------------------

TEST(ImportSpelling, EveryAliasIsRead) {
  const ModelGraph plain = import_text(kLlama3);
  const ModelGraph renamed = import_text(
      R"({"model_type": "llama", "dim": 4096, "n_layers": 32, "n_heads": 32, "num_kv_heads": 8,
          "ffn_dim": 14336, "vocab_size": 128256})");
  EXPECT_EQ(plain.total_parameters(), renamed.total_parameters());
}

TEST(ImportSpelling, NewerNamesOfRotaryAndDtypeAreKnown) {
  EXPECT_NO_THROW(static_cast<void>(import_text(
      edited(kLlama3, {{"rope_parameters", R"({"rope_theta": 500000.0, "rope_type": "default"})"},
                       {"dtype", R"("bfloat16")"}}))));
  EXPECT_NO_THROW(static_cast<void>(import_text(
      edited(kLlama3,
             {{"rope_scaling", "null"}, {"rope_theta", "1e6"}, {"torch_dtype", R"("float16")"}}))));
}

TEST(ImportSpelling, SameValueTwiceIsFineAnotherIsNot) {
  EXPECT_NO_THROW(static_cast<void>(import_text(edited(kLlama3, {{"n_layer", "32"}}))));
  EXPECT_FAULT(import_text(edited(kLlama3, {{"n_layer", "31"}})),
               "cfg.json: /n_layer: 31 differs from num_hidden_layers = 32 (they are one field). "
               "Remove one.");
}

TEST(ImportSpelling, ClassNameStandsInForTheModelType) {
  const ModelGraph graph = import_text(
      edited(kLlama3, {{"model_type", ""}, {"architectures", R"(["LlamaForCausalLM"])"}}));
  EXPECT_EQ(graph.family, "llama");
  EXPECT_THAT(graph.assumptions, Contains("model_type = llama (from architectures)"));
}

TEST(ImportSpelling, UnknownClassesAreNotedNotRefused) {
  const ModelGraph graph = import_text(
      R"({"architectures": ["SynthForCausalLM"], "model_type": "llama", "hidden_size": 8,
          "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
          "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 32, "tie_word_embeddings": true,
          "torch_dtype": "bfloat16"})");
  // h 8, q 16, u 8, f 24, V 32, two layers.
  EXPECT_EQ(graph.total_parameters(), 2 * (8 * 32 + 16 * 8 + 3 * 8 * 24 + 16) + 32 * 8 + 8);
  EXPECT_THAT(graph.assumptions, Contains("class SynthForCausalLM is a llama (model_type)"));
}

TEST(ImportNesting, TextModelIsTakenOut) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    Json outer{{"model_type", "some_vl"}, {"vision_config", {{"hidden_size", 1152}}}};
    outer[key] = Json::parse(kLlama3);
    const ModelGraph graph = import_text(outer.dump());
    EXPECT_EQ(graph.total_parameters(), 8'030'261'248) << key;
    EXPECT_THAT(graph.assumptions,
                Contains("only the model under " + std::string(key) + " is trained"));
  }
  Json outer;
  outer["thinker_config"]["text_config"] = Json::parse(kLlama3);
  EXPECT_EQ(import_text(outer.dump()).total_parameters(), 8'030'261'248);
}

TEST(ImportNesting, NestedConfigsAreDifferencesFromTheClass) {
  const ModelGraph graph = import_text(
      R"({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}})");
  const double h = 4096;
  EXPECT_EQ(graph.total_parameters(), 32 * (4 * h * h + 3 * h * 11008 + 2 * h) + 2 * 32064 * h + h);
  EXPECT_THAT(graph.assumptions, Contains("hidden_size = 4096 (llama default)"));
}

TEST(ImportNesting, TieOfTheOuterConfigHolds) {
  const std::string inner = R"({"model_type": "llama", "vocab_size": 32064})";
  EXPECT_TRUE(
      import_text(R"({"tie_word_embeddings": true, "text_config": )" + inner + "}").tied_embedding);
}

TEST(ImportNotes, QuantizedCheckpointsAreTrainedInTheWorkloadsPrecision) {
  EXPECT_THAT(import_example("deepseek-v3").assumptions,
              Contains("quantization_config is not used: weights are trained in the workload's "
                       "precision"));
}

TEST(ImportNotes, ImageTokensFollowFromTheImage) {
  const ModelGraph graph = import_example("vit-base", 0);
  EXPECT_EQ(graph.sample_tokens, 197);
  EXPECT_THAT(graph.sample_shape, ElementsAre(3, 224, 224));
}

// --- faults --------------------------------------------------------------------------------------

const std::string kFamilies{
    "understood: gpt2, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2, "
    "deepseek_v3, gemma, gemma2, gemma3_text, falcon, bloom, nemotron, gpt_oss, bert, vit, t5"};

TEST(FaultHfImport, MisspeltKeyNamesTheNearest) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"atention_bias", "true"}})),
               "cfg.json: /atention_bias: unknown key. Did you mean \"attention_bias\"?");
}

TEST(FaultHfImport, MisspeltArchitectureFieldIsMissing) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"hidden_size", ""}, {"hiden_size", "4096"}})),
               "cfg.json: hidden_size is missing (llama has no default for it; also read as "
               "n_embd, d_model, n_embed, dim)\n"
               "cfg.json: /hiden_size: unknown key. Did you mean \"hidden_size\"?");
}

TEST(FaultHfImport, UnknownKeyWithoutLikeness) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"zebra", "1"}})), "cfg.json: /zebra: unknown key");
}

TEST(FaultHfImport, UnknownFamilyListsWhatIsUnderstood) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"model_type", R"("lama")"}})),
               "cfg.json: /model_type: unknown family \"lama\" (" + kFamilies +
                   "). Did you mean \"llama\"?");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"model_type", R"("whisper")"}})),
               "cfg.json: /model_type: unknown family \"whisper\" (" + kFamilies + ")");
}

TEST(FaultHfImport, NoFamilyAtAll) {
  EXPECT_FAULT(
      import_text(R"({"hidden_size": 8})"),
      "cfg.json: model_type is missing (" + kFamilies + "). Is this a Hugging Face config.json?");
  EXPECT_FAULT(import_text("[1]"),
               "cfg.json: is not a JSON object (a Hugging Face config.json is one)");
}

TEST(FaultHfImport, ClassAndTypeDisagree) {
  EXPECT_FAULT(
      import_text(edited(kLlama3, {{"architectures", R"(["MistralForCausalLM"])"}})),
      "cfg.json: /architectures/0: \"MistralForCausalLM\" is a mistral class, but model_type is "
      "llama (" +
          kFamilies + "). Correct one of the two.");
}

TEST(FaultHfImport, EveryMissingFieldIsTold) {
  EXPECT_FAULT(import_text(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12})", 512),
               "cfg.json: num_attention_heads is missing (gpt2 has no default for it; also read as "
               "n_head, n_heads, num_heads)\n"
               "cfg.json: vocab_size is missing (gpt2 has no default for it)\n"
               "cfg.json: n_positions is missing (gpt2 has no default for it; also read as n_ctx, "
               "max_position_embeddings)");
}

TEST(FaultHfImport, WrongTypes) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"hidden_size", R"("4096")"}})),
               "cfg.json: /hidden_size: \"4096\" is a string (must be an integer)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"tie_word_embeddings", "1"}})),
               "cfg.json: /tie_word_embeddings: 1 is a number (must be true or false)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"model_type", "7"}})),
               "cfg.json: /model_type: 7 is a number (must be a string)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"num_hidden_layers", "32.5"}})),
               "cfg.json: /num_hidden_layers: 32.5 is not a whole number (must be an integer)");
}

TEST(FaultHfImport, SizesOutOfRange) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"hidden_size", "-4096"}})),
               "cfg.json: /hidden_size: -4096 is too small (must be in 1 to 16777216)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"num_hidden_layers", "0"}})),
               "cfg.json: /num_hidden_layers: 0 is too small (must be in 1 to 20000)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"vocab_size", "1000000000000000000"}})),
               "cfg.json: /vocab_size: 1000000000000000000 is too large (must be in 1 to "
               "134217728)");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"intermediate_size", "1e300"}})),
               "cfg.json: /intermediate_size: 1e+300 is out of range (integers have 64 bits)");
}

TEST(FaultHfImport, SizesThatDoNotDivide) {
  EXPECT_FAULT(
      import_text(edited(kLlama3, {{"num_attention_heads", "33"}, {"num_key_value_heads", "33"}})),
      "cfg.json: hidden_size = 4096 does not divide by num_attention_heads = 33");
  EXPECT_FAULT(import_text(edited(kLlama3, {{"num_key_value_heads", "5"}})),
               "cfg.json: num_attention_heads = 32 does not divide by num_key_value_heads = 5");
}

TEST(FaultHfImport, MoreChosenThanExperts) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"model_type", R"("mixtral")"},
                                            {"num_local_experts", "4"},
                                            {"num_experts_per_tok", "6"}})),
               "cfg.json: num_experts_per_tok = 6 is more than the number of experts, 4");
}

TEST(FaultHfImport, ListsOfAnotherLength) {
  EXPECT_FAULT(import_text(edited(kLlama3, {{"model_type", R"("qwen2")"},
                                            {"layer_types", R"(["full_attention", "linear"])"}})),
               "cfg.json: /layer_types/1: \"linear\" is not a kind of layer that is understood "
               "(known: full_attention, sliding_attention)\n"
               "cfg.json: /layer_types: has 2 layers (num_hidden_layers = 32)");
}

TEST(FaultHfImport, LengthOfASample) {
  EXPECT_FAULT(
      import_text(kLlama3, 0),
      "--sequence: is missing (llama does not fix the length of a sample). Give the number "
      "of tokens, e.g. --sequence 4096.");
  EXPECT_FAULT(
      import_example("gpt2", 2048),
      "--sequence: 2048 tokens are more than the 1024 learned positions of this gpt2 model. "
      "Take at most 1024, or enlarge the table in the config.");
  EXPECT_FAULT(import_example("vit-base", 2048),
               "--sequence: 2048 tokens do not fit vit (an image of 224 with patches of 16 has 197 "
               "tokens). Leave it out.");
}

TEST(FaultHfImport, TruncatedFile) {
  EXPECT_FAULT(import_text(R"({"model_type": "llama", "hidden_size": 40)"),
               "cfg.json: line 1, column 42: ends in the middle of an object (expected a comma or "
               "}). Is the file complete?");
}

TEST(FaultHfImport, NestedFaultsHaveTheirPointer) {
  EXPECT_FAULT(import_text(R"({"text_config": {"model_type": "llama", "hiden_size": 8}})"),
               "cfg.json: /text_config/hiden_size: unknown key. Did you mean \"hidden_size\"?");
}

}  // namespace
}  // namespace towtank::hf_import_test
