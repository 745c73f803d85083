// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which layers go on which pipeline stage: the split of an ordered list of layers into intervals
/// that minimises the slowest stage, the pinned layers (embedding, head) counted.
///
///     minimise over splits   max_s ( sum of times of the layers of s + pinned time of s )
///
/// Exact: bisection over the bottleneck with a greedy fill as its test, at least one layer a stage.
/// Ties: fewest layers on the last and the first stage, then the earlier stages the heavier.
/// Not modelled: memory (recomputation is chosen after the split), the schedule's warm-up.
#include <span>
#include <vector>

#include "core/units.h"

namespace towtank {

/// Boundaries b[0] = 0 <= ... <= b[stages] = layers. Pre: 1 <= stages <= layer_times.size().
[[nodiscard]] std::vector<int> balanced_split(std::span<const Seconds> layer_times, Seconds first,
                                              Seconds last, int stages);
/// The same where all layers take the same time, in O(stages).
[[nodiscard]] std::vector<int> balanced_split(int layers, Seconds layer_time, Seconds first,
                                              Seconds last, int stages);
/// As launchers do it by default: L / stages each; a remainder goes to the inner stages first.
[[nodiscard]] std::vector<int> even_split(int layers, int stages);

}  // namespace towtank
