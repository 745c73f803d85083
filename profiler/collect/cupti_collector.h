// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Records what the device does, from construction to finish(): kernels, copies, sets, waits, and
/// the mark under which each was launched.
///
/// Records are read on a thread of the collector's own; a launch costs what CUPTI itself adds (and
/// reports as kOverhead). Memory is bounded: `buffers` times `buffer_bytes`, and `most_records`;
/// what is beyond is counted, never waited for.
///
///     auto started = start_cupti(library);            // or why not
///     { LayerMark mark(*collector, 7); layer(); }     // launches here carry mark 7
///     ActivityRecording recording = collector->finish();
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "profiler/collect/cupti_library.h"

namespace towtank {

struct CuptiOptions {
  std::size_t buffer_bytes = std::size_t{4} << 20;  ///< CUPTI's manual advises 1 to 10 MB
  int buffers = 16;
  std::size_t most_records = std::size_t{20} << 20;  ///< about 2 GB
  bool synchronization = true;                       ///< also record waits of the host
};

class CuptiCollector {
 public:
  CuptiCollector(const CuptiCollector&) = delete;
  CuptiCollector& operator=(const CuptiCollector&) = delete;
  ~CuptiCollector();

  /// Marks nest: a launch carries the innermost one of its thread.
  void push_mark(std::uint64_t mark);
  void pop_mark();
  /// Ends the recording; what the device has not finished is not in it, so synchronise before.
  /// Pre: called once.
  [[nodiscard]] ActivityRecording finish();

 private:
  friend std::variant<std::unique_ptr<CuptiCollector>, std::string> start_cupti(
      CuptiLibrary library, const CuptiOptions& options);
  CuptiCollector(CuptiLibrary library, const CuptiOptions& options);
  [[nodiscard]] CuptiLibrary::Why enable(bool synchronization);
  void end();

  CuptiLibrary library_;
  ActivityBuffers buffers_;
  ActivitySink sink_;
  std::vector<CuptiRecords> enabled_;
  long lost_ = 0;
  bool ended_ = false;
  std::thread reader_;  ///< last: it uses what stands above
};

/// Starts recording, or says why it cannot: what was turned on is turned off again.
[[nodiscard]] std::variant<std::unique_ptr<CuptiCollector>, std::string> start_cupti(
    CuptiLibrary library, const CuptiOptions& options = {});

/// Marks all launches of the calling thread while it lives.
class LayerMark {
 public:
  LayerMark(CuptiCollector& collector, std::uint64_t mark) : collector_(collector) {
    collector_.push_mark(mark);
  }
  LayerMark(const LayerMark&) = delete;
  LayerMark& operator=(const LayerMark&) = delete;
  ~LayerMark() { collector_.pop_mark(); }

 private:
  CuptiCollector& collector_;
};

}  // namespace towtank
