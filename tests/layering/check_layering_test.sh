#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does check_layering.sh catch what it is there for? Plants one include at a time in a small tree.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_layering.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# expect STATUS FILE INCLUDE TEXT: the check on a tree whose FILE has INCLUDE ends with STATUS, and,
# if that is 1, names FILE:2 and TEXT.
expect() {
  local status=0 output
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/core" "$tree/$(dirname "$2")"
  printf '#pragma once\n#include <vector>\n' >"$tree/core/units.h"
  printf '// a comment, #include "app/none.h"\n#include %s\n' "$3" >"$tree/$2"
  output=$(bash "$check" "$tree" 2>&1) || status=$?
  if [ "$status" -ne "$1" ] || { [ "$1" -eq 1 ] && [[ "$output" != *"$2:2: "*"$4"* ]]; }; then
    printf 'FAILED: %s with #include %s: status %d (wanted %d)\n%s\n' "$2" "$3" "$status" "$1" "$output"
    failed=1
  fi
}

expect 0 model/cost/op_cost.h '"core/units.h"' ''
expect 0 model/cost/op_cost.h '"model/graph/model_graph.h"' ''
expect 1 model/cost/op_cost.cpp '"placement/plan.h"' 'points right on the ladder: model < placement'
expect 1 core/id.h '"platforms/platform.h"' 'points right'
expect 1 sim/engine.cpp '<app/report.h>' 'points right'
expect 1 core/id.cpp '"units.h"' 'from the root'
expect 1 core/id.cpp '"../core/units.h"' 'from the root'
expect 0 profiler/collect/torch/run.cpp '<torch/torch.h>' ''
expect 1 profiler/import/kineto.cpp '<torch/torch.h>' 'outside profiler/collect/'
expect 1 model/cost/op_cost.cpp '<ATen/ATen.h>' 'outside profiler/collect/'
expect 1 model/cost/op_cost.cpp '<cuda_runtime.h>' 'outside profiler/collect/'
expect 1 app/doctor.cpp '<cupti.h>' 'outside profiler/collect/'
expect 0 validate/runtime/rank.cpp '<nccl.h>' ''
expect 0 sim/simgrid/engine.cpp '<simgrid/s4u.hpp>' ''
expect 1 placement/evaluate.cpp '<simgrid/s4u.hpp>' 'outside sim/'
expect 0 app/main.cpp '<CLI/CLI.hpp>' ''
expect 1 placement/search.cpp '<CLI/CLI.hpp>' 'outside app/'
expect 1 validate/serve.cpp '<httplib.h>' 'outside app/'
expect 0 core/json.cpp '<nlohmann/json.hpp>' ''
expect 0 core/json.h '<nlohmann/json_fwd.hpp>' ''
expect 1 core/json.h '<nlohmann/json.hpp>' 'in a header'
expect 1 model/cost/fit.h '<Eigen/Dense>' 'in a header'
expect 0 model/graph/order.cpp '<boost/graph/topological_sort.hpp>' ''
expect 1 model/graph/order.h '<boost/graph/adjacency_list.hpp>' 'in a header'
expect 1 core/json.cpp '<iostream>' 'in a library'
expect 0 app/main.cpp '<iostream>' ''
expect 1 placement/search.cpp '<random>' 'core/rng.h'
expect 0 core/id.h '<compare>' ''

[ "$failed" -eq 0 ] && echo "check_layering.sh: every planted include was judged rightly"
exit "$failed"
