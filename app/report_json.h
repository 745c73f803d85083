// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The --json results: "towtank-plans", "towtank-prediction" (docs/formats.md).
#include <optional>
#include <string>

#include "app/confirm.h"
#include "app/question.h"
#include "placement/explain.h"
#include "placement/nearest.h"
#include "placement/search.h"

namespace towtank {

/// Pre: the question is posed.
[[nodiscard]] std::string plans_json(const Question&, const SearchOptions&, const SearchResult&,
                                     const std::optional<Confirmation>&);
/// `change`: the nearest one that fits, for a plan that does not.
[[nodiscard]] std::string prediction_json(const Question&, const RankedPlan&,
                                          const std::optional<NearestChange>& change);

}  // namespace towtank
