// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

namespace {

__device__ unsigned long long now_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void spin_kernel(long long nanoseconds) {
  const unsigned long long end = now_ns() + static_cast<unsigned long long>(nanoseconds);
  while (now_ns() < end) {
  }
}

__global__ void empty_kernel() {}

}  // namespace

void launch_spin(cudaStream_t stream, long long nanoseconds) {
  spin_kernel<<<1, 1, 0, stream>>>(nanoseconds);
}

void launch_empty(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }
