// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sets of times, as sorted intervals that do not touch.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace towtank {

/// [first, second) in ns.
using TimeSpan = std::pair<std::int64_t, std::int64_t>;

class TimeSet {
 public:
  TimeSet() = default;
  /// Empty spans do not count.
  explicit TimeSet(std::vector<TimeSpan> spans) {
    std::sort(spans.begin(), spans.end());
    for (const TimeSpan& span : spans) {
      if (span.second <= span.first) continue;
      if (!spans_.empty() && span.first <= spans_.back().second) {
        spans_.back().second = std::max(spans_.back().second, span.second);
      } else {
        spans_.push_back(span);
      }
    }
  }
  [[nodiscard]] const std::vector<TimeSpan>& spans() const { return spans_; }
  [[nodiscard]] std::int64_t length() const {
    std::int64_t out = 0;
    for (const TimeSpan& span : spans_) out += span.second - span.first;
    return out;
  }
  /// Length of what both have.
  [[nodiscard]] std::int64_t common(const TimeSet& other) const {
    std::int64_t out = 0;
    auto a = spans_.begin();
    auto b = other.spans_.begin();
    while (a != spans_.end() && b != other.spans_.end()) {
      out +=
          std::max<std::int64_t>(0, std::min(a->second, b->second) - std::max(a->first, b->first));
      a->second < b->second ? ++a : ++b;
    }
    return out;
  }
  /// What either has.
  [[nodiscard]] TimeSet joined(const TimeSet& other) const {
    std::vector<TimeSpan> all = spans_;
    all.insert(all.end(), other.spans_.begin(), other.spans_.end());
    return TimeSet(std::move(all));
  }

 private:
  std::vector<TimeSpan> spans_;
};

}  // namespace towtank
