// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a fit is worth: how rows count, which are left out in turn, how far off the others are.
///
/// Rows of one sweep are nearly copies. So rows of a cell (profile, group, label, factor of two in
/// size) count as one together, and what is left out in turn is a whole group (model, file), never
/// random rows.
#include <string>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/fit/least_squares.h"

namespace towtank {

/// importance_i / rows in the cell of i. Pre: as many importances as cells.
[[nodiscard]] std::vector<double> cell_weights(const std::vector<std::string>& cells,
                                               const std::vector<double>& importance);

/// Which rows are left out together.
struct Folds {
  std::vector<int> of_row;
  int count = 0;     ///< 0: nothing can be left out
  std::string text;  ///< "each of 3 groups"
};
/// By group where there are several: one fold each, at most ten. Else by the second name of each
/// row (`fallback`, called `fallback_noun` in the text), if that has three or more.
[[nodiscard]] Folds folds_of(const std::vector<std::string>& groups,
                             const std::vector<std::string>& fallback,
                             const std::string& fallback_noun);

/// Residuals of each fold under a fit to the others; those of the fit itself without folds.
[[nodiscard]] std::vector<double> held_out_residuals(const FitProblem&, const FitResult&,
                                                     const Folds&);

struct ResidualStats {
  int rows = 0;
  double bias = 0.0;    ///< mean
  double spread = 0.0;  ///< half of what the middle 68 % of them span: a standard deviation that a
                        ///< few rows of another regime do not blow up
  double median = 0.0;  ///< of their magnitudes
};
/// Of rows with weight > 0.
[[nodiscard]] ResidualStats stats_of(const std::vector<double>& residuals,
                                     const std::vector<double>& weights);

struct GroupResiduals {
  std::string group;
  ResidualStats stats;
};
/// By group, sorted by name.
[[nodiscard]] std::vector<GroupResiduals> by_group(const std::vector<std::string>& groups,
                                                   const std::vector<double>& residuals,
                                                   const std::vector<double>& weights);

/// One measured time that the fit does not meet.
struct Outlier {
  std::string what;  ///< "vidur-a100-ops: mlp_up_proj, 1 x 8 x 4096 x 4096"
  Seconds measured, predicted;
};

/// What a person reads about one record; the numbers that stay are in the record.
struct RecordReport {
  std::string title;                   ///< "matmul, fp16 and bf16, on a100-sxm-80g"
  std::vector<GroupResiduals> groups;  ///< left out in turn
  std::vector<Outlier> outliers;       ///< the worst ten
  std::vector<std::string> untold;     ///< "gap_s keeps the documented 3e-06: ... Measure ..."
  std::vector<std::string> notes;      ///< "sailor-a100-40-ops: 48 us a forward launch"
};

/// True beyond four robust standard deviations and 10 %.
[[nodiscard]] bool is_outlier(double residual, double scale);

}  // namespace towtank
