// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Output of nccl-tests and rccl-tests (all_reduce_perf and the others), as one profile.
///
///   text         columns by the names in the header line: with and without redop and root, `error`
///                or `#wrong`, further columns ignored; prefixes of mpirun ("[1,0]<stdout>:",
///                "[0]") and of srun --label ("0: ") removed; other lines ignored
///   -F CSV       the same with commas
///   JSON         versions 1 to 3 of nccl-tests; `env` is never read: it may hold secrets
///   RCCL         JSON lines or an array, or CSV, with one side (in or out of place) an entry
///
/// Ranks come from the device lines, else from --ranks; without either the table is refused, as
/// tables without header lines cannot be told from invented ones. The collective is the program's
/// name, else what bus over algorithm bandwidth says. In-place and out-of-place times of one size
/// are repeats of one measurement. Left out and counted: rows whose size, time and bandwidths do
/// not agree, wrong results, nan, zero sizes, CPU times, collectives that towtank has no name for.
///
/// Sources: nccl-tests src/common.cu, src/util.cu, doc/PERFORMANCE.md; rccl-tests src/common.cu.
#include <vector>

#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank {

/// Whether a text looks like such output.
[[nodiscard]] bool is_nccl_tests(const std::string& text);

/// Throws InputError with file and line, and if no row gives a measurement.
[[nodiscard]] Profile import_nccl_tests(const std::vector<SourceText>& files,
                                        const ImportOptions& options);

}  // namespace towtank
