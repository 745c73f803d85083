// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/absent_reader.h"
#include "profiler/import/chakra/chakra_reader.h"
#include "profiler/import/chakra/node_builder.h"

namespace towtank {

std::unique_ptr<TraceReader> chakra_reader() {
  return std::make_unique<AbsentReader>("Chakra", chakra::looks_like_chakra, "libprotobuf-dev");
}

bool reads_chakra() { return false; }

}  // namespace towtank
