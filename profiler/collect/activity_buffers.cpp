// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/activity_buffers.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {

ActivityBuffers::ActivityBuffers(std::size_t bytes, int count) : bytes_(bytes) {
  EXPECTS(bytes > 0 && count > 0);
  buffers_.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    // Written once here, so that no page is first touched in the middle of a launch.
    buffers_[i].memory = std::make_unique<std::byte[]>(bytes);
    free_.push_back(buffers_.size() - 1 - i);
  }
}

std::span<std::byte> ActivityBuffers::request() {
  const std::lock_guard lock(mutex_);
  if (free_.empty() || closed_) {
    ++refused_;
    return {};
  }
  const std::size_t i = free_.back();
  free_.pop_back();
  buffers_[i].with_driver = true;
  return {buffers_[i].memory.get(), bytes_};
}

void ActivityBuffers::complete(const std::byte* buffer, std::size_t used) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& b) {
      return b.with_driver && b.memory.get() == buffer;
    });
    if (at == buffers_.end() || used > bytes_) {
      ++foreign_;
      return;
    }
    at->with_driver = false;
    filled_.emplace_back(static_cast<std::size_t>(at - buffers_.begin()), used);
  }
  filled_or_closed_.notify_one();
}

std::optional<std::span<std::byte>> ActivityBuffers::next() {
  std::unique_lock lock(mutex_);
  filled_or_closed_.wait(lock, [&] { return closed_ || !filled_.empty(); });
  if (filled_.empty()) return std::nullopt;
  const auto [i, used] = filled_.front();
  filled_.pop_front();
  return std::span<std::byte>(buffers_[i].memory.get(), used);
}

void ActivityBuffers::give_back(std::span<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(buffers_.begin(), buffers_.end(),
                               [&](const Buffer& b) { return b.memory.get() == buffer.data(); });
  EXPECTS(at != buffers_.end());
  free_.push_back(static_cast<std::size_t>(at - buffers_.begin()));
}

void ActivityBuffers::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  filled_or_closed_.notify_all();
}

long ActivityBuffers::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

long ActivityBuffers::foreign() const {
  const std::lock_guard lock(mutex_);
  return foreign_;
}

}  // namespace towtank
