// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Logs of all_reduce_bench.py, a small script that times all-reduces of one payload in PyTorch.
///
///     local_rank: 3                          one line a rank: devices of a node
///     17 data size: 4.0 GB                   one line a rank; GB = 1e9 bytes
///     17:                                    then, for each trial and rank:
///      duration: 1.5312 sec
///      algo throughput: 41797483455.9485 bps, 41.7975 Gbps
///      busbw: 40.4913  Gbps
///
/// Lines of different ranks may interleave. A trial's time is the median over its ranks of
/// 16 payload / throughput (the script counts two passes of 8 bits), which has more digits than the
/// duration. The first trial sets up the communicator and is left out. A log whose throughputs do
/// not fit its durations is refused.
///
/// Source: stas00/toolbox, all_reduce_bench.py, as quoted by bigscience-workshop/bigscience.
#include <string>
#include <vector>

#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank {

/// Whether a text looks like such a log.
[[nodiscard]] bool is_all_reduce_bench(const std::string& text);

/// One measurement a log. Throws InputError with file and line.
[[nodiscard]] Profile import_all_reduce_bench(const std::vector<SourceText>& files,
                                              const ImportOptions& options);

}  // namespace towtank
