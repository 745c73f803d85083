// SPDX-License-Identifier: Apache-2.0
#include "core/input_error.h"
#include "profiler/collect/torch_compat.h"
#include "validate/runtime/commands.h"

namespace towtank {

int run_version_command(const RuntimeWords& words, const RuntimeWorld& world) {
  if (!words.empty()) throw InputError({words.front(), "version takes nothing", "", ""});
  world.out(std::string("towtank-runtime ") + TOWTANK_VERSION + ", libtorch " + TORCH_VERSION +
            (torch_compat::cuda_is_available() ? ", CUDA\n" : ", CPU\n"));
  return 0;
}

}  // namespace towtank
