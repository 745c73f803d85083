// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/activity_sink.h"

#include <algorithm>
#include <functional>

namespace towtank {

bool ActivitySink::full() {
  if (recording_.activities.size() + recording_.links.size() < limit_) return false;
  ++recording_.beyond;
  return true;
}

std::uint32_t ActivitySink::name_of(std::string_view name) {
  if (name.empty()) return 0;
  const std::size_t hash = std::hash<std::string_view>{}(name);
  auto at = std::lower_bound(by_hash_.begin(), by_hash_.end(), std::pair{hash, 0U});
  for (; at != by_hash_.end() && at->first == hash; ++at) {
    if (recording_.names[at->second] == name) return at->second;
  }
  const auto index = static_cast<std::uint32_t>(recording_.names.size());
  recording_.names.emplace_back(name);
  by_hash_.insert(at, {hash, index});
  return index;
}

void ActivitySink::add(Activity activity, std::string_view name) {
  if (full()) return;
  activity.name = name_of(name);
  recording_.activities.push_back(activity);
}

void ActivitySink::add(MarkLink link) {
  if (!full()) recording_.links.push_back(link);
}

}  // namespace towtank
