// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Within what a fit looks for a term of an op formula, and which rows would tell it.
#include <string>

#include "model/cost/calibration.h"
#include "model/cost/fit/least_squares.h"

namespace towtank {

/// Bounds; the start is the caller's. A term at its lower bound is as good as absent.
[[nodiscard]] FitParameter bounds_of(OpKind kind, bool fused, OpTerm term);
/// "no row ... Measure ..."
[[nodiscard]] std::string how_to_tell(OpKind kind, OpTerm term);

}  // namespace towtank
