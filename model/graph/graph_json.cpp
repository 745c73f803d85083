// SPDX-License-Identifier: Apache-2.0
#include "model/graph/graph_json.h"

#include <nlohmann/json.hpp>

namespace towtank {

ModelGraph parse_graph(const JsonFile& file) {
  file.root().expect_format("towtank-graph", 1);
  file.finish();
  throw InputError({file.name(), "layer graphs are not read yet", "", ""});
}

Json to_json(const ModelGraph& graph) {
  return {{"format", "towtank-graph"}, {"name", graph.name}};
}

}  // namespace towtank
