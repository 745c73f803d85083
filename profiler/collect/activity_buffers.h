// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Buffers that a driver fills with activity records, on their way between it and a reader.
///
/// The driver asks for a buffer in the middle of a launch and gives it back from a thread of its
/// own. Neither waits for the reader: a request that finds no free buffer is refused, and the
/// driver counts what it then loses.
///
///   free --request()--> with the driver --complete()--> filled --next()--> read --give_back()-->
///   free
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace towtank {

class ActivityBuffers {
 public:
  /// Pre: bytes and count > 0. All memory is taken here.
  ActivityBuffers(std::size_t bytes, int count);

  // The driver's side; any thread, none waits for a reader.
  /// Empty if all buffers are in use.
  [[nodiscard]] std::span<std::byte> request();
  /// The first `used` bytes hold records. A buffer that is not one of these is counted as foreign.
  void complete(const std::byte* buffer, std::size_t used);

  // The reader's side.
  /// Waits for a filled buffer; nullopt once closed and all are read.
  [[nodiscard]] std::optional<std::span<std::byte>> next();
  /// Pre: `buffer` came from next().
  void give_back(std::span<std::byte> buffer);
  /// No more buffers will be completed.
  void close();

  [[nodiscard]] long refused() const;
  [[nodiscard]] long foreign() const;

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    bool with_driver = false;
  };
  mutable std::mutex mutex_;
  std::condition_variable filled_or_closed_;
  std::size_t bytes_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> free_;
  std::deque<std::pair<std::size_t, std::size_t>> filled_;  ///< buffer, bytes used
  bool closed_ = false;
  long refused_ = 0, foreign_ = 0;
};

}  // namespace towtank
