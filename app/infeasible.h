// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is said when nothing fits: which constraint, by how much, and what comes nearest. All exit
/// with kExitInfeasible.
#include <optional>
#include <string>

#include "app/commands.h"
#include "app/question.h"
#include "placement/nearest.h"
#include "placement/search.h"

namespace towtank {

[[nodiscard]] Outcome too_many_devices(const Question&, const TooManyDevices&);
/// The search found no plan: the pins leave none, or none fits.
[[nodiscard]] Outcome no_plan(const Question&, const SearchOptions&, const SearchResult&,
                              bool json);

/// The least of 2, 4, ... 64 times the devices with which a plan fits, as a sentence; empty if
/// there is none or the platform has no more.
[[nodiscard]] std::string more_devices_text(const Question&, SearchOptions);

/// "does not fit: needs 92 GiB of 79.6 GiB on pipeline rank 0 in backward, 12.4 GiB too much;
/// most of it activations 40 GiB, optimizer 20 GiB and parameters 12 GiB"
[[nodiscard]] std::string does_not_fit_text(const Question&, const Prediction&);

}  // namespace towtank
