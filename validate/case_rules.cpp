// SPDX-License-Identifier: Apache-2.0
#include "validate/case_rules.h"

#include "core/contracts.h"

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
             .reason = "Sailor ran a Megatron-DeepSpeed fork in fp32, its operator profiles match "
                       "TF32; memory is what tensors occupy"},
    CaseRule{.prefix = "torchtitan",
             .memory = MemoryKind::kReserved,
             .reason = "torchtitan logs what the allocator reserves"},
};

}  // namespace

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
