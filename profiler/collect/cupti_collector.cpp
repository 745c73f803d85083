// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_collector.h"

#include <utility>

#include "core/contracts.h"

namespace towtank {

CuptiCollector::CuptiCollector(CuptiLibrary library, const CuptiOptions& options)
    : library_(std::move(library)),
      buffers_(options.buffer_bytes, options.buffers),
      sink_(options.most_records),
      reader_([this] {
        while (const auto buffer = buffers_.next()) {
          library_.read(*buffer, sink_);
          buffers_.give_back(*buffer);
        }
      }) {}

CuptiLibrary::Why CuptiCollector::enable(bool synchronization) {
  if (auto why = library_.use_buffers(&buffers_)) return why;
  static_cast<void>(library_.lost());  // of recordings before this one
  // Marks first: a launch between two calls would have none.
  std::vector<CuptiRecords> kinds{CuptiRecords::kMarks, CuptiRecords::kKernels,
                                  CuptiRecords::kCopies, CuptiRecords::kSets,
                                  CuptiRecords::kOverhead};
  if (synchronization) kinds.push_back(CuptiRecords::kSynchronization);
  for (const CuptiRecords kind : kinds) {
    if (auto why = library_.enable(kind)) return why;
    enabled_.push_back(kind);
  }
  return std::nullopt;
}

void CuptiCollector::end() {
  if (std::exchange(ended_, true)) return;
  if (!enabled_.empty()) static_cast<void>(library_.flush());
  for (const CuptiRecords kind : enabled_) static_cast<void>(library_.disable(kind));
  // What was written between the two calls above; after it the driver holds no buffer.
  if (!enabled_.empty()) static_cast<void>(library_.flush());
  lost_ = library_.lost();
  static_cast<void>(library_.use_buffers(nullptr));
  buffers_.close();
  reader_.join();
}

CuptiCollector::~CuptiCollector() { end(); }

void CuptiCollector::push_mark(std::uint64_t mark) { static_cast<void>(library_.push_mark(mark)); }

void CuptiCollector::pop_mark() { static_cast<void>(library_.pop_mark()); }

ActivityRecording CuptiCollector::finish() {
  EXPECTS(!ended_);
  end();
  ActivityRecording out = std::move(sink_.recording());
  out.lost = lost_;
  out.refused = buffers_.refused();
  out.unreadable += buffers_.foreign();
  return out;
}

std::variant<std::unique_ptr<CuptiCollector>, std::string> start_cupti(
    CuptiLibrary library, const CuptiOptions& options) {
  std::unique_ptr<CuptiCollector> collector(new CuptiCollector(std::move(library), options));
  if (auto why = collector->enable(options.synchronization)) return *why;
  return collector;
}

}  // namespace towtank
