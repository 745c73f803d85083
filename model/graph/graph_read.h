// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of a towtank-graph file.
#include "core/json.h"
#include "model/graph/model_graph.h"

namespace towtank::detail {

/// Of elements, parameters and rows: beyond any network, far from what a double counts exactly.
inline constexpr JsonRange kCount{.low = 0, .high = 1e15};

/// An element of "kinds".
[[nodiscard]] LayerKind read_kind(const JsonReader&);

}  // namespace towtank::detail
