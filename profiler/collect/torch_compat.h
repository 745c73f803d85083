// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What differs between libtorch 1.13 (Debian 12, CPU) and a current one (TORCH_DIR), in one place.
/// Every source that uses torch includes this instead of torch/torch.h, which takes twice as long
/// to compile.
#include <ATen/Context.h>
#include <torch/types.h>
#include <torch/version.h>

/// c10::Allocator::allocate is const until torch 2.2.
#define TOWTANK_ALLOCATE_IS_CONST \
  (TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 3))

namespace towtank::torch_compat {

/// A build of torch for CUDA that sees a device.
[[nodiscard]] inline bool cuda_is_available() {
  return at::hasCUDA() && at::globalContext().hasCUDA();
}

}  // namespace towtank::torch_compat
