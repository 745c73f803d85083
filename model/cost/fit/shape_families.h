// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Measured products as corrections of a fit: families of one batch, n and k, each a chain of
/// residuals over m.
///
/// Corrections are carried over between two m of one family, not between families: on Llama shapes
/// of A100 and H100 (Vidur), residuals weighted by nearness in log m, n and k left the products of
/// a model that was not fitted with a median error of 4.4 to 7.8 % where the fit alone had 3.9 to
/// 6.7 %.
#include <cstdint>
#include <vector>

#include "model/cost/calibration.h"

namespace towtank {

struct MeasuredProduct {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double log_ratio = 0.0;  ///< log(measured / fitted)
};

/// Repeats of a shape become their median. Of a sweep over more than `most_knots` those are taken
/// that fill whole tiles (m a multiple of 128). Of each family the knots are kept that a chain of
/// straight lines over log m needs to meet the others within `tolerance`, and no more than
/// `most_knots`. Sorted by batch, n, k.
[[nodiscard]] std::vector<ShapeFamily> shape_families(const std::vector<MeasuredProduct>& products,
                                                      double tolerance = 0.02, int most_knots = 24);

}  // namespace towtank
