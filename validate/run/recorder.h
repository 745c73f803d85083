// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When a rank did what. Spans nest: a wait stands inside the action that waits.
///
/// Times are seconds of CLOCK_MONOTONIC, which all processes of one machine share; cpu is the
/// calling thread's CPU time. Not thread-safe: one thread runs the steps.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace towtank {

enum class SpanKind {
  kForward,
  kBackward,
  kInputGrad,
  kWeightGrad,
  kRecompute,
  kOptimizer,
  kWaitTensor,
  kWaitExpert,
  kWaitPipeline,
  kWaitData,
  kSend,  ///< a moment: a pipeline send was posted
  kStep
};
inline constexpr std::array<std::string_view, 12> kSpanNames{
    "forward",     "backward",    "input gradient", "weight gradient", "recompute", "optimizer",
    "wait tensor", "wait expert", "wait pipeline",  "wait data",       "send",      "step"};

struct Span {
  SpanKind kind = SpanKind::kStep;
  int stage = -1, microbatch = -1;
  int peer = -1, tag = -1;  ///< of a pipeline message: the other rank, and which message
  double begin = 0, end = 0, cpu = 0;
};

[[nodiscard]] double monotonic_seconds();
[[nodiscard]] double thread_cpu_seconds();

class Recorder {
 public:
  /// Spans end in the reverse order of their beginnings.
  void begin(SpanKind kind, int stage = -1, int microbatch = -1);
  /// A wait for a message.
  void begin_message(SpanKind kind, int peer, int tag);
  void end();
  /// A moment.
  void mark(SpanKind kind, int peer, int tag);
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  void clear() { spans_.clear(); }

 private:
  std::vector<Span> spans_;  ///< in the order of their beginnings
  std::vector<std::size_t> open_;
};

class ScopedSpan {
 public:
  ScopedSpan(Recorder& recorder, SpanKind kind, int stage = -1, int microbatch = -1)
      : recorder_(recorder) {
    recorder_.begin(kind, stage, microbatch);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;
  ~ScopedSpan() { recorder_.end(); }

 private:
  Recorder& recorder_;
};

}  // namespace towtank
