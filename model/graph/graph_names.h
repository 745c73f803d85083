// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How towtank-graph files spell the enumerators of model_graph.h, in their order.
#include <array>
#include <string_view>

#include "model/graph/model_graph.h"

namespace towtank::detail {

inline constexpr std::array<std::string_view, 3> kElementNames{"compute", "fp32", "byte"};
inline constexpr std::array<std::string_view, 5> kWhenNames{
    "always", "fused_attention", "unfused_attention", "dropout", "unfused_attention_dropout"};
inline constexpr std::array<std::string_view, kAxisCount> kAxisNames{
    "tensor", "context", "expert", "expert_tensor", "pipeline", "data"};
inline constexpr std::array<std::string_view, 3> kPinNames{"none", "first", "last"};

}  // namespace towtank::detail
