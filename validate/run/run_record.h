// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a run measured: for each rank and step when it did what, and the memory of its peak.
///
/// The parts of a rank's step, which sum to its length:
///
///   compute     forward, backward and their halves, without what stands in the lines below
///   recompute   forward run again
///   exposed     waits inside, by axis: tensor, expert, data; pipeline only while the message was
///               under way, from its sender's send to its arrival
///   bubble      waits for messages that were not sent yet
///   optimizer   Adam
///   other       between actions: host, data, bookkeeping
///
/// Splitting a pipeline wait needs one clock: ranks of one machine share it. With several machines
/// the whole wait is bubble, and `one_clock` is false.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/units.h"
#include "validate/run/recorder.h"

namespace towtank {

struct StepRecord {
  double loss = 0;          ///< this rank's share
  std::vector<Span> spans;  ///< the first is the step
};

struct RankRecord {
  int rank = 0;
  std::string host;
  std::vector<StepRecord> steps;                             ///< measured ones, without warm-up
  std::vector<std::pair<std::string, std::int64_t>> memory;  ///< bytes by category at the peak
};

struct RunRecord {
  std::string backend;  ///< "gloo", "none" for one rank
  std::string torch;    ///< version
  double adam_learning_rate = 0;
  std::uint64_t seed = 0;
  std::vector<RankRecord> ranks;
};

struct MeasuredStep {
  Seconds step, compute, recompute, bubble, optimizer, other;
  Seconds exposed_tensor, exposed_expert, exposed_pipeline, exposed_data;
  Seconds compute_cpu;  ///< thread time of compute and recompute: what a core was given
  [[nodiscard]] Seconds total() const;
};

/// Ranks of one step, part by part. Pre: every rank has it.
[[nodiscard]] std::vector<MeasuredStep> measure(const RunRecord&, std::size_t step);
/// Of each part the median over steps, rank by rank; they need not sum.
[[nodiscard]] std::vector<MeasuredStep> median_steps(const RunRecord&);
/// Over all ranks and each step: its longest rank; then the median over steps.
[[nodiscard]] Seconds median_step_time(const RunRecord&);
/// Mean over the tokens of the global batch, by step.
[[nodiscard]] std::vector<double> losses(const RunRecord&);
[[nodiscard]] bool one_clock(const RunRecord&);

/// "towtank-run", version 1, see docs/formats-run.md.
[[nodiscard]] Json to_json(const RunRecord&);
[[nodiscard]] Json to_json(const RankRecord&);
[[nodiscard]] RankRecord read_rank_record(const JsonReader&);
/// Throws InputError.
[[nodiscard]] RunRecord parse_run_record(const JsonFile&);

/// A step as a Chrome trace (Perfetto opens it): a process for each rank, microseconds.
[[nodiscard]] std::string run_trace(const RunRecord&, std::size_t step);

}  // namespace towtank
