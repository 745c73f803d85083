// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Takes activity records as they are read, up to a limit; the rest is counted. Names are kept
/// once.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/collect/activity.h"

namespace towtank {

class ActivitySink {
 public:
  explicit ActivitySink(std::size_t limit) : limit_(limit) {}
  void add(Activity activity, std::string_view name);
  void add(MarkLink link);
  void add_unreadable() { ++recording_.unreadable; }
  /// To be moved out when the last record is there.
  [[nodiscard]] ActivityRecording& recording() { return recording_; }

 private:
  [[nodiscard]] bool full();
  [[nodiscard]] std::uint32_t name_of(std::string_view name);

  std::size_t limit_;
  ActivityRecording recording_;
  std::vector<std::pair<std::size_t, std::uint32_t>> by_hash_;  ///< hash of a name, its index
};

}  // namespace towtank
