// SPDX-License-Identifier: Apache-2.0
#include "profiler/profile.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {

Duration duration_of(std::vector<Seconds> repeats) {
  EXPECTS(!repeats.empty());
  std::sort(repeats.begin(), repeats.end());
  const std::size_t n = repeats.size();
  Duration out;
  out.median = n % 2 == 1 ? repeats[n / 2] : (repeats[n / 2 - 1] + repeats[n / 2]) / 2.0;
  out.low = repeats.front();
  out.high = repeats.back();
  out.repeats = static_cast<int>(n);
  return out;
}

void ImportStats::add(std::string_view what, Severity severity, long rows, std::string_view where) {
  if (rows == 0) return;
  const auto same = std::find_if(counts.begin(), counts.end(), [&](const Count& count) {
    return count.what == what && count.severity == severity;
  });
  if (same != counts.end()) {
    same->rows += rows;
    return;
  }
  counts.push_back({std::string(what), severity, rows, std::string(where)});
}

}  // namespace towtank
