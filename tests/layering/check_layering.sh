#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks every #include under the ladder's folders of a source tree: check_layering.sh ROOT
#
#   an include of this project names its file from the root, and points left on the ladder
#   torch, gloo, CUDA, CUPTI, NCCL   only in profiler/collect/ and validate/runtime/
#   SimGrid                    only in sim/
#   CLI11, cpp-httplib         only in app/
#   nlohmann, Eigen, Boost     only in .cpp files (nlohmann/json_fwd.hpp may stand in a header)
#   iostream                   only in app/: a library does not print
#   random                     nowhere: the standard distributions differ between libraries
#
# Prints one line a fault, "file:line: problem", and exits 1 if there is any.
set -euo pipefail
cd "${1:?usage: check_layering.sh ROOT}"

ladder="core platforms profiler model placement sim validate app"
folders=()
for folder in $ladder; do
  [ ! -d "$folder" ] || folders+=("$folder")
done
if [ ${#folders[@]} -eq 0 ]; then
  echo "check_layering.sh: no folder of the ladder in $PWD" >&2
  exit 2
fi

find "${folders[@]}" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print |
  LC_ALL=C sort | tr '\n' '\0' | xargs -0 -r awk -v ladder="$ladder" '
    function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; faults++ }
    BEGIN { n = split(ladder, names, " "); for (i = 1; i <= n; i++) rung[names[i]] = i }
    FNR == 1 { own = FILENAME; sub(/\/.*/, "", own); source = FILENAME ~ /\.(cpp|cc|cu)$/ }
    !/^[ \t]*#[ \t]*include[ \t]*[<"]/ { next }
    {
      line = $0
      sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
      quoted = substr(line, 1, 1) == "\""
      path = substr(line, 2)
      sub(/[>"].*/, "", path)
      top = path
      sub(/\/.*/, "", top)
      if (top in rung && path ~ /\//) {
        if (rung[top] > rung[own]) fault("\"" path "\" points right on the ladder: " own " < " top)
        next
      }
      if (quoted) { fault("\"" path "\" does not name its file from the root"); next }
      if (path ~ /^(torch|ATen|c10|c10d|gloo|cuda|thrust|cub)\// ||
          path ~ /^(cuda|cupti|nccl|nvml|cublas|cudnn)[A-Za-z0-9_]*\.h(pp)?$/) {
        if (FILENAME !~ /^(profiler\/collect|validate\/runtime)\//)
          fault("<" path "> outside profiler/collect/ and validate/runtime/")
      } else if (path ~ /^(simgrid|xbt|smpi)\// || path ~ /^simgrid/) {
        if (own != "sim") fault("<" path "> outside sim/")
      } else if (path ~ /^CLI\// || path ~ /^(CLI11|httplib)\./) {
        if (own != "app") fault("<" path "> outside app/")
      } else if (path ~ /^(nlohmann|Eigen|unsupported|boost)\//) {
        if (!source && path != "nlohmann/json_fwd.hpp") fault("<" path "> in a header")
      } else if (path == "iostream") {
        if (own != "app") fault("<iostream> in a library")
      } else if (path == "random") {
        fault("<random>: use core/rng.h")
      }
    }
    END { exit faults ? 1 : 0 }
  ' || { echo "check_layering.sh: the includes above break the rules at the head of this script" >&2; exit 1; }
