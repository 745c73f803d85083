// SPDX-License-Identifier: Apache-2.0
#include "core/input_error.h"

#include <algorithm>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

/// A file of a million wrong values must not print a million lines; faults() has them all.
constexpr std::size_t kMaxFaultsInText = 50;

std::string all_to_text(const std::vector<Fault>& faults) {
  EXPECTS(!faults.empty());
  std::string text;
  const std::size_t shown = std::min(faults.size(), kMaxFaultsInText);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += '\n';
    text += to_text(faults[i]);
  }
  if (shown < faults.size()) {
    text += "\n... and " + std::to_string(faults.size() - shown) + " more";
  }
  return text;
}

}  // namespace

std::string to_text(const Fault& fault) {
  std::string text = fault.where;
  if (!text.empty()) text += ": ";
  text += fault.problem;
  if (!fault.why.empty()) text += " (" + fault.why + ")";
  if (!fault.hint.empty()) {
    if (text.empty() || (text.back() != '.' && text.back() != '?')) text += '.';
    text += ' ';
    text += fault.hint;
    const char last = fault.hint.back();
    if (last != '.' && last != '?' && last != '!') text += '.';
  }
  return text;
}

InputError::InputError(Fault fault) : InputError(std::vector<Fault>{std::move(fault)}) {}

InputError::InputError(std::vector<Fault> faults)
    : std::runtime_error(all_to_text(faults)), faults_(std::move(faults)) {}

void Faults::throw_if_any() const {
  if (!faults_.empty()) throw InputError(faults_);
}

}  // namespace towtank
