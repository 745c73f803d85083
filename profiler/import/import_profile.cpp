// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/import_profile.h"

#include <algorithm>

#include "core/contracts.h"
#include "core/input_error.h"
#include "core/text.h"
#include "profiler/import/all_reduce_bench.h"
#include "profiler/import/csv_table.h"
#include "profiler/import/embedded_mappings.h"
#include "profiler/import/nccl_tests.h"

namespace towtank {

std::vector<std::string> mapping_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_mappings()) names.emplace_back(file.name);
  return names;
}

CsvMapping load_mapping(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) {
    return parse_csv_mapping(JsonFile::load(name_or_path));
  }
  for (const EmbeddedFile& file : embedded_mappings()) {
    if (file.name != name_or_path) continue;
    return parse_csv_mapping(
        JsonFile::parse(std::string(file.text), "mapping " + std::string(file.name)));
  }
  const std::vector<std::string> names = mapping_names();
  const auto near = nearest(name_or_path, names);
  throw InputError({"--mapping", in_quotes(name_or_path) + " is not a mapping",
                    "known: " + join(names, ", "),
                    near ? "Did you mean " + *near + "?" : "A file of your own ends in .json."});
}

Profile import_profile(const std::vector<SourceText>& files, const std::string& mapping,
                       const ImportOptions& options) {
  EXPECTS(!files.empty());
  if (!mapping.empty()) return import_csv(files, load_mapping(mapping), options);
  const std::string& first = files.front().text;
  if (is_nccl_tests(first)) return import_nccl_tests(files, options);
  if (is_all_reduce_bench(first)) return import_all_reduce_bench(files, options);
  throw InputError({printable(files.front().name, 400), "is in no format that is known by itself",
                    "nccl-tests, rccl-tests and all_reduce_bench.py output is",
                    "A table of columns needs --mapping NAME|FILE; there are " +
                        join(mapping_names(), ", ") + "."});
}

}  // namespace towtank
