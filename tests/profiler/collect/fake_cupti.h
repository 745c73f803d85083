// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stands in for libcupti: writes the records that a test says into the collector's buffers, in a
/// flat form of its own, and completes them from a thread of its own, as CUPTI does.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "profiler/collect/cupti_library.h"

namespace towtank {

class FakeCupti {
 public:
  /// Names must outlive the recording.
  void emit(const Activity& activity, const char* name = nullptr) {
    write({.form = kActivity, .activity = activity, .link = {}, .name = name});
  }
  void emit(MarkLink link) {
    write({.form = kLink, .activity = {}, .link = link, .name = nullptr});
  }
  /// A record that no reader knows.
  void emit_garbage() { write({.form = 99, .activity = {}, .link = {}, .name = nullptr}); }
  /// A launch as CUPTI sees it: the innermost mark of the thread, then the activity.
  void launch(Activity activity, const char* name) {
    if (!marks_.empty()) emit(MarkLink{activity.correlation, marks_.back()});
    emit(activity, name);
  }
  /// Completes the buffer at hand, full or not.
  void complete() {
    if (buffer_.empty()) return;
    std::thread([owner = owner_, buffer = buffer_, used = used_] {
      owner->complete(buffer.data(), used);
    }).join();
    buffer_ = {};
  }

  [[nodiscard]] CuptiLibrary library() {
    using Why = CuptiLibrary::Why;
    CuptiLibrary out;
    out.version = "fake";
    out.use_buffers = [this](ActivityBuffers* owner) -> Why {
      owner_ = owner;
      return std::nullopt;
    };
    out.enable = [this](CuptiRecords kind) -> Why {
      if (refuses == kind) return "CUPTI does not record: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)";
      enabled.push_back(kind);
      return std::nullopt;
    };
    out.disable = [this](CuptiRecords kind) -> Why {
      std::erase(enabled, kind);
      return std::nullopt;
    };
    out.push_mark = [this](std::uint64_t mark) -> Why {
      marks_.push_back(mark);
      return std::nullopt;
    };
    out.pop_mark = [this]() -> Why {
      marks_.pop_back();
      return std::nullopt;
    };
    out.flush = [this]() -> Why {
      complete();
      return std::nullopt;
    };
    out.lost = [this] { return std::exchange(lost_, 0); };
    out.read = [](std::span<std::byte> buffer, ActivitySink& sink) { read(buffer, sink); };
    return out;
  }

  std::vector<CuptiRecords> enabled;
  std::optional<CuptiRecords> refuses;
  static constexpr int kActivity = 1, kLink = 2;
  struct Record {
    int form = 0;
    Activity activity;
    MarkLink link;
    const char* name = nullptr;
  };

 private:
  void write(const Record& record) {
    if (buffer_.size() < used_ + sizeof(Record)) complete();
    if (buffer_.empty()) {
      used_ = 0;
      buffer_ = owner_->request();
      if (buffer_.empty()) {
        ++lost_;
        return;
      }
    }
    std::memcpy(buffer_.data() + used_, &record, sizeof(Record));
    used_ += sizeof(Record);
  }
  static void read(std::span<std::byte> buffer, ActivitySink& sink) {
    for (std::size_t at = 0; at + sizeof(Record) <= buffer.size(); at += sizeof(Record)) {
      Record record;
      std::memcpy(&record, buffer.data() + at, sizeof(Record));
      if (record.form == kActivity) {
        sink.add(record.activity, record.name == nullptr ? "" : record.name);
      } else if (record.form == kLink) {
        sink.add(record.link);
      } else {
        sink.add_unreadable();
      }
    }
  }

  ActivityBuffers* owner_ = nullptr;
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
  std::vector<std::uint64_t> marks_;
  long lost_ = 0;
};

/// A kernel of `stream` in microseconds.
[[nodiscard]] inline Activity kernel_at(std::uint32_t correlation, std::uint32_t stream,
                                        int start_us, int end_us) {
  Activity a;
  a.correlation = correlation;
  a.stream = stream;
  a.start_ns = std::int64_t{1000} * start_us;
  a.end_ns = std::int64_t{1000} * end_us;
  return a;
}

/// The count of one reason; 0 if it was not met.
[[nodiscard]] inline long count_of(const ImportStats& stats, std::string_view what) {
  for (const ImportStats::Count& c : stats.counts) {
    if (c.what == what) return c.rows;
  }
  return 0;
}

}  // namespace towtank
