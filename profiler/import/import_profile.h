// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Measurements in any format that towtank reads, as a profile: the way in for the command line.
///
///   format                             told by                 reader
///   nccl-tests, rccl-tests             its columns or keys     nccl_tests.h
///   log of all_reduce_bench.py         its lines               all_reduce_bench.h
///   any other table                    a mapping               csv_table.h
#include <string>
#include <vector>

#include "profiler/import/csv_mapping.h"
#include "profiler/import/source_text.h"
#include "profiler/profile.h"

namespace towtank {

/// Names of the mappings that are compiled in.
[[nodiscard]] std::vector<std::string> mapping_names();
/// By name, or by path if it has a slash or ends in .json. Throws InputError.
[[nodiscard]] CsvMapping load_mapping(const std::string& name_or_path);

/// `mapping` empty: the format is told by the first file. Throws InputError.
[[nodiscard]] Profile import_profile(const std::vector<SourceText>& files,
                                     const std::string& mapping, const ImportOptions& options);

}  // namespace towtank
