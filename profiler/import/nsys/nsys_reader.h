// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Nsight Systems exports: `nsys export --type sqlite`. Needs SQLite (libsqlite3-dev) when built.
///
///   table                             becomes
///   CUPTI_ACTIVITY_KIND_KERNEL        kernels, named by shortName, else demangledName
///   ..._MEMCPY, ..._MEMSET            copies, fills, with their bytes
///   ..._RUNTIME, ..._DRIVER           host calls
///   NVTX_EVENTS with an end           annotations; "aten::mm, op_id = 3, ..." are ops of PyTorch
///   TARGET_INFO_GPU                   devices
///
/// Every table is optional: exports have only those that were needed. Columns are looked up by
/// name. Times are ns since the start of the capture. Correlation ids count within one process, so
/// the process is made part of them. A file is opened read-only where it stands; what comes from a
/// pipe or an archive is held in memory (up to 2 GiB).
///
/// Not read: sizes of collectives (NVTX payloads), graphs' nodes, counters, samples. The columns
/// are those of public exports; nvprof's older schema is refused.
#include <memory>

#include "profiler/import/trace_reader.h"

namespace towtank {

[[nodiscard]] std::unique_ptr<TraceReader> nsys_reader();
/// Whether this build can read them.
[[nodiscard]] bool reads_nsys();

}  // namespace towtank
