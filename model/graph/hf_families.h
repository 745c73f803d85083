// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The families of Hugging Face configs that are understood: names, classes, keys without effect on
/// counts or time, and the reader of each.
#include <span>
#include <string>
#include <string_view>

#include "model/graph/hf_fields.h"
#include "model/graph/model_graph.h"

namespace towtank {

struct HfRequest {
  int sequence_length = 0;  ///< 0: what the family fixes
};

/// Reads the fields of one family; the caller checks for keys that nobody asked for and throws.
using HfReader = ModelGraph (*)(const HfFields&, const HfRequest&);

struct HfFamily {
  std::string_view model_type;
  std::string_view class_stem;  ///< "Llama" of LlamaForCausalLM
  HfReader read;
  std::span<const std::string_view> ignored;  ///< keys of this family without effect
};

[[nodiscard]] std::span<const HfFamily> hf_families();
/// By model_type, older and nested spellings included.
[[nodiscard]] const HfFamily* find_hf_family(std::string_view model_type);
/// Keys of any config without effect.
[[nodiscard]] std::span<const std::string_view> hf_ignored_keys();

/// Tokens of a sample: the request, else a fault on --sequence. `positions`: length of a learned
/// table that a sample cannot exceed; 0 = none.
[[nodiscard]] int hf_tokens(const HfFields&, const HfRequest&, int positions);

// Readers, by file.
ModelGraph read_llama(const HfFields&, const HfRequest&);
ModelGraph read_mistral(const HfFields&, const HfRequest&);
ModelGraph read_mixtral(const HfFields&, const HfRequest&);
ModelGraph read_qwen2(const HfFields&, const HfRequest&);
ModelGraph read_qwen2_moe(const HfFields&, const HfRequest&);
ModelGraph read_qwen3(const HfFields&, const HfRequest&);
ModelGraph read_qwen3_moe(const HfFields&, const HfRequest&);
ModelGraph read_nemotron(const HfFields&, const HfRequest&);
ModelGraph read_gpt_oss(const HfFields&, const HfRequest&);
ModelGraph read_gemma(const HfFields&, const HfRequest&);
ModelGraph read_gemma2(const HfFields&, const HfRequest&);
ModelGraph read_gemma3(const HfFields&, const HfRequest&);
ModelGraph read_deepseek_v2(const HfFields&, const HfRequest&);
ModelGraph read_deepseek_v3(const HfFields&, const HfRequest&);
ModelGraph read_gpt2(const HfFields&, const HfRequest&);
ModelGraph read_bloom(const HfFields&, const HfRequest&);
ModelGraph read_falcon(const HfFields&, const HfRequest&);
ModelGraph read_bert(const HfFields&, const HfRequest&);
ModelGraph read_vit(const HfFields&, const HfRequest&);
ModelGraph read_t5(const HfFields&, const HfRequest&);

}  // namespace towtank
