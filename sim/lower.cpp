// SPDX-License-Identifier: Apache-2.0
#include "sim/lower.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/contracts.h"
#include "placement/detail/candidate.h"
#include "sim/detail/actors.h"
#include "sim/detail/phases.h"

namespace towtank {
namespace {

using namespace detail;

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }
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

struct FlowRange {
  std::int32_t first = 0, count = 0;
};

/// A communication ready to be made a task.
struct ReadyCommunication {
  Stream stream = Stream::kData;
  TimeComponent component = TimeComponent::kData;
  double latency = 0, transfer = 0;
  FlowRange flows;
};

/// One part of an action, with what depends on the actor worked out for each class of replicas.
struct ReadyPart {
  std::vector<double> compute;                          ///< by class
  std::vector<std::int32_t> split;                      ///< by class
  std::vector<std::vector<ReadyCommunication>> serial;  ///< by class
  std::optional<ReadyCommunication> beside;
  double trailing = 0;
};

class Lowering {
 public:
  Lowering(const PlanProblem& problem, const Plan& plan, const LowerOptions& options)
      : problem_(problem),
        mesh_(problem, degrees_of(plan), plan.framework),
        layout_(layout_from(plan, *problem.workload)),
        model_(problem, mesh_, layout_),
        parts_(problem, mesh_, layout_, model_),
        cast_(cast_of(plan, options)),
        units_(problem.view, cast_.layout, static_cast<int>(cast_.actors.size()),
               cast_.classes > 1 ? plan.tensor * plan.context : 0, network_),
        job_(options.job),
        stages_(static_cast<int>(layout_.stages.size())),
        async_((layout_.stages_per_rank > 1 ? mesh_.rules().async_p2p_interleaved
                                            : mesh_.rules().async_p2p)
                   .value) {
    for (const Actor& actor : cast_.actors) builder_.add_actor(actor);
    everyone_.resize(cast_.actors.size());
    std::iota(everyone_.begin(), everyone_.end(), 0);
    chain_.resize(cast_.actors.size());
    const std::size_t cells = static_cast<std::size_t>(cast_.classes) *
                              static_cast<std::size_t>(stages_) *
                              static_cast<std::size_t>(layout_.microbatches);
    forward_out_.assign(cells, -1);
    gradient_out_.assign(cells, -1);
    ready_.resize(static_cast<std::size_t>(stages_));
  }

  LoweredStep run() {
    first_gathers();
    actions();
    resolve();
    reductions();
    finish();
    return {std::move(builder_).build(), std::move(network_)};
  }

 private:
  using Ids = std::vector<std::int32_t>;

  // --- small makers -----------------------------------------------------------------------------
  std::int32_t add(Task task, std::span<const std::int32_t> members,
                   std::span<const std::int32_t> before) {
    task.job = job_;
    const std::int32_t id = builder_.add(task, members);
    for (const std::int32_t b : before) builder_.depend(b, id);
    return id;
  }
  std::int32_t join(std::span<const std::int32_t> members, std::span<const std::int32_t> before) {
    return add({}, members, before);
  }
  std::int32_t communicate(const ReadyCommunication& c, Label label,
                           std::span<const std::int32_t> members,
                           std::span<const std::int32_t> before, int stage = -1,
                           int microbatch = -1, int part = -1) {
    Task t;
    t.kind = TaskKind::kCommunication;
    t.stream = c.stream;
    t.component = c.component;
    t.label = label;
    t.duration = c.latency;
    t.transfer = c.transfer;
    t.first_flow = c.flows.first;
    t.flows = c.flows.count;
    t.stage = stage;
    t.microbatch = microbatch;
    t.part = part;
    return add(t, members, before);
  }
  ReadyCommunication ready(const Communication& c, Stream stream, TimeComponent component,
                           const std::vector<Flow>& flows) {
    return {stream,
            component,
            c.latency,
            c.transfer,
            {builder_.add_flows(flows), static_cast<std::int32_t>(flows.size())}};
  }
  ReadyCommunication data_collective(const Communication& c, std::span<const std::int32_t> actors) {
    return ready(c, Stream::kData, TimeComponent::kData, units_.collective(c, actors));
  }
  /// Actors of one pipeline rank.
  Ids rank_actors(int rank) const {
    Ids out;
    for (int c = 0; c < cast_.classes; ++c) out.push_back(cast_.actor(rank, c));
    return out;
  }
  Ids& chain(std::int32_t actor) { return chain_[static_cast<std::size_t>(actor)]; }
  double slowdown(std::int32_t actor) const {
    return cast_.actors[static_cast<std::size_t>(actor)].slowdown;
  }
  std::size_t cell(int replica_class, int stage, int microbatch) const {
    const auto of = [](int value) { return static_cast<std::size_t>(value); };
    return (of(replica_class) * of(stages_) + of(stage)) * of(layout_.microbatches) +
           of(microbatch);
  }

  void first_gathers();
  void actions();
  void action(int rank, const Action& a, bool last_of_stage);
  void part(int rank, const Action& a, const ReadyPart& part);
  void send(int rank, const Action& a, bool backward);
  std::vector<Ids> bucket_delays(int rank, const Action& a, std::span<const std::int32_t> entries);
  const std::vector<ReadyPart>& ready_parts(int stage, Phase phase);
  ReadyCommunication hop(int stage, bool backward, std::int32_t from, std::int32_t to);
  void resolve();
  void reductions();
  void reduce_stage(int rank, int stage, Ids& stream);
  void finish();
  std::int32_t optimizer(int rank, std::int32_t before);
  StageSums rank_sums(int rank) const;

  const PlanProblem& problem_;
  Mesh mesh_;
  Layout layout_;
  StepModel model_;
  ActionParts parts_;
  Cast cast_;
  Network network_;
  Units units_;
  int job_;
  int stages_;
  bool async_;
  TaskGraphBuilder builder_;
  Ids everyone_;
  std::vector<Ids> chain_;          ///< by actor: what its next action follows
  Ids forward_out_, gradient_out_;  ///< by cell: when the next stage has the data
  struct Pending {
    std::int32_t consumer;
    std::size_t producer;  ///< cell
    bool gradient;
  };
  std::vector<Pending> pending_;
  std::vector<std::vector<std::pair<Phase, std::vector<ReadyPart>>>> ready_;  ///< by stage
  std::vector<std::vector<Ids>> bucket_ready_;  ///< by stage, bucket: what it waits for
  std::map<std::pair<int, std::int32_t>, ReadyCommunication> hops_;  ///< (2 stage + backward, from)
  Ids data_end_;  ///< last reduction of each rank
};

void Lowering::first_gathers() {
  bucket_ready_.resize(static_cast<std::size_t>(stages_));
  Ids gathers;
  for (int r = 0; r < layout_.pipeline; ++r) {
    Communication first;
    for (int g = r; g < stages_; g += layout_.pipeline) {
      const Communication c = parts_.first_gather(g);
      if (c.time() > first.time()) first = c;
    }
    if (first.time() <= 0) continue;
    const Ids members = rank_actors(r);
    gathers.push_back(communicate(data_collective(first, members), Label::kGather, members, {}));
  }
  if (gathers.empty()) return;
  const std::int32_t all = join(everyone_, gathers);
  for (Ids& chain : chain_) chain = {all};
}

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
    if (part.beside && part.beside->time() > 0) r.beside = data_collective(*part.beside, members);
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

void Lowering::part(int rank, const Action& a, const ReadyPart& part) {
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
      end = {communicate(e, Label::kExchange, self, end, a.stage.value, a.microbatch.value)};
    }
    chain(self.front()) = end;
  }
  if (!part.beside) return;
  const std::int32_t data = communicate(*part.beside, Label::kGather, rank_actors(rank), all,
                                        a.stage.value, a.microbatch.value);
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
                        chain(self), stage, a.microbatch.value);
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
  for (const ReadyPart& p : ready_parts(stage, a.phase)) part(rank, a, p);
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
    stream = {communicate(bucket, Label::kReduce, members, before, stage, -1, k)};
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

StageSums Lowering::rank_sums(int rank) const {
  StageSums all;
  for (int g = rank; g < stages_; g += layout_.pipeline) {
    const StageSums& s = model_.stage_sums(g);
    all.dense_parameters += s.dense_parameters;
    all.expert_parameters += s.expert_parameters;
  }
  return all;
}

/// Optimizer of a rank, then the gather of its parameters as far as nothing hides it.
std::int32_t Lowering::optimizer(int rank, std::int32_t before) {
  const StageSums sums = rank_sums(rank);
  const DataCost after = model_.data().after_reduction(
      sums, model_.stage_times()[static_cast<std::size_t>(rank)].forward);
  const Ids members = rank_actors(rank);
  Ids ends;
  for (const std::int32_t actor : members) {
    Task t;
    t.kind = TaskKind::kCompute;
    t.component = TimeComponent::kOptimizer;
    t.label = Label::kOptimizer;
    t.duration = slowdown(actor) * after.optimizer.value;
    ends.push_back(add(t, Ids{actor}, Ids{before}));
  }
  if (after.gather_exposed.value <= 0) return join(members, ends);
  const Communication gather = gather_of(problem_, mesh_, layout_, model_.data(), sums);
  const Communication exposed = scaled(gather, after.gather_exposed.value / gather.time());
  return communicate(data_collective(exposed, members), Label::kGather, members, ends);
}

void Lowering::finish() {
  Ids ends = data_end_;
  for (const Ids& chain : chain_) ends.insert(ends.end(), chain.begin(), chain.end());
  std::int32_t at = join(everyone_, ends);
  if (model_.data().tied_reduction().value > 0) {
    Ids members = rank_actors(0);
    const Ids last = rank_actors(layout_.pipeline - 1);
    members.insert(members.end(), last.begin(), last.end());
    const Communication tied =
        collective_of(problem_, Collective::kAllReduce,
                      bytes_from(mesh_.tied_parameters() * mesh_.rules().reduce_bytes.value),
                      model_.data().pair_group());
    at = communicate(data_collective(tied, members), Label::kTiedReduce, members, Ids{at});
  }
  ReadyCommunication norm;
  norm.latency = model_.data().norm_reduction().value;
  at = communicate(norm, Label::kNorm, everyone_, Ids{at});
  Ids ranks;
  for (int r = 0; r < layout_.pipeline; ++r) ranks.push_back(optimizer(r, at));
  at = join(everyone_, ranks);
  Task gap;
  gap.component = TimeComponent::kHost;
  gap.label = Label::kHostGap;
  gap.duration = mesh_.runtime().per_step.value;
  add(gap, everyone_, Ids{at});
  const Workload& w = *problem_.workload;
  if (!w.input_bytes || !problem_.platform->storage_bandwidth) return;
  Task input;
  input.component = TimeComponent::kInput;
  input.label = Label::kInput;
  input.duration =
      (Bytes{w.global_batch * w.input_bytes->value} / *problem_.platform->storage_bandwidth).value;
  add(input, everyone_, {});
}

}  // namespace

LoweredStep lower(const PlanProblem& problem, const Plan& plan, const LowerOptions& options) {
  EXPECTS(problem.costs != nullptr);
  return Lowering(problem, plan, options).run();
}

}  // namespace towtank
