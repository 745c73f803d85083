// SPDX-License-Identifier: Apache-2.0
#include "validate/case_rules.h"

#include <nlohmann/json.hpp>

#include "core/contracts.h"
#include "core/json.h"

namespace towtank {
namespace {

constexpr Framework kEngine = Framework::kMegatronDeepSpeed;
constexpr Framework kOld = Framework::kMegatron2021;

constexpr CaseRule kNoRule;

constexpr std::array kRules{
    CaseRule{.prefix = "vtrain",
             .follows = kOld,
             .states = kEngine,
             .reason =
                 "vTrain ran Megatron-DeepSpeed without ZeRO: Megatron-LM's own loop of 2022, "
                 "attention unfused, with dropout; DeepSpeed's bytes a parameter"},
    CaseRule{.prefix = "bigscience",
             .follows = kEngine,
             .reason = "BigScience ran Megatron-DeepSpeed: attention is unfused, with dropout; "
                       "memory is what nvidia-smi shows"},
    CaseRule{.prefix = "bloom",
             .follows = kEngine,
             .reason =
                 "BLOOM ran Megatron-DeepSpeed: attention is unfused, with dropout; memory is "
                 "what nvidia-smi shows"},
    CaseRule{.prefix = "mtnlg",
             .follows = kEngine,
             .reason = "MT-NLG ran Megatron-DeepSpeed: attention is unfused, with dropout"},
    CaseRule{.prefix = "megatron-sc21",
             .follows = kOld,
             .reason = "Megatron-LM of 2021 materialises attention scores, with dropout, and sends "
                       "1/t of a boundary"},
    CaseRule{.prefix = "korthikanti",
             .follows = kOld,
             .reason = "Megatron-LM of 2022 materialises attention scores, with dropout, and sends "
                       "1/t of a boundary"},
    CaseRule{.prefix = "sailor",
             .follows = kEngine,
             .tf32 = true,
             .memory = MemoryKind::kAllocated,
             .memory_constant = {5'060'000'000},
             .reason = "Sailor ran a Megatron-DeepSpeed fork in fp32, its operator profiles match "
                       "TF32; probabilities are not dropped, OPT has ReLU; memory is what tensors "
                       "occupy and the 5.06 GB of its memory rule"},
    CaseRule{.prefix = "torchtitan",
             .memory = MemoryKind::kReserved,
             .reason = "torchtitan logs what the allocator reserves"},
};

/// Sailor's llm_info.json counts s h (3 + 40/t) kept elements a layer of OPT-350M and s h (4.5 +
/// 28/t) of GPT-Neo-2.7B: one tensor of scores, 32 and 16 s h; with ReLU one of the MLP, else two.
struct ModelKeys {
  std::string_view prefix;  ///< of the set's name
  int hidden = 0;           ///< of the model; 0: any other
  bool relu = false;
};
constexpr std::array kModelKeys{ModelKeys{"sailor", 2560, false}, ModelKeys{"sailor", 0, true}};

}  // namespace

std::string completed_model(std::string_view set, const std::string& model_json) {
  for (const ModelKeys& keys : kModelKeys) {
    if (!set.starts_with(keys.prefix)) continue;
    Json model = Json::parse(model_json);
    if (keys.hidden != 0 && model.value("n_embd", 0) != keys.hidden) continue;
    if (!model.contains("attn_pdrop")) model["attn_pdrop"] = 0;
    if (keys.relu && !model.contains("activation_function")) model["activation_function"] = "relu";
    return model.dump();
  }
  return model_json;
}

const CaseRule& rule_of_set(std::string_view set) {
  const CaseRule* best = &kNoRule;
  for (const CaseRule& rule : kRules) {
    if (set.starts_with(rule.prefix) && rule.prefix.size() > best->prefix.size()) best = &rule;
  }
  return *best;
}

Framework framework_followed(const CaseRule& rule, Framework stated, int pipeline) {
  if (rule.follows != rule.stated && stated == rule.stated) return rule.follows;
  if (stated == Framework::kFsdp && pipeline > 1) return Framework::kTorchtitan;
  return stated;
}

Bytes memory_by_rule(const MemoryBreakdown& memory, const CaseRule& rule) {
  const Bytes read = memory_of_kind(memory, rule.memory);
  if (rule.memory_constant.value == 0) return read;
  return read - memory.buffers + rule.memory_constant;
}

Bytes memory_of_kind(const MemoryBreakdown& memory, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDeviceTotal:
      return memory.total();
    case MemoryKind::kReserved:
      return memory.reserved();
    case MemoryKind::kAllocated:
      return memory.allocated();
  }
  contract_violated("EXPECTS", "a known kind of memory", __FILE__, __LINE__);
}

}  // namespace towtank
