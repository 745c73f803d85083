// SPDX-License-Identifier: Apache-2.0
#include "model/cost/efficiencies.h"

#include <algorithm>
#include <array>

namespace towtank {
namespace {

constexpr std::array kTable{
    Efficiencies{"volta", 0.80, 0.40, 0.35, 0.85},
    Efficiencies{"turing", 0.60, 0.40, 0.35, 0.80},
    Efficiencies{"ampere", 0.87, 0.75, 0.62, 0.85},
    Efficiencies{"ada", 0.85, 0.70, 0.60, 0.85},
    Efficiencies{"hopper", 0.80, 0.62, 0.52, 0.85},
    Efficiencies{"blackwell", 0.77, 0.60, 0.50, 0.85},
    Efficiencies{"cdna2", 0.60, 0.30, 0.25, 0.75},
    Efficiencies{"cdna3", 0.51, 0.35, 0.28, 0.75},
};
constexpr Efficiencies kUnknown{"unknown", 0.50, 0.30, 0.25, 0.70};

}  // namespace

const Efficiencies& efficiencies_of(std::string_view generation) {
  const auto* const known = std::find_if(kTable.begin(), kTable.end(), [&](const Efficiencies& e) {
    return e.generation == generation;
  });
  return known == kTable.end() ? kUnknown : *known;
}

}  // namespace towtank
