// SPDX-License-Identifier: Apache-2.0
#pragma once
/// towtank-graph files: any network as kinds of layers, layers and edges (docs/formats.md).
#include "core/json.h"
#include "model/graph/model_graph.h"

namespace towtank {

/// Orders the layers topologically (Boost.Graph; ties by file order) and checks that the graph is
/// acyclic and connected. Throws InputError with every fault.
[[nodiscard]] ModelGraph parse_graph(const JsonFile& file);
[[nodiscard]] Json to_json(const ModelGraph&);

}  // namespace towtank
