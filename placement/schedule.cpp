// SPDX-License-Identifier: Apache-2.0
#include "placement/schedule.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {
namespace {

Action action(int stage, Phase phase, int microbatch) {
  return {StageId{stage}, phase, MicrobatchId{microbatch}};
}

void expect_shape(const PipelineShape& shape, bool one_stage_per_rank) {
  EXPECTS(shape.ranks >= 1);
  EXPECTS(shape.microbatches >= 1);
  EXPECTS(shape.stages_per_rank >= 1);
  EXPECTS(!one_stage_per_rank || shape.stages_per_rank == 1);
}

PipelineSchedule empty_schedule(const PipelineShape& shape, int actions_per_microbatch) {
  PipelineSchedule schedule{
      shape, IdVector<RankId, std::vector<Action>>(static_cast<std::size_t>(shape.ranks))};
  for (std::vector<Action>& order : schedule.order) {
    order.reserve(static_cast<std::size_t>(actions_per_microbatch) *
                  static_cast<std::size_t>(shape.microbatches) *
                  static_cast<std::size_t>(shape.stages_per_rank));
  }
  return schedule;
}

/// Megatron's virtual index k: microbatches come in groups of p, and a group passes through all
/// v stages of a rank before the next group starts.
struct VirtualIndex {
  int chunk, microbatch;
};
VirtualIndex virtual_index(const PipelineShape& shape, int k) {
  const int group = shape.ranks * shape.stages_per_rank;
  return {(k % group) / shape.ranks, (k / group) * shape.ranks + k % shape.ranks};
}

std::vector<Action> interleaved_order(const PipelineShape& shape, int rank) {
  const int p = shape.ranks;
  const int v = shape.stages_per_rank;
  const int total = shape.microbatches * v;
  const int warm_up = std::min(2 * (p - rank - 1) + (v - 1) * p, total);
  const auto forward = [&](int k) {
    const VirtualIndex at = virtual_index(shape, k);
    return action(at.chunk * p + rank, Phase::kForward, at.microbatch);
  };
  const auto backward = [&](int k) {
    const VirtualIndex at = virtual_index(shape, k);
    return action((v - 1 - at.chunk) * p + rank, Phase::kBackward, at.microbatch);
  };
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(total));
  for (int k = 0; k < warm_up; ++k) order.push_back(forward(k));
  for (int k = 0; k < total; ++k) {
    if (k + warm_up < total) order.push_back(forward(k + warm_up));
    order.push_back(backward(k));
  }
  return order;
}

std::vector<Action> zb_h1_order(const PipelineShape& shape, int rank) {
  const int m = shape.microbatches;
  const int warm_up = std::min(shape.ranks - rank - 1, m);
  std::vector<Action> order;
  order.reserve(3 * static_cast<std::size_t>(m));
  int weight_grads = 0;  // run so far
  for (int i = 0; i < warm_up; ++i) order.push_back(action(rank, Phase::kForward, i));
  for (int i = 0; i < m; ++i) {
    const bool drain = i + warm_up >= m;
    if (!drain) order.push_back(action(rank, Phase::kForward, i + warm_up));
    order.push_back(action(rank, Phase::kInputGrad, i));
    const int pending = i + 1 - weight_grads;
    if (drain || pending > rank) {
      order.push_back(action(rank, Phase::kWeightGrad, weight_grads++));
    }
  }
  while (weight_grads < m) order.push_back(action(rank, Phase::kWeightGrad, weight_grads++));
  return order;
}

}  // namespace

PipelineSchedule gpipe(const PipelineShape& shape) {
  expect_shape(shape, true);
  PipelineSchedule schedule = empty_schedule(shape, 2);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action>& order = schedule.order[RankId{rank}];
    for (int m = 0; m < shape.microbatches; ++m) order.push_back(action(rank, Phase::kForward, m));
    for (int m = 0; m < shape.microbatches; ++m) order.push_back(action(rank, Phase::kBackward, m));
  }
  return schedule;
}

PipelineSchedule one_f_one_b(const PipelineShape& shape) {
  expect_shape(shape, true);
  PipelineSchedule schedule = empty_schedule(shape, 2);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action>& order = schedule.order[RankId{rank}];
    const int warm_up = std::min(shape.ranks - rank - 1, shape.microbatches);
    for (int m = 0; m < warm_up; ++m) order.push_back(action(rank, Phase::kForward, m));
    for (int m = 0; m < shape.microbatches; ++m) {
      if (m + warm_up < shape.microbatches) {
        order.push_back(action(rank, Phase::kForward, m + warm_up));
      }
      order.push_back(action(rank, Phase::kBackward, m));
    }
  }
  return schedule;
}

PipelineSchedule interleaved_1f1b(const PipelineShape& shape) {
  expect_shape(shape, false);
  EXPECTS(shape.microbatches % shape.ranks == 0);
  PipelineSchedule schedule = empty_schedule(shape, 0);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    schedule.order[RankId{rank}] = interleaved_order(shape, rank);
  }
  return schedule;
}

PipelineSchedule zb_h1(const PipelineShape& shape) {
  expect_shape(shape, true);
  PipelineSchedule schedule = empty_schedule(shape, 0);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    schedule.order[RankId{rank}] = zb_h1_order(shape, rank);
  }
  return schedule;
}

PipelineSchedule make_schedule(ScheduleKind kind, const PipelineShape& shape) {
  switch (kind) {
    case ScheduleKind::kNone:
      EXPECTS(shape.ranks == 1);
      return one_f_one_b(shape);
    case ScheduleKind::kGpipe:
      return gpipe(shape);
    case ScheduleKind::kOneFOneB:
      return one_f_one_b(shape);
    case ScheduleKind::kInterleaved:
      return interleaved_1f1b(shape);
    case ScheduleKind::kZbH1:
      return zb_h1(shape);
  }
  contract_violated("EXPECTS", "a known schedule kind", __FILE__, __LINE__);
}

std::string to_text(const Action& action) {
  return std::to_string(action.stage.value) + static_cast<char>(action.phase) +
         std::to_string(action.microbatch.value);
}

std::string to_text(const PipelineSchedule& schedule) {
  std::string text;
  for (const std::vector<Action>& order : schedule.order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) text += ' ';
      text += to_text(order[i]);
    }
    text += '\n';
  }
  return text;
}

int peak_live_forwards(const PipelineSchedule& schedule, RankId rank) {
  int live = 0;
  int peak = 0;
  for (const Action& a : schedule.order[rank]) {
    switch (a.phase) {
      case Phase::kForward:
        peak = std::max(peak, ++live);
        break;
      case Phase::kBackward:
      case Phase::kInputGrad:
        --live;
        break;
      case Phase::kWeightGrad:
        break;
    }
  }
  return peak;
}

int peak_live_forwards(ScheduleKind kind, const PipelineShape& shape, int rank) {
  EXPECTS(rank >= 0 && rank < shape.ranks);
  const int p = shape.ranks;
  const int m = shape.microbatches;
  const int v = shape.stages_per_rank;
  switch (kind) {
    case ScheduleKind::kNone:
      return 1;
    case ScheduleKind::kGpipe:
      return m;
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kZbH1:
      return std::min(p - rank, m);
    case ScheduleKind::kInterleaved:
      return std::min(2 * (p - rank - 1) + (v - 1) * p + 1, m * v);
  }
  contract_violated("EXPECTS", "a known schedule kind", __FILE__, __LINE__);
}

double peak_activation(const PipelineSchedule& schedule, RankId rank, double share_w) {
  EXPECTS(share_w >= 0 && share_w <= 1);
  double held = 0;
  double peak = 0;
  for (const Action& a : schedule.order[rank]) {
    switch (a.phase) {
      case Phase::kForward:
        held += 1;
        break;
      case Phase::kBackward:
        held -= 1;
        break;
      case Phase::kInputGrad:
        held -= 1 - share_w;
        break;
      case Phase::kWeightGrad:
        held -= share_w;
        break;
    }
    peak = std::max(peak, held);
  }
  return peak;
}

}  // namespace towtank
