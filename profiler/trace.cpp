// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace.h"

#include <algorithm>
#include <tuple>

namespace towtank {

void sort_events(Trace& trace) {
  const auto key = [](const TraceEvent& e) { return std::make_tuple(e.start_ns, -e.duration_ns); };
  const auto before = [&](const TraceEvent& a, const TraceEvent& b) { return key(a) < key(b); };
  if (std::is_sorted(trace.events.begin(), trace.events.end(), before)) return;
  std::stable_sort(trace.events.begin(), trace.events.end(), before);
}

TextId TextIndex::id(std::string_view text) {
  const auto known = ids_.find(text);
  if (known != ids_.end()) return known->second;
  const auto id = static_cast<TextId>(trace_->texts.size());
  ids_.emplace(trace_->texts.emplace_back(text), id);
  return id;
}

std::optional<TextId> TextIndex::find(std::string_view text) const {
  const auto known = ids_.find(text);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

}  // namespace towtank
