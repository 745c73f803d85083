#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what needs a GPU with cmake and nvcc, nothing from outside this repository, checks it, and
# prints one table; under five minutes. tests/gpu/run.sh [--build-only] [BUILD-FOLDER]
#
#   exit 0   every check holds (--build-only: it builds, and records of this toolkit are read)
#        1   a check or the build failed
#       77   nothing was checked: no GPU here, or no CUDA toolkit
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build_only=
if [ "${1:-}" = --build-only ]; then
  build_only=1
  shift
fi
build=${1:-$here/../../build/gpu}

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || { [ -x /usr/local/cuda/bin/nvcc ] && nvcc=/usr/local/cuda/bin/nvcc; } || true
if [ -z "$nvcc" ]; then
  echo "gpu: no nvcc here: nothing was checked"
  exit 77
fi
gpu=
for node in /dev/nvidiactl /dev/dxg; do
  [ ! -e "$node" ] || gpu=1
done
if [ -z "$gpu" ] && [ -z "$build_only" ]; then
  echo "gpu: no NVIDIA GPU here: nothing was checked"
  exit 77
fi

# Of the GPU at hand; without one, code for Hopper only, which is the quickest to compile.
architecture=90
if [ -n "$gpu" ]; then architecture=native; fi
log=$build/log
mkdir -p "$build"
if ! { cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" \
         -DCMAKE_CUDA_ARCHITECTURES=$architecture &&
       cmake --build "$build" --parallel "$(nproc)"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "gpu: the build failed"
  exit 1
fi
"$build/read_records" || exit $(($? == 77 ? 77 : 1))
[ -z "$build_only" ] || exit 0
exec "$build/gpu_checks"
