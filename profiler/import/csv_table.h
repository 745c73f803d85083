// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables of measured durations, read through a mapping (csv_mapping.h), as one profile.
///
/// A row that cannot be used is counted with its reason and the place of the first one; what the
/// mapping cannot mean for this table (a column that is not there, rows of two devices) is an
/// InputError. Shapes must be whole numbers above zero, times above zero and at most a week.
#include <vector>

#include "profiler/import/csv_mapping.h"
#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank {

/// Throws InputError: see above, and if no row gives a measurement.
[[nodiscard]] Profile import_csv(const std::vector<SourceText>& files, const CsvMapping& mapping,
                                 const ImportOptions& options);

}  // namespace towtank
