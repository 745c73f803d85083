// SPDX-License-Identifier: Apache-2.0
#include "model/frameworks/rules.h"

#include <algorithm>

#include "core/contracts.h"
#include "model/frameworks/tables.h"

namespace towtank {

const FrameworkRules& rules_of(Framework framework) {
  switch (framework) {
    case Framework::kMegatron: {
      static const FrameworkRules kRules = detail::megatron_rules();
      return kRules;
    }
    case Framework::kMegatron2021: {
      static const FrameworkRules kRules = detail::megatron_2021_rules();
      return kRules;
    }
    case Framework::kMegatronDeepSpeed: {
      static const FrameworkRules kRules = detail::megatron_deepspeed_rules();
      return kRules;
    }
    case Framework::kNemo: {
      static const FrameworkRules kRules = detail::nemo_rules();
      return kRules;
    }
    case Framework::kFsdp: {
      static const FrameworkRules kRules = detail::fsdp_rules();
      return kRules;
    }
    case Framework::kTorchtitan: {
      static const FrameworkRules kRules = detail::torchtitan_rules();
      return kRules;
    }
    case Framework::kDeepSpeed: {
      static const FrameworkRules kRules = detail::deepspeed_rules();
      return kRules;
    }
    case Framework::kTowtankRuntime: {
      static const FrameworkRules kRules = detail::towtank_runtime_rules();
      return kRules;
    }
  }
  contract_violated("EXPECTS", "framework is one of the enumerators", __FILE__, __LINE__);
}

double wire_bytes(DType precision) { return bytes_per_element(precision) >= 4 ? 4 : 2; }

const FrameworkRules& rules_of(Framework framework, DType precision) {
  if (wire_bytes(precision) < 4) return rules_of(framework);
  static const std::array<FrameworkRules, kFrameworkCount> kWide = [] {
    std::array<FrameworkRules, kFrameworkCount> all;
    for (std::size_t i = 0; i < kFrameworkCount; ++i) {
      all[i] = rules_of(static_cast<Framework>(i));
      all[i].reduce_bytes.value = std::max(all[i].reduce_bytes.value, 4.0);
    }
    return all;
  }();
  return kWide[static_cast<std::size_t>(framework)];
}

std::optional<Framework> framework_from(std::string_view name) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    if (kFrameworkNames[i] == name) return static_cast<Framework>(i);
  }
  return std::nullopt;
}

}  // namespace towtank
