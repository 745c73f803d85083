// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a simulated step meets, as options say it: slow ranks, and traffic of others on its links.
/// Several stand behind semicolons; every fault is collected.
#include <string_view>
#include <vector>

#include "core/input_error.h"
#include "sim/lower.h"

namespace towtank {

/// "rank=12,slowdown=1.3"
[[nodiscard]] std::vector<Straggler> read_stragglers(std::string_view text, int devices, Faults&);

/// "leaf=40%", "node 3=10 GB/s", "node 3 rail 0 up=40%,burst=64 MiB". Whether links are named so is
/// link_names_fault's question.
[[nodiscard]] std::vector<Background> read_backgrounds(std::string_view text, Faults&);

}  // namespace towtank
