// SPDX-License-Identifier: Apache-2.0
// Parameter totals against published models, to the last digit.
#include <gtest/gtest.h>

#include "tests/model/graph/graph_testing.h"

namespace towtank::parameters_test {
namespace {

using graph_testing::gpt_config;
using graph_testing::import_example;
using graph_testing::import_text;

struct Total {
  const char* name;
  double parameters;
  const char* config;
  int sequence = 512;
};

std::ostream& operator<<(std::ostream& out, const Total& t) { return out << t.name; }

// Published totals; each is also the sum of its tensors' shapes.
const std::vector<Total> kTotals{
    {"gpt2", 124'439'808,
     R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"vocab_size":50257,"n_positions":1024})"},
    {"llama2_7b", 6'738'415'616,
     R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
         "intermediate_size":11008,"vocab_size":32000})"},
    {"llama3_8b", 8'030'261'248,
     R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
         "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256})"},
    {"llama3_70b", 70'553'706'496,
     R"({"model_type":"llama","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,
         "num_key_value_heads":8,"intermediate_size":28672,"vocab_size":128256})"},
    {"llama31_405b", 405'853'388'800,
     R"({"model_type":"llama","hidden_size":16384,"num_hidden_layers":126,
         "num_attention_heads":128,"num_key_value_heads":8,"intermediate_size":53248,
         "vocab_size":128256})"},
    {"mistral_7b", 7'241'732'096,
     R"({"model_type":"mistral","hidden_size":4096,"num_hidden_layers":32,
         "num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,
         "vocab_size":32000,"sliding_window":4096})"},
    {"mixtral_8x7b", 46'702'792'704,
     R"({"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,
         "num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,
         "vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2})"},
    {"mixtral_8x22b", 140'630'071'296,
     R"({"model_type":"mixtral","hidden_size":6144,"num_hidden_layers":56,
         "num_attention_heads":48,"num_key_value_heads":8,"intermediate_size":16384,
         "vocab_size":32768})"},
    {"mixtral_8x22b_v01", 140'620'634'112,
     R"({"model_type":"mixtral","hidden_size":6144,"num_hidden_layers":56,
         "num_attention_heads":48,"num_key_value_heads":8,"intermediate_size":16384,
         "vocab_size":32000})"},
    {"qwen2_05b", 494'032'768,
     R"({"model_type":"qwen2","hidden_size":896,"num_hidden_layers":24,"num_attention_heads":14,
         "num_key_value_heads":2,"intermediate_size":4864,"vocab_size":151936,
         "tie_word_embeddings":true})"},
    {"qwen2_7b", 7'615'616'512,
     R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,
         "num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064})"},
    {"qwen3_06b", 596'049'920,
     R"({"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,
         "num_key_value_heads":8,"intermediate_size":3072,"vocab_size":151936,"head_dim":128,
         "tie_word_embeddings":true})"},
    {"qwen3_8b", 8'190'735'360,
     R"({"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,
         "num_key_value_heads":8,"intermediate_size":12288,"vocab_size":151936,"head_dim":128})"},
    {"qwen3_30b_a3b", 30'532'122'624,
     R"({"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,
         "num_attention_heads":32,"num_key_value_heads":4,"intermediate_size":6144,
         "vocab_size":151936,"head_dim":128,"moe_intermediate_size":768,"num_experts":128,
         "num_experts_per_tok":8})"},
    {"qwen3_235b_a22b", 235'093'634'560,
     R"({"model_type":"qwen3_moe","hidden_size":4096,"num_hidden_layers":94,
         "num_attention_heads":64,"num_key_value_heads":4,"intermediate_size":12288,
         "vocab_size":151936,"head_dim":128,"moe_intermediate_size":1536,"num_experts":128,
         "num_experts_per_tok":8})"},
    {"qwen15_moe", 14'315'784'192,
     R"({"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,
         "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":5632,
         "vocab_size":151936,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,
         "num_experts":60,"num_experts_per_tok":4})"},
    {"deepseek_v2", 235'741'434'880,
     R"({"model_type":"deepseek_v2","hidden_size":5120,"num_hidden_layers":60,
         "num_attention_heads":128,"intermediate_size":12288,"vocab_size":102400,
         "n_routed_experts":160,"n_shared_experts":2,"num_experts_per_tok":6,
         "moe_intermediate_size":1536,"first_k_dense_replace":1,"q_lora_rank":1536,
         "kv_lora_rank":512,"head_dim":64})"},
    {"deepseek_v2_lite", 15'706'484'224,
     R"({"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,
         "num_attention_heads":16,"intermediate_size":10944,"vocab_size":102400,
         "n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,
         "moe_intermediate_size":1408,"first_k_dense_replace":1,"q_lora_rank":null})"},
    {"deepseek_v3", 671'026'419'200,
     R"({"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,
         "num_attention_heads":128,"intermediate_size":18432,"vocab_size":129280})"},
    {"deepseek_v3_no_bias", 671'026'404'352,
     R"({"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,
         "num_attention_heads":128,"intermediate_size":18432,"vocab_size":129280,
         "topk_method":"greedy"})"},
    {"gemma_2b", 2'506'172'416,
     R"({"model_type":"gemma","hidden_size":2048,"num_hidden_layers":18,"num_attention_heads":8,
         "num_key_value_heads":1,"intermediate_size":16384,"vocab_size":256000,"head_dim":256})"},
    {"gemma_7b", 8'537'680'896,
     R"({"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,
         "num_key_value_heads":16,"intermediate_size":24576,"vocab_size":256000})"},
    {"gemma2_2b", 2'614'341'888,
     R"({"model_type":"gemma2","hidden_size":2304,"num_hidden_layers":26,"num_attention_heads":8,
         "num_key_value_heads":4,"intermediate_size":9216,"vocab_size":256000})"},
    {"gemma2_9b", 9'241'705'984,
     R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,
         "num_attention_heads":16,"num_key_value_heads":8,"intermediate_size":14336,
         "vocab_size":256000})"},
    {"gemma2_27b", 27'227'128'320,
     R"({"model_type":"gemma2","hidden_size":4608,"num_hidden_layers":46,
         "num_attention_heads":32,"num_key_value_heads":16,"intermediate_size":36864,
         "vocab_size":256000,"head_dim":128})"},
    {"falcon_7b_tied", 6'921'720'704,
     R"({"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,
         "num_attention_heads":71,"vocab_size":65024,"multi_query":true})"},
    {"falcon_7b_untied", 7'217'189'760,
     R"({"model_type":"RefinedWebModel","hidden_size":4544,"n_layer":32,"n_head":71,
         "vocab_size":65024,"multi_query":true,"tie_word_embeddings":false})"},
    {"falcon_40b", 41'303'293'952,
     R"({"model_type":"falcon","hidden_size":8192,"num_hidden_layers":60,
         "num_attention_heads":128,"num_kv_heads":8,"new_decoder_architecture":true,
         "vocab_size":65024})"},
    {"bert_base", 109'482'240,
     R"({"model_type":"bert","hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
         "intermediate_size":3072,"vocab_size":30522,"max_position_embeddings":512})"},
    {"vit_base", 86'567'656,
     R"({"model_type":"vit","hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
         "intermediate_size":3072,"image_size":224,"patch_size":16,"num_labels":1000})",
     0},
    {"t5_small", 60'506'624,
     R"({"model_type":"t5","d_model":512,"num_layers":6,"num_heads":8,"d_kv":64,"d_ff":2048,
         "vocab_size":32128})"},
    {"t5_base", 222'903'552,
     R"({"model_type":"t5","d_model":768,"num_layers":12,"num_heads":12,"d_kv":64,"d_ff":3072,
         "vocab_size":32128})"},
    {"bloom_176b", 176'247'271'424,
     R"({"model_type":"bloom","n_embed":14336,"n_layer":70,"num_attention_heads":112,
         "vocab_size":250880})"},
};

class UnitParameters : public ::testing::TestWithParam<Total> {};

TEST_P(UnitParameters, PublishedTotalToTheLastDigit) {
  const Total& t = GetParam();
  EXPECT_EQ(import_text(t.config, t.sequence).total_parameters(), t.parameters);
}

INSTANTIATE_TEST_SUITE_P(Models, UnitParameters, ::testing::ValuesIn(kTotals),
                         [](const auto& total) { return std::string(total.param.name); });

TEST(UnitExamples, BundledConfigsHaveTheirPublishedTotals) {
  const std::vector<std::pair<const char*, double>> totals{
      {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"llama-3-8b", 8'030'261'248},
      {"llama-2-7b", 6'738'415'616},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x7b", 46'702'792'704},
      {"gpt2", 124'439'808},
      {"qwen2-7b", 7'615'616'512},
      {"qwen1.5-moe-a2.7b", 14'315'784'192},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v2", 235'741'434'880},
      {"deepseek-v2-lite", 15'706'484'224},
      {"deepseek-v3", 671'026'419'200},
      {"gemma-7b", 8'537'680'896},
      {"gemma2-9b", 9'241'705'984},
      {"falcon-7b", 6'921'720'704},
      {"falcon-40b", 41'303'293'952},
      {"bloom-176b", 176'247'271'424},
      {"bert-base", 109'482'240},
      {"t5-base", 222'903'552},
  };
  for (const auto& [name, total] : totals) {
    EXPECT_EQ(import_example(name, 512).total_parameters(), total) << name;
  }
  EXPECT_EQ(import_example("vit-base", 0).total_parameters(), 86'567'656);
}

// 12 L h^2 (1 + 13/(12h) + (V + s)/(12 L h)) counts all but the final norm's 2h.
TEST(UnitExamples, Gpt3HasTheTotalOfItsClosedForm) {
  const double h = 12288, layers = 96, v = 51200, s = 2048;
  EXPECT_EQ(import_example("gpt3-175b").total_parameters(),
            layers * (12 * h * h + 13 * h) + (v + s) * h + 2 * h);
}

TEST(UnitExamples, BertLargeHasTheTotalOfItsParts) {
  const double h = 1024;
  const double layer = 12 * h * h + 13 * h;
  const double embedding = (30522 + 512 + 2) * h + 2 * h;
  EXPECT_EQ(import_example("bert-large", 512).total_parameters(),
            24 * layer + embedding + h * h + h);
}

TEST(UnitExamples, Gemma3TakesItsClassDefaultsInside) {
  // h 2560, 34 layers, f 10240 are stated; heads 8, kv 4, head width 256, V 262208 are not.
  const double h = 2560, q = 8 * 256, u = 4 * 256, f = 10240;
  const double layer = h * (q + 2 * u) + q * h + 2 * 256 + 3 * h * f + 4 * h;
  EXPECT_EQ(import_example("gemma3-4b").total_parameters(), 34 * layer + 262208 * h + h);
}

TEST(UnitExamples, NemotronHasNoGateAndTwoNumbersANorm) {
  const double h = 6144, q = 6144, u = 8 * 128, f = 24576;
  const double layer = h * (q + 2 * u) + q * h + 2 * h * f + 4 * h;
  EXPECT_EQ(import_example("nemotron-4-15b").total_parameters(),
            32 * layer + 2 * 256000 * h + 2 * h);
}

TEST(UnitExamples, GptOssCountsSinksAndBiases) {
  const double h = 2880, q = 64 * 64, u = 8 * 64, f = 2880, e = 128;
  const double attention = h * (q + 2 * u) + (q + 2 * u) + q * h + h + 64;
  const double experts = e * (3 * h * f + 2 * f + h) + e * h + e;
  EXPECT_EQ(import_example("gpt-oss-120b").total_parameters(),
            36 * (attention + experts + 2 * h) + 2 * 201088 * h + h);
}

TEST(UnitParameterParts, MixtralUsesTwoOfItsEightExperts) {
  EXPECT_EQ(import_example("mixtral-8x7b").active_parameters(), 12'879'925'248);
}

TEST(UnitParameterParts, DenseModelsUseAll) {
  const ModelGraph graph = import_text(graph_testing::kLlama3);
  EXPECT_EQ(graph.active_parameters(), graph.total_parameters());
}

// Korthikanti et al. 2022, table 3: the shapes behind their memory table.
TEST(UnitParameterParts, GptShapesFollowTheClosedForm) {
  struct Shape {
    int h, a, layers;
  };
  for (const Shape& x :
       {Shape{6144, 64, 48}, {12288, 96, 96}, {20480, 128, 105}, {25600, 160, 128}}) {
    const double h = x.h, layers = x.layers, v = 51200, s = 2048;
    const double blocks = layers * (12 * h * h + 13 * h);
    EXPECT_EQ(import_text(gpt_config(x.h, x.a, x.layers)).total_parameters(),
              blocks + (v + s) * h + 2 * h);
  }
}

// One module: two norms, a product of 2h to h, a block with experts, a norm. Its embedding and head
// are the model's own.
TEST(UnitParameterParts, FurtherTokensAreBesideTheTotal) {
  const ModelGraph with = import_example("deepseek-v3");
  const double h = 7168, a = 128;
  const double attention = h * 1536 + 1536 + 1536 * a * (128 + 64) + h * (512 + 64) + 512 +
                           512 * a * (128 + 128) + a * 128 * h;
  const double experts = 256 * 3 * h * 2048 + h * 256 + 256 + 3 * h * 2048;
  EXPECT_EQ(with.mtp_parameters, attention + experts + 2 * h + 2 * h * h + 3 * h);
  EXPECT_EQ(with.total_parameters(), 671'026'419'200);
  EXPECT_EQ(with.free_layers(), 61);
}

TEST(UnitParameterParts, TiedTableIsCountedOnce) {
  const ModelGraph graph = import_example("gemma2-9b");
  EXPECT_TRUE(graph.tied_embedding);
  EXPECT_EQ(graph.tied_parameters, 256000.0 * 3584);
  EXPECT_FALSE(import_example("llama-3-8b").tied_embedding);
}

TEST(UnitParameterParts, BertCountsItsPoolerAndNotItsTrainingHead) {
  const ModelGraph graph = import_example("bert-base", 512);
  const double h = 768;
  // Transform and norm; the vocabulary product is tied and adds its bias.
  EXPECT_EQ(graph.mtp_parameters, h * h + h + 2 * h + 30522);
}

}  // namespace
}  // namespace towtank::parameters_test
