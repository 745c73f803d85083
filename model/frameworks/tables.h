// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The rows of the table, one function a framework. A framework that is built on another one starts
/// from its row and changes what differs, so that a fact is written once.
#include <string_view>

#include "model/frameworks/rules.h"

namespace towtank::detail {

inline constexpr std::string_view kAssumed{};  ///< the source of a cell that has none

template <class... Groups>
[[nodiscard]] constexpr unsigned group_bits(Groups... groups) {
  return (0U | ... | (1U << static_cast<unsigned>(groups)));
}

[[nodiscard]] FrameworkRules megatron_rules();
[[nodiscard]] FrameworkRules megatron_2021_rules();
[[nodiscard]] FrameworkRules megatron_deepspeed_rules();
[[nodiscard]] FrameworkRules nemo_rules();
[[nodiscard]] FrameworkRules fsdp_rules();
[[nodiscard]] FrameworkRules torchtitan_rules();
[[nodiscard]] FrameworkRules towtank_runtime_rules();
[[nodiscard]] FrameworkRules deepspeed_rules();

}  // namespace towtank::detail
