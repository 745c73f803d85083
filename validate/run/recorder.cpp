// SPDX-License-Identifier: Apache-2.0
#include "validate/run/recorder.h"

#include <ctime>

#include "core/contracts.h"

namespace towtank {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double monotonic_seconds() { return seconds_of(CLOCK_MONOTONIC); }
double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

void Recorder::begin(SpanKind kind, int stage, int microbatch) {
  open_.push_back(spans_.size());
  // Until its end a span holds the CPU time at its beginning.
  spans_.push_back({kind, stage, microbatch, -1, -1, monotonic_seconds(), 0, thread_cpu_seconds()});
}

void Recorder::begin_message(SpanKind kind, int peer, int tag) {
  begin(kind);
  spans_.back().peer = peer;
  spans_.back().tag = tag;
}

void Recorder::end() {
  EXPECTS(!open_.empty());
  Span& span = spans_[open_.back()];
  open_.pop_back();
  span.end = monotonic_seconds();
  span.cpu = thread_cpu_seconds() - span.cpu;
}

void Recorder::mark(SpanKind kind, int peer, int tag) {
  const double now = monotonic_seconds();
  spans_.push_back({kind, -1, -1, peer, tag, now, now, 0});
}

}  // namespace towtank
