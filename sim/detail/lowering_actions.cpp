// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "core/contracts.h"
#include "sim/detail/lowering.h"

namespace towtank::detail {
namespace {

double sum(const TimeSplit& s) { return std::accumulate(s.begin(), s.end(), 0.0); }
TimeSplit stretched(const ActionPart& part, double slowdown) {
  TimeSplit out = part.fixed;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += slowdown * part.work[i];
  return out;
}

Label label_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return Label::kForward;
    case Phase::kBackward:
      return Label::kBackward;
    case Phase::kInputGrad:
      return Label::kInputGrad;
    case Phase::kWeightGrad:
      return Label::kWeightGrad;
  }
  contract_violated("EXPECTS", "a known phase", __FILE__, __LINE__);
}

}  // namespace

const std::vector<ReadyPart>& Lowering::ready_parts(int stage, Phase phase) {
  auto& known = ready_[static_cast<std::size_t>(stage)];
  for (const auto& [p, parts] : known) {
    if (p == phase) return parts;
  }
  std::vector<ReadyPart> out;
  const int rank = stage % layout_.pipeline;
  const Ids members = rank_actors(rank);
  for (const ActionPart& part : parts_.of(stage, phase)) {
    ReadyPart& r = out.emplace_back();
    r.trailing = part.trailing;
    for (const std::int32_t actor : members) {
      const TimeSplit split = stretched(part, slowdown(actor));
      r.compute.push_back(sum(split));
      r.split.push_back(builder_.add_split(split));
      auto& serial = r.serial.emplace_back();
      for (const Exchange& e : part.serial) {
        const Ids self{actor};
        serial.push_back(ready(e.communication, e.stream, e.component,
                               units_.collective(e.communication, self)));
      }
    }
    if (!part.beside || part.beside->time() <= 0) continue;
    r.beside = r.beside_last = data_collective(*part.beside, members);
    if (model_.data().by_layer()) continue;
    Communication quiet = *part.beside;
    quiet.load = {};
    r.beside_last = data_collective(quiet, members);
  }
  return known.emplace_back(phase, std::move(out)).second;
}

ReadyCommunication Lowering::hop(int stage, bool backward, std::int32_t from, std::int32_t to) {
  const auto [at, added] =
      hops_.try_emplace({2 * stage + (backward ? 1 : 0), from}, ReadyCommunication{});
  if (added) {
    const int boundary = backward ? stage : stage + 1;  // the stage behind the cut
    const Communication c =
        send_of(problem_, mesh_.boundary(layout_.stages[static_cast<std::size_t>(boundary)].first),
                model_.data().pair_group());
    at->second =
        ready(c, Stream::kPipeline, TimeComponent::kPipeline, units_.send(c, from, to, !backward));
  }
  return at->second;
}

void Lowering::actions() {
  const PipelineShape shape{layout_.pipeline, layout_.microbatches, layout_.stages_per_rank};
  const PipelineSchedule schedule = make_schedule(layout_.schedule, shape);
  for (int r = 0; r < layout_.pipeline; ++r) {
    const std::vector<Action>& order = schedule.order[RankId{r}];
    std::vector<std::size_t> last(static_cast<std::size_t>(stages_));
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].phase == Phase::kBackward || order[i].phase == Phase::kWeightGrad) {
        last[static_cast<std::size_t>(order[i].stage.value)] = i;
      }
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Phase phase = order[i].phase;
      action(r, order[i],
             (phase == Phase::kBackward || phase == Phase::kWeightGrad) &&
                 last[static_cast<std::size_t>(order[i].stage.value)] == i);
    }
  }
}

/// Bucket k of n is ready when k/n of the last backward of its stage has run.
std::vector<Lowering::Ids> Lowering::bucket_delays(int rank, const Action& a,
                                                   std::span<const std::int32_t> entries) {
  const int stage = a.stage.value;
  const int n = model_.data().reduction(model_.stage_sums(stage)).buckets;
  const bool sends = !async_ && a.phase == Phase::kBackward && stage > 0 && layout_.pipeline > 1;
  std::vector<Ids> buckets(static_cast<std::size_t>(n));
  for (int c = 0; c < cast_.classes; ++c) {
    double duration = 0;
    for (const ActionPart& p : parts_.of(stage, a.phase)) {
      ActionPart slow = p;
      for (double& w : slow.work) w *= slowdown(cast_.actor(rank, c));
      duration += slow.time();
    }
    const std::int32_t self = cast_.actor(rank, c);
    if (sends) {
      const ReadyCommunication h =
          hop(stage, true, self, cast_.actor((stage - 1) % layout_.pipeline, c));
      duration += h.latency + h.transfer;
    }
    std::int32_t before = entries[static_cast<std::size_t>(c)];
    for (int k = 0; k < n; ++k) {
      Task delay;
      delay.label = Label::kBucketReady;
      delay.duration = duration / n;
      delay.stage = stage;
      delay.microbatch = a.microbatch.value;
      delay.part = k;
      delay.split = ready_parts(stage, a.phase).back().split[static_cast<std::size_t>(c)];
      before = add(delay, Ids{self}, Ids{before});
      buckets[static_cast<std::size_t>(k)].push_back(before);
    }
  }
  return buckets;
}

void Lowering::part(int rank, const Action& a, const ReadyPart& part, bool last_of_stage) {
  const Label label = label_of(a.phase);
  std::vector<Ids> heads;
  Ids all;
  for (int c = 0; c < cast_.classes; ++c) {
    heads.push_back(chain(cast_.actor(rank, c)));
    all.insert(all.end(), heads.back().begin(), heads.back().end());
  }
  for (int c = 0; c < cast_.classes; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const Ids self{cast_.actor(rank, c)};
    Task t;
    t.kind = TaskKind::kCompute;
    t.label = label;
    t.duration = part.compute[at];
    t.split = part.split[at];
    t.stage = a.stage.value;
    t.microbatch = a.microbatch.value;
    Ids end = heads[at];
    if (t.duration > 0) end = {add(t, self, end)};
    for (const ReadyCommunication& e : part.serial[at]) {
      end = {communicate(e, Label::kExchange, self, end, {a.stage.value, a.microbatch.value, -1})};
    }
    chain(self.front()) = end;
  }
  if (!part.beside) return;
  const std::int32_t data =
      communicate(last_of_stage ? *part.beside_last : *part.beside, Label::kGather,
                  rank_actors(rank), all, {a.stage.value, a.microbatch.value, -1});
  for (const std::int32_t actor : rank_actors(rank)) {
    Task t;
    t.duration = part.trailing;
    t.component = TimeComponent::kData;
    const std::int32_t trailing = add(t, Ids{actor}, Ids{data});
    Ids ends = chain(actor);
    ends.push_back(trailing);
    chain(actor) = {join(Ids{actor}, ends)};
  }
}

/// Passes an activation or gradient on, and says when the other stage has it.
void Lowering::send(int rank, const Action& a, bool backward) {
  const int stage = a.stage.value;
  const int other = backward ? stage - 1 : stage + 1;
  for (int c = 0; c < cast_.classes; ++c) {
    const std::int32_t self = cast_.actor(rank, c);
    std::int32_t& out =
        (backward ? gradient_out_ : forward_out_)[cell(c, stage, a.microbatch.value)];
    if (layout_.pipeline > 1 && other >= 0 && other < stages_) {
      const std::int32_t peer = cast_.actor(other % layout_.pipeline, c);
      out = communicate(hop(stage, backward, self, peer), Label::kSend, Ids{self, peer},
                        chain(self), {stage, a.microbatch.value, -1});
      if (!async_) chain(self) = {out};
    } else if (other >= 0 && other < stages_) {
      out = join(Ids{self}, chain(self));
    }
  }
}

void Lowering::action(int rank, const Action& a, bool last_of_stage) {
  const int stage = a.stage.value;
  const bool gradient = a.phase == Phase::kBackward || a.phase == Phase::kInputGrad;
  const bool buckets = last_of_stage && mesh_.rules().overlap_grad_reduce.value &&
                       model_.data().reduction(model_.stage_sums(stage)).time.value > 0;
  Ids entries;
  for (int c = 0; c < cast_.classes; ++c) {
    const std::int32_t self = cast_.actor(rank, c);
    const std::int32_t entry = join(Ids{self}, chain(self));
    entries.push_back(entry);
    chain(self) = {entry};
    if (a.phase == Phase::kForward && stage > 0) {
      pending_.push_back({entry, cell(c, stage - 1, a.microbatch.value), false});
    }
    if (gradient && stage + 1 < stages_) {
      pending_.push_back({entry, cell(c, stage + 1, a.microbatch.value), true});
    }
  }
  std::vector<Ids> waits;
  if (buckets) waits = bucket_delays(rank, a, entries);
  for (const ReadyPart& p : ready_parts(stage, a.phase)) part(rank, a, p, last_of_stage);
  if (a.phase == Phase::kForward || gradient) send(rank, a, gradient);
  if (!buckets) return;
  for (const std::int32_t actor : rank_actors(rank)) {
    waits.back().insert(waits.back().end(), chain(actor).begin(), chain(actor).end());
  }
  bucket_ready_[static_cast<std::size_t>(stage)] = std::move(waits);
}

void Lowering::resolve() {
  for (const Pending& p : pending_) {
    const std::int32_t producer = (p.gradient ? gradient_out_ : forward_out_)[p.producer];
    ENSURES(producer >= 0);
    builder_.depend(producer, p.consumer);
  }
}

}  // namespace towtank::detail
