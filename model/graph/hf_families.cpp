// SPDX-License-Identifier: Apache-2.0
#include "model/graph/hf_families.h"

#include <algorithm>
#include <array>
#include <string>

namespace towtank {
namespace {

using Keys = std::string_view;

// PretrainedConfig and what nearly every file adds: nothing here changes counts or time.
constexpr std::array kIgnoredByAll{Keys{"_attn_implementation"},
                                   Keys{"_attn_implementation_autoset"},
                                   Keys{"_attn_implementation_internal"},
                                   Keys{"_commit_hash"},
                                   Keys{"_experts_implementation"},
                                   Keys{"_name_or_path"},
                                   Keys{"add_cross_attention"},
                                   Keys{"architectures"},
                                   Keys{"attention_dropout"},
                                   Keys{"attn_implementation"},
                                   Keys{"auto_map"},
                                   Keys{"bad_words_ids"},
                                   Keys{"begin_suppress_tokens"},
                                   Keys{"bos_token_id"},
                                   Keys{"cache_implementation"},
                                   Keys{"chunk_size_feed_forward"},
                                   Keys{"classifier_dropout"},
                                   Keys{"cross_attention_hidden_size"},
                                   Keys{"decoder_start_token_id"},
                                   Keys{"diversity_penalty"},
                                   Keys{"do_sample"},
                                   Keys{"dtype"},
                                   Keys{"early_stopping"},
                                   Keys{"encoder_no_repeat_ngram_size"},
                                   Keys{"eos_token_id"},
                                   Keys{"exponential_decay_length_penalty"},
                                   Keys{"finetuning_task"},
                                   Keys{"forced_bos_token_id"},
                                   Keys{"forced_eos_token_id"},
                                   Keys{"generation_config"},
                                   Keys{"gradient_checkpointing"},
                                   Keys{"hidden_act"},
                                   Keys{"hidden_activation"},
                                   Keys{"id2label"},
                                   Keys{"initializer_factor"},
                                   Keys{"initializer_range"},
                                   Keys{"is_decoder"},
                                   Keys{"is_encoder_decoder"},
                                   Keys{"label2id"},
                                   Keys{"layer_norm_eps"},
                                   Keys{"layer_norm_epsilon"},
                                   Keys{"length_penalty"},
                                   Keys{"max_length"},
                                   Keys{"min_length"},
                                   Keys{"model_type"},
                                   Keys{"name_or_path"},
                                   Keys{"no_repeat_ngram_size"},
                                   Keys{"num_beam_groups"},
                                   Keys{"num_beams"},
                                   Keys{"num_labels"},
                                   Keys{"num_return_sequences"},
                                   Keys{"output_attentions"},
                                   Keys{"output_hidden_states"},
                                   Keys{"output_past"},
                                   Keys{"output_router_logits"},
                                   Keys{"output_scores"},
                                   Keys{"pad_token_id"},
                                   Keys{"partial_rotary_factor"},
                                   Keys{"prefix"},
                                   Keys{"pretraining_tp"},
                                   Keys{"problem_type"},
                                   Keys{"pruned_heads"},
                                   Keys{"quantization_config"},
                                   Keys{"remove_invalid_values"},
                                   Keys{"repetition_penalty"},
                                   Keys{"return_dict"},
                                   Keys{"return_dict_in_generate"},
                                   Keys{"rms_norm_eps"},
                                   Keys{"rope_local_base_freq"},
                                   Keys{"rope_parameters"},
                                   Keys{"rope_scaling"},
                                   Keys{"rope_theta"},
                                   Keys{"router_aux_loss_coef"},
                                   Keys{"router_jitter_noise"},
                                   Keys{"sep_token_id"},
                                   Keys{"suppress_tokens"},
                                   Keys{"task_specific_params"},
                                   Keys{"temperature"},
                                   Keys{"tf_legacy_loss"},
                                   Keys{"tie_encoder_decoder"},
                                   Keys{"tokenizer_class"},
                                   Keys{"top_k"},
                                   Keys{"top_p"},
                                   Keys{"torch_dtype"},
                                   Keys{"torchscript"},
                                   Keys{"transformers_version"},
                                   Keys{"typical_p"},
                                   Keys{"unsloth_fixed"},
                                   Keys{"unsloth_version"},
                                   Keys{"use_bfloat16"},
                                   Keys{"use_cache"}};

constexpr std::array kRotary{Keys{"max_position_embeddings"},
                             Keys{"n_positions"},
                             Keys{"n_ctx"},
                             Keys{"max_sequence_length"},
                             Keys{"rope_interleaved"},
                             Keys{"is_llama_config"},
                             Keys{"norm_topk_prob"},
                             Keys{"layer_types"},
                             Keys{"model_max_length"},
                             Keys{"sliding_window"},
                             Keys{"original_max_position_embeddings"}};
constexpr std::array kQwen{Keys{"max_position_embeddings"},
                           Keys{"norm_topk_prob"},
                           Keys{"use_mrope"},
                           Keys{"seq_length"},
                           Keys{"mlp_only_layers"},
                           Keys{"dual_chunk_attention_config"},
                           Keys{"model_max_length"}};
// Qwen3-Coder's files state these; the class has no shared expert and always norms its heads.
constexpr std::array kQwen3Moe{Keys{"max_position_embeddings"},
                               Keys{"norm_topk_prob"},
                               Keys{"qkv_bias"},
                               Keys{"shared_expert_intermediate_size"},
                               Keys{"use_qk_norm"},
                               Keys{"seq_length"},
                               Keys{"model_max_length"}};
constexpr std::array kGptOss{Keys{"max_position_embeddings"}, Keys{"initial_context_length"},
                             Keys{"swiglu_limit"}, Keys{"norm_topk_prob"}};
constexpr std::array kNemotron{Keys{"max_position_embeddings"}, Keys{"norm_eps"},
                               Keys{"hidden_dropout"}, Keys{"rope_percent"},
                               Keys{"rope_percentage"}};
constexpr std::array kGemma{Keys{"max_position_embeddings"}, Keys{"query_pre_attn_scalar"},
                            Keys{"attn_logit_softcapping"},  Keys{"final_logit_softcapping"},
                            Keys{"sliding_window_size"},     Keys{"use_bidirectional_attention"}};
constexpr std::array kDeepseek{Keys{"max_position_embeddings"},
                               Keys{"aux_loss_alpha"},
                               Keys{"ep_size"},
                               Keys{"n_group"},
                               Keys{"topk_group"},
                               Keys{"topk_method"},
                               Keys{"norm_topk_prob"},
                               Keys{"routed_scaling_factor"},
                               Keys{"scoring_func"},
                               Keys{"seq_aux"},
                               Keys{"qk_head_dim"},
                               Keys{"rope_interleave"},
                               Keys{"mlp_bias"},
                               Keys{"num_nextn_predict_layers"},
                               Keys{"first_k_dense_replace"},
                               Keys{"model_max_length"}};
constexpr std::array kGpt2{Keys{"activation_function"},
                           Keys{"attn_pdrop"},
                           Keys{"reorder_and_upcast_attn"},
                           Keys{"scale_attn_by_inverse_layer_idx"},
                           Keys{"scale_attn_weights"},
                           Keys{"summary_activation"},
                           Keys{"summary_first_dropout"},
                           Keys{"summary_proj_to_labels"},
                           Keys{"summary_type"},
                           Keys{"summary_use_proj"},
                           Keys{"predict_special_tokens"},
                           Keys{"afn"}};
constexpr std::array kBloom{Keys{"apply_residual_connection_post_layernorm"},
                            Keys{"attention_softmax_in_fp32"},
                            Keys{"bias_dropout_fusion"},
                            Keys{"masked_softmax_fusion"},
                            Keys{"n_inner"},
                            Keys{"n_positions"},
                            Keys{"offset_alibi"},
                            Keys{"seq_length"},
                            Keys{"skip_bias_add"},
                            Keys{"skip_bias_add_qkv"},
                            Keys{"slow_but_exact"},
                            Keys{"unk_token_id"},
                            Keys{"use_flash_attn"}};
constexpr std::array kFalcon{Keys{"max_position_embeddings"}, Keys{"activation"},
                             Keys{"apply_residual_connection_post_layernorm"}, Keys{"seq_length"}};
constexpr std::array kBert{Keys{"attention_probs_dropout_prob"},
                           Keys{"position_embedding_type"},
                           Keys{"directionality"},
                           Keys{"pooler_fc_size"},
                           Keys{"pooler_num_attention_heads"},
                           Keys{"pooler_num_fc_layers"},
                           Keys{"pooler_size_per_head"},
                           Keys{"pooler_type"}};
constexpr std::array kVit{Keys{"attention_probs_dropout_prob"}, Keys{"encoder_stride"},
                          Keys{"pooler_act"}, Keys{"pooler_output_size"},
                          Keys{"tie_word_embeddings"}};
constexpr std::array kT5{Keys{"n_positions"}, Keys{"relative_attention_max_distance"},
                         Keys{"dense_act_fn"}, Keys{"is_gated_act"}};

constexpr std::array kFamilies{
    HfFamily{"gpt2", "GPT2", read_gpt2, kGpt2},
    HfFamily{"llama", "Llama", read_llama, kRotary},
    HfFamily{"mistral", "Mistral", read_mistral, kRotary},
    HfFamily{"mixtral", "Mixtral", read_mixtral, kRotary},
    HfFamily{"qwen2", "Qwen2", read_qwen2, kQwen},
    HfFamily{"qwen2_moe", "Qwen2Moe", read_qwen2_moe, kQwen},
    HfFamily{"qwen3", "Qwen3", read_qwen3, kQwen},
    HfFamily{"qwen3_moe", "Qwen3Moe", read_qwen3_moe, kQwen3Moe},
    HfFamily{"deepseek_v2", "DeepseekV2", read_deepseek_v2, kDeepseek},
    HfFamily{"deepseek_v3", "DeepseekV3", read_deepseek_v3, kDeepseek},
    HfFamily{"gemma", "Gemma", read_gemma, kGemma},
    HfFamily{"gemma2", "Gemma2", read_gemma2, kGemma},
    HfFamily{"gemma3_text", "Gemma3", read_gemma3, kGemma},
    HfFamily{"falcon", "Falcon", read_falcon, kFalcon},
    HfFamily{"bloom", "Bloom", read_bloom, kBloom},
    HfFamily{"nemotron", "Nemotron", read_nemotron, kNemotron},
    HfFamily{"gpt_oss", "GptOss", read_gpt_oss, kGptOss},
    HfFamily{"bert", "Bert", read_bert, kBert},
    HfFamily{"vit", "ViT", read_vit, kVit},
    HfFamily{"t5", "T5", read_t5, kT5},
};

struct Alias {
  std::string_view name, family;
};
// Older names, and those of text models inside multimodal ones.
constexpr std::array kAliases{
    Alias{"RefinedWeb", "falcon"},       Alias{"RefinedWebModel", "falcon"},
    Alias{"gemma3", "gemma3_text"},      Alias{"mllama_text_model", "llama"},
    Alias{"qwen2_5_vl_text", "qwen2"},   Alias{"qwen2_vl_text", "qwen2"},
    Alias{"qwen3_vl_text", "qwen3"},     Alias{"qwen3_vl_moe_text", "qwen3_moe"},
    Alias{"kimi_k2", "deepseek_v3"},     Alias{"qwen3_omni_moe_text", "qwen3_moe"},
    Alias{"qwen2_5_omni_text", "qwen2"},
};

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

const HfFamily* find_hf_family(std::string_view model_type) {
  for (const Alias& alias : kAliases) {
    if (alias.name == model_type) model_type = alias.family;
  }
  const auto it = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const HfFamily& family) {
    return family.model_type == model_type;
  });
  return it == kFamilies.end() ? nullptr : &*it;
}

std::span<const std::string_view> hf_ignored_keys() { return kIgnoredByAll; }

int hf_tokens(const HfFields& f, const HfRequest& request, int positions) {
  constexpr int kHarmless = 128;
  const std::string wanted = std::to_string(request.sequence_length);
  if (request.sequence_length <= 0) {
    f.fault({"--sequence", "is missing", f.family() + " does not fix the length of a sample",
             "Give the number of tokens, e.g. --sequence 4096."});
    return kHarmless;
  }
  if (request.sequence_length > kMaxTokens) {
    f.fault({"--sequence", wanted + " is too large", "at most " + std::to_string(kMaxTokens), ""});
    return kHarmless;
  }
  if (positions > 0 && request.sequence_length > positions) {
    f.fault(
        {"--sequence",
         wanted + " tokens are more than the " + std::to_string(positions) +
             " learned positions of this " + f.family() + " model",
         "",
         "Take at most " + std::to_string(positions) + ", or enlarge the table in the config."});
    return kHarmless;
  }
  return request.sequence_length;
}

}  // namespace towtank
