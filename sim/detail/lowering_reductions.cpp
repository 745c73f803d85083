// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/detail/lowering.h"

namespace towtank::detail {

void Lowering::reduce_stage(int rank, int stage, Ids& stream) {
  const StageSums& sums = model_.stage_sums(stage);
  const Communication whole = reduction_of(problem_, mesh_, layout_, model_.data(), sums);
  if (whole.time() <= 0) return;
  const Ids members = rank_actors(rank);
  const std::vector<Ids>& waits = bucket_ready_[static_cast<std::size_t>(stage)];
  const int n = waits.empty() ? 1 : static_cast<int>(waits.size());
  const ReadyCommunication bucket = data_collective(scaled(whole, 1.0 / n), members);
  for (int k = 0; k < n; ++k) {
    Ids before = stream;
    if (!waits.empty()) {
      const Ids& wait = waits[static_cast<std::size_t>(k)];
      before.insert(before.end(), wait.begin(), wait.end());
    }
    stream = {communicate(bucket, Label::kReduce, members, before, {stage, -1, k})};
  }
}

/// Each rank's data stream runs the buckets of its stages in the order in which their last backward
/// ends without contention.
void Lowering::reductions() {
  if (layout_.sharding_stage >= 3) return;
  const PipelineShape shape{layout_.pipeline, layout_.microbatches, layout_.stages_per_rank};
  const ScheduleTimes times =
      schedule_times(layout_.schedule, shape, model_.stage_times(), model_.hops());
  const bool overlap = mesh_.rules().overlap_grad_reduce.value;
  for (int r = 0; r < layout_.pipeline; ++r) {
    std::vector<int> order;
    for (int g = r; g < stages_; g += layout_.pipeline) order.push_back(g);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return times.last_backward_end[static_cast<std::size_t>(a)] <
             times.last_backward_end[static_cast<std::size_t>(b)];
    });
    Ids stream;
    if (!overlap) {
      for (const std::int32_t actor : rank_actors(r)) {
        stream.insert(stream.end(), chain(actor).begin(), chain(actor).end());
      }
    }
    for (const int g : order) reduce_stage(r, g, stream);
    data_end_.insert(data_end_.end(), stream.begin(), stream.end());
  }
}

}  // namespace towtank::detail
