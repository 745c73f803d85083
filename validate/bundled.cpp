// SPDX-License-Identifier: Apache-2.0
#include "validate/bundled.h"

#include <algorithm>
#include <iterator>

#include "validate/case_json.h"

namespace towtank {

std::vector<Case> bundled_cases(std::string_view stem) {
  for (const EmbeddedFile& file : embedded_cases()) {
    if (file.name == stem) return parse_cases(file.text, std::string(stem) + ".jsonl");
  }
  return {};
}

std::vector<Case> bundled_cases() {
  std::vector<Case> out;
  for (const EmbeddedFile& file : embedded_cases()) {
    std::vector<Case> cases = bundled_cases(file.name);
    std::move(cases.begin(), cases.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace towtank
