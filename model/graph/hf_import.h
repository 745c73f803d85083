// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A Hugging Face config.json becomes a ModelGraph.
///
/// Families: gpt2, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2,
/// deepseek_v3, gemma, gemma2, gemma3_text, falcon, bert, vit, t5, nemotron; nested text_config,
/// llm_config, language_config and thinker_config.text_config are descended into.
/// A field that a file leaves out takes its family's own class default (listed in assumptions);
/// an architecture field without one is a fault. Fields that do not change counts or time (dropout
/// rates, token ids, ...) are known and ignored; any other key is a fault.
#include <string>

#include "core/json.h"
#include "model/graph/model_graph.h"

namespace towtank {

/// Pre: sequence_length >= 0; 0 takes what the family fixes (vit: patches + 1; bert, others:
/// a fault on "--sequence"). Throws InputError with every fault.
[[nodiscard]] ModelGraph import_hf_config(const JsonFile& file, int sequence_length);

/// Reads a model by its content: a Hugging Face config.json or a towtank-graph file.
[[nodiscard]] ModelGraph import_model(const JsonFile& file, int sequence_length);

}  // namespace towtank
