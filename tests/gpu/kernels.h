// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels whose time and number are known.
#include <cuda_runtime_api.h>

/// Runs for about `nanoseconds` on one block.
void launch_spin(cudaStream_t stream, long long nanoseconds);
/// Ends at once.
void launch_empty(cudaStream_t stream);
