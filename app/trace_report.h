// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `towtank import` says of traces: the step and what it is spent on, op classes with the
/// rates that they reach, collectives beside what a platform should give, layers, and which rank
/// the others wait for. All times are measured ones but for the column `platform`.
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "platforms/platform.h"
#include "profiler/analysis/trace_summary.h"
#include "profiler/profile.h"

namespace towtank {

/// Bus bandwidths that a platform should give: one for each collective class of a summary; nullopt
/// where kind, size or ranks are not known, or the platform has fewer devices.
struct ExpectedBus {
  std::string platform;  ///< empty: none was named
  std::vector<std::optional<BytesPerSecond>> bus;
};

[[nodiscard]] ExpectedBus expected_bus(const TraceSummary&, const Platform&);

/// `profile` is what was made of the same traces.
[[nodiscard]] std::string trace_text(const JobTrace&, const TraceSummary&, const Profile& profile,
                                     const ExpectedBus&);
/// "towtank-trace", version 1 (docs/formats-profile.md).
[[nodiscard]] std::string trace_json(const JobTrace&, const TraceSummary&, const Profile& profile,
                                     const ExpectedBus&);

}  // namespace towtank
