// SPDX-License-Identifier: Apache-2.0
#include "validate/run/run_record.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

/// When messages were sent, by sender, receiver and tag: each is sent once a step.
using Sends = std::map<std::tuple<int, int, int>, double>;

Sends sends_of(const RunRecord& run, std::size_t step) {
  Sends sends;
  for (const RankRecord& rank : run.ranks) {
    for (const Span& s : rank.steps[step].spans) {
      if (s.kind == SpanKind::kSend) sends[{rank.rank, s.peer, s.tag}] = s.begin;
    }
  }
  return sends;
}

/// Adds a span's own time, less what is nested in it, to its part.
class PartsOfStep {
 public:
  PartsOfStep(const Sends& sends, int rank, bool clock)
      : sends_(sends), rank_(rank), clock_(clock) {}

  MeasuredStep of(const std::vector<Span>& spans) {
    // Spans stand in the order of their beginnings: the open ones are a stack.
    std::vector<std::pair<const Span*, double>> open;  // with the time of its children
    const auto close = [&] {
      const auto [span, nested] = open.back();
      open.pop_back();
      add(*span, span->end - span->begin - nested);
      if (!open.empty()) open.back().second += span->end - span->begin;
    };
    for (const Span& span : spans) {
      if (span.kind == SpanKind::kSend) continue;
      while (!open.empty() && open.back().first->end <= span.begin) close();
      open.emplace_back(&span, 0);
    }
    while (!open.empty()) close();
    return out_;
  }

 private:
  void add(const Span& span, double own) {
    const auto grow = [own](Seconds& part) { part = part + Seconds{own}; };
    switch (span.kind) {
      case SpanKind::kForward:
      case SpanKind::kBackward:
      case SpanKind::kInputGrad:
      case SpanKind::kWeightGrad:
        out_.compute_cpu = out_.compute_cpu + Seconds{span.cpu};
        return grow(out_.compute);
      case SpanKind::kRecompute:
        return grow(out_.recompute);
      case SpanKind::kOptimizer:
        return grow(out_.optimizer);
      case SpanKind::kWaitTensor:
        return grow(out_.exposed_tensor);
      case SpanKind::kWaitExpert:
        return grow(out_.exposed_expert);
      case SpanKind::kWaitData:
        return grow(out_.exposed_data);
      case SpanKind::kWaitPipeline: {
        const auto found = sends_.find({span.peer, rank_, span.tag});
        const double sent = clock_ && found != sends_.end() ? found->second : span.end;
        const double idle = std::clamp(sent - span.begin, 0.0, own);
        out_.bubble = out_.bubble + Seconds{idle};
        out_.exposed_pipeline = out_.exposed_pipeline + Seconds{own - idle};
        return;
      }
      case SpanKind::kStep:
        out_.step = Seconds{span.end - span.begin};
        return grow(out_.other);
      case SpanKind::kSend:
        return;
    }
  }

  const Sends& sends_;
  int rank_;
  bool clock_;
  MeasuredStep out_;
};

double median(std::vector<double> values) {
  EXPECTS(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

constexpr std::array kParts{
    &MeasuredStep::step,           &MeasuredStep::compute,        &MeasuredStep::recompute,
    &MeasuredStep::bubble,         &MeasuredStep::optimizer,      &MeasuredStep::other,
    &MeasuredStep::exposed_tensor, &MeasuredStep::exposed_expert, &MeasuredStep::exposed_pipeline,
    &MeasuredStep::exposed_data,   &MeasuredStep::compute_cpu};

std::size_t steps_of(const RunRecord& run) {
  return run.ranks.empty() ? 0 : run.ranks.front().steps.size();
}

}  // namespace

Seconds MeasuredStep::total() const {
  return compute + recompute + bubble + optimizer + other + exposed_tensor + exposed_expert +
         exposed_pipeline + exposed_data;
}

bool one_clock(const RunRecord& run) {
  return std::all_of(run.ranks.begin(), run.ranks.end(),
                     [&](const RankRecord& rank) { return rank.host == run.ranks.front().host; });
}

std::vector<MeasuredStep> measure(const RunRecord& run, std::size_t step) {
  const Sends sends = sends_of(run, step);
  const bool clock = one_clock(run);
  std::vector<MeasuredStep> out;
  for (const RankRecord& rank : run.ranks) {
    out.push_back(PartsOfStep(sends, rank.rank, clock).of(rank.steps[step].spans));
  }
  return out;
}

std::vector<MeasuredStep> median_steps(const RunRecord& run) {
  std::vector<std::vector<MeasuredStep>> all;
  for (std::size_t i = 0; i < steps_of(run); ++i) all.push_back(measure(run, i));
  std::vector<MeasuredStep> out(run.ranks.size());
  for (std::size_t r = 0; r < out.size() && !all.empty(); ++r) {
    for (const auto part : kParts) {
      std::vector<double> values;
      for (const auto& step : all) values.push_back((step[r].*part).value);
      out[r].*part = Seconds{median(std::move(values))};
    }
  }
  return out;
}

Seconds median_step_time(const RunRecord& run) {
  std::vector<double> longest;
  for (std::size_t i = 0; i < steps_of(run); ++i) {
    double top = 0;
    for (const RankRecord& rank : run.ranks) {
      const Span& step = rank.steps[i].spans.front();
      top = std::max(top, step.end - step.begin);
    }
    longest.push_back(top);
  }
  return Seconds{longest.empty() ? 0 : median(std::move(longest))};
}

std::vector<double> losses(const RunRecord& run) {
  std::vector<double> out(steps_of(run), 0.0);
  for (const RankRecord& rank : run.ranks) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += rank.steps[i].loss;
  }
  return out;
}

}  // namespace towtank
