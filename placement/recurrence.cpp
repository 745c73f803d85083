// SPDX-License-Identifier: Apache-2.0
#include "placement/recurrence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The later of two times, written so that it compiles to one instruction.
inline double later(double a, double b) { return a < b ? b : a; }

/// Durations and running state as plain arrays. `f` and `b` hold the last end of a rank's forward
/// and backward, `t` when the rank is free.
struct Sweep {
  int p, m, v;
  const double *forward, *backward, *weight;  // by stage; backward = I + W, or I alone if split
  const double *hop_forward, *hop_backward;   // by stage; 0 where there is no hop
  double* t;                                  // p
  double* f;                       // p + 1: f[r + 1] is rank r's, f[0] what comes into rank 0
  double* b;                       // p + 1: b[r] is rank r's, b[p] what comes into rank p - 1
  Seconds *last_start, *last_end;  // by stage

  void record(int stage, double start, double end) const {
    last_start[stage].value = start;
    last_end[stage].value = end;
  }
};

void gpipe_times(const Sweep& s) {
  s.f[0] = kNever;
  for (int m = 0; m < s.m; ++m) {
    for (int r = 0; r < s.p; ++r) {
      s.t[r] = s.f[r + 1] = later(s.t[r], s.f[r] + s.hop_forward[r]) + s.forward[r];
    }
  }
  s.b[s.p] = kNever;
  for (int m = 0; m < s.m; ++m) {
    for (int r = s.p - 1; r >= 0; --r) {
      const double start = later(s.t[r], s.b[r + 1] + s.hop_backward[r]);
      s.t[r] = s.b[r] = start + s.backward[r];
      s.record(r, start, s.t[r]);
    }
  }
}

/// Forwards of 1F1B's and ZB-H1's warm-up: rank r runs microbatches 0 .. min(p - r - 1, m) - 1.
void warm_up(const Sweep& s) {
  s.f[0] = kNever;
  s.b[s.p] = kNever;
  for (int m = 0; m < std::min(s.p - 1, s.m); ++m) {
    for (int r = 0; r < s.p - 1 - m; ++r) {
      s.t[r] = s.f[r + 1] = later(s.t[r], s.f[r] + s.hop_forward[r]) + s.forward[r];
    }
  }
}

/// Round i of rank r is forward i + p - r - 1 (while there are any), then backward i. The forward
/// waits for round i - 1 of rank r - 1, the backward for round i of rank r + 1: ranks are swept
/// from the last to the first.
void one_f_one_b_times(const Sweep& s) {
  warm_up(s);
  for (int i = 0; i < s.m; ++i) {
    const int first_with_forward = std::max(0, s.p - s.m + i);
    double start = 0;
    for (int r = s.p - 1; r >= first_with_forward; --r) {
      const double free = later(s.t[r], s.f[r] + s.hop_forward[r]) + s.forward[r];
      s.f[r + 1] = free;
      start = later(free, s.b[r + 1] + s.hop_backward[r]);
      s.t[r] = s.b[r] = start + s.backward[r];
      s.last_start[r].value = start;
    }
    for (int r = std::min(first_with_forward, s.p) - 1; r >= 0; --r) {
      start = later(s.t[r], s.b[r + 1] + s.hop_backward[r]);
      s.t[r] = s.b[r] = start + s.backward[r];
      s.last_start[r].value = start;
    }
  }
  for (int r = 0; r < s.p; ++r) s.last_end[r].value = s.t[r];
}

/// As 1F1B with the weight gradient split off: it runs after an input gradient while more than r
/// are pending or no forward is left, and what is pending at the end follows.
void zb_h1_times(const Sweep& s) {
  warm_up(s);
  const auto weight_grad = [&](int r) {
    const double start = s.t[r];
    s.t[r] = start + s.weight[r];
    s.last_start[r].value = start;
  };
  for (int i = 0; i < s.m; ++i) {
    const int first_with_forward = std::max(0, s.p - s.m + i);
    for (int r = s.p - 1; r >= first_with_forward; --r) {
      const double free = later(s.t[r], s.f[r] + s.hop_forward[r]) + s.forward[r];
      s.f[r + 1] = free;
      s.t[r] = s.b[r] = later(free, s.b[r + 1] + s.hop_backward[r]) + s.backward[r];
      if (r <= i) weight_grad(r);
    }
    for (int r = std::min(first_with_forward, s.p) - 1; r >= 0; --r) {
      s.t[r] = s.b[r] = later(s.t[r], s.b[r + 1] + s.hop_backward[r]) + s.backward[r];
      weight_grad(r);
    }
  }
  for (int r = 0; r < s.p; ++r) {
    const int drained = std::min(s.p - 1 - r, s.m);
    for (int left = std::min(r, s.m - drained); left > 0; --left) weight_grad(r);
    s.last_end[r].value = s.t[r];
  }
}

/// In tick x rank r runs virtual forward x - r, then virtual backward
/// x - 2 (p - 1) - (v - 1) p + r, where they exist. Whatever either waits for ran in tick x - 1, on
/// a neighbour (rank p - 1 is rank 0's), so arrays of one value a rank are enough.
class InterleavedSweep {
 public:
  explicit InterleavedSweep(const Sweep& sweep)
      : s_(sweep), total_(sweep.m * sweep.v), group_(sweep.p * sweep.v) {}

  void run() const {
    const int lag = 2 * (s_.p - 1) + (s_.v - 1) * s_.p;
    for (int x = 0; x < total_ + lag; ++x) {
      const int low = std::max(0, x - total_ + 1);
      const int high = std::min(s_.p - 1, x);
      if (low <= high) forwards(x, low, high);
      const int first = x - lag;  // backward of rank 0
      const int from = std::max(0, -first);
      const int to = std::min(s_.p - 1, total_ - 1 - first);
      if (from <= to) backwards(first, from, to);
    }
  }

 private:
  void forwards(int x, int low, int high) const {
    // In place, from high to low: rank r reads f[r] before rank r - 1 renews it.
    s_.f[0] = low == 0 && x % group_ >= s_.p ? s_.f[s_.p] : kNever;
    for (int r = high; r >= low;) {
      const int k = x - r;
      const int end = std::max(low, r - (s_.p - 1 - k % s_.p));  // the last rank in this chunk
      const int offset = k / s_.p % s_.v * s_.p;
      const double* hop = s_.hop_forward + offset;
      const double* duration = s_.forward + offset;
      for (; r >= end; --r) {
        s_.t[r] = s_.f[r + 1] = later(s_.t[r], s_.f[r] + hop[r]) + duration[r];
      }
    }
  }

  void backwards(int first, int from, int to) const {
    const int k_last = first + s_.p - 1;  // of rank p - 1
    if (to == s_.p - 1) s_.b[s_.p] = k_last % group_ >= s_.p ? s_.b[0] : kNever;
    for (int r = from; r <= to;) {
      const int k = first + r;
      const int end = std::min(to, r + (s_.p - 1 - k % s_.p));
      const int offset = (s_.v - 1 - k / s_.p % s_.v) * s_.p;
      const double* hop = s_.hop_backward + offset;
      const double* duration = s_.backward + offset;
      const bool last_microbatch = k + (s_.p - k % s_.p) > total_ - group_;
      for (; r <= end; ++r) {
        const double start = later(s_.t[r], s_.b[r + 1] + hop[r]);
        s_.t[r] = s_.b[r] = start + duration[r];
        if (last_microbatch) s_.record(offset + r, start, s_.t[r]);
      }
    }
  }

  const Sweep& s_;
  int total_;
  int group_;
};

void expect_shape(ScheduleKind kind, const PipelineShape& shape) {
  EXPECTS(shape.ranks >= 1 && shape.microbatches >= 1 && shape.stages_per_rank >= 1);
  switch (kind) {
    case ScheduleKind::kNone:
      EXPECTS(shape.ranks == 1 && shape.stages_per_rank == 1);
      break;
    case ScheduleKind::kGpipe:
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kZbH1:
      EXPECTS(shape.stages_per_rank == 1);
      break;
    case ScheduleKind::kInterleaved:
      EXPECTS(shape.microbatches % shape.ranks == 0);
      break;
  }
}

Sweep prepare(ScheduleKind kind, const PipelineShape& shape, std::span<const StageTime> stages,
              std::span<const HopTime> hops, ScheduleWorkspace& workspace) {
  const std::size_t n = stages.size();
  const auto p = static_cast<std::size_t>(shape.ranks);
  workspace.scratch.assign(5 * n + 3 * p + 2, 0.0);
  double* forward = workspace.scratch.data();
  double* backward = forward + n;
  double* weight = backward + n;
  double* hop_forward = weight + n;
  double* hop_backward = hop_forward + n;
  for (std::size_t g = 0; g < n; ++g) {
    forward[g] = stages[g].forward.value;
    weight[g] = stages[g].weight_grad.value;
    backward[g] = stages[g].input_grad.value + (kind == ScheduleKind::kZbH1 ? 0.0 : weight[g]);
    if (p > 1 && g > 0) hop_forward[g] = hops[g].forward.value;
    if (p > 1 && g + 1 < n) hop_backward[g] = hops[g].backward.value;
  }
  ScheduleTimes& times = workspace.times;
  times.last_backward_start.resize(n);
  times.last_backward_end.resize(n);
  double* state = hop_backward + n;
  return {shape.ranks,
          shape.microbatches,
          shape.stages_per_rank,
          forward,
          backward,
          weight,
          hop_forward,
          hop_backward,
          state,
          state + p,
          state + 2 * p + 1,
          times.last_backward_start.data(),
          times.last_backward_end.data()};
}

}  // namespace

const ScheduleTimes& schedule_times(ScheduleKind kind, const PipelineShape& shape,
                                    std::span<const StageTime> stages,
                                    std::span<const HopTime> hops, ScheduleWorkspace& workspace) {
  expect_shape(kind, shape);
  EXPECTS(stages.size() ==
          static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.stages_per_rank));
  EXPECTS(hops.size() == stages.size());
  const Sweep sweep = prepare(kind, shape, stages, hops, workspace);
  switch (kind) {
    case ScheduleKind::kNone:
    case ScheduleKind::kOneFOneB:
      one_f_one_b_times(sweep);
      break;
    case ScheduleKind::kGpipe:
      gpipe_times(sweep);
      break;
    case ScheduleKind::kInterleaved:
      InterleavedSweep(sweep).run();
      break;
    case ScheduleKind::kZbH1:
      zb_h1_times(sweep);
      break;
  }
  ScheduleTimes& times = workspace.times;
  const auto p = static_cast<std::size_t>(shape.ranks);
  times.rank_end.resize(p);
  times.rank_busy.assign(p, Seconds{});
  times.makespan = Seconds{};
  for (std::size_t g = 0; g < stages.size(); ++g) {
    times.rank_busy[g % p] +=
        shape.microbatches * (stages[g].forward + stages[g].input_grad + stages[g].weight_grad);
  }
  for (std::size_t r = 0; r < p; ++r) {
    times.rank_end[r].value = sweep.t[r];
    times.makespan = std::max(times.makespan, times.rank_end[r]);
  }
  return times;
}

ScheduleTimes schedule_times(ScheduleKind kind, const PipelineShape& shape,
                             std::span<const StageTime> stages, std::span<const HopTime> hops) {
  ScheduleWorkspace workspace;
  schedule_times(kind, shape, stages, hops, workspace);
  return std::move(workspace.times);
}

}  // namespace towtank
