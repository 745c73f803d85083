// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A job's traces as a profile that `towtank calibrate` can use.
///
///   ops           runs of one signature inside of steps, over all ranks: median, least, largest.
///                 Launches are not part of a kernel's time
///   collectives   wire times (collective_times.h) of those whose kind, payload and ranks are known
///   device kind   of the options, else told from the device's name where the catalogue has it
///   a node        ranks_per_node of the options; else groups of up to 8 ranks are in one node, and
///                 larger ones are left out
///
/// What is left out is counted in the profile's stats, beside what reading counted.
#include <string>
#include <string_view>

#include "profiler/analysis/job_trace.h"
#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank {

[[nodiscard]] Profile trace_profile(const JobTrace&, const ImportOptions&);

/// The catalogue's name of a device that its driver calls so; empty if none is known.
[[nodiscard]] std::string device_kind_of(std::string_view driver_name);

}  // namespace towtank
