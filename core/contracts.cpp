// SPDX-License-Identifier: Apache-2.0
#include "core/contracts.h"

#include <string_view>

namespace towtank {
namespace {

/// The last two parts of a path: where the tree was built is nobody's business.
std::string_view short_path(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return path;
  const std::size_t before = path.rfind('/', last - 1);
  return before == std::string_view::npos ? path : path.substr(before + 1);
}

}  // namespace

void contract_violated(const char* kind, const char* condition, const char* file, int line) {
  std::string text(short_path(file));
  text += ":" + std::to_string(line) + ": " + kind + "(" + condition +
          ") does not hold (a defect in towtank, not in your input). Please report it.";
  throw ContractViolation(text);
}

}  // namespace towtank
