// SPDX-License-Identifier: Apache-2.0
#include "sim/lower.h"

#include <algorithm>
#include <numeric>

#include "core/contracts.h"
#include "core/text.h"
#include "sim/detail/background.h"
#include "sim/detail/lowering.h"
#include "sim/longest_path.h"

namespace towtank {
namespace detail {

Lowering::Lowering(const PlanProblem& problem, const Plan& plan, const LowerOptions& options)
    : problem_(problem),
      mesh_(problem, degrees_of(plan), plan.framework),
      layout_(layout_from(plan, *problem.workload)),
      model_(problem, mesh_, layout_),
      parts_(problem, mesh_, layout_, model_),
      apart_(apart_by(options.background, unit_levels(problem), problem.devices())),
      cast_(cast_of(plan, options, unit_levels(problem), apart_)),
      units_(problem, cast_.layout, static_cast<int>(cast_.actors.size()),
             cast_.classes > 1 ? plan.tensor * plan.context : 0, apart_, network_),
      options_(options),
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

LoweredStep Lowering::run() {
  step_ends();
  actions();
  resolve();
  reductions();
  finish();
  LoweredStep out{std::move(builder_).build(), std::move(network_)};
  if (!options_.background.empty()) {
    constexpr double kPieces = 200;  // of a step without contention
    add_background(options_.background, options_.seed,
                   Seconds{longest_path(out.tasks).makespan() / kPieces}, out.network);
  }
  return out;
}

std::int32_t Lowering::add(Task task, std::span<const std::int32_t> members,
                           std::span<const std::int32_t> before) {
  task.job = options_.job;
  const std::int32_t id = builder_.add(task, members);
  for (const std::int32_t b : before) builder_.depend(b, id);
  return id;
}
std::int32_t Lowering::communicate(const ReadyCommunication& c, Label label,
                                   std::span<const std::int32_t> members,
                                   std::span<const std::int32_t> before, const Place& place) {
  Task t;
  t.kind = TaskKind::kCommunication;
  t.stream = c.stream;
  t.component = c.component;
  t.label = label;
  t.duration = c.latency;
  t.transfer = c.transfer;
  t.first_flow = c.flows.first;
  t.flows = c.flows.count;
  t.stage = place.stage;
  t.microbatch = place.microbatch;
  t.part = place.part;
  return add(t, members, before);
}
void Lowering::step_ends() {
  bucket_ready_.resize(static_cast<std::size_t>(stages_));
  Ids gathers;
  for (int r = 0; r < layout_.pipeline; ++r) {
    Communication first;
    for (int g = r; g < stages_; g += layout_.pipeline) {
      const Communication c = parts_.step_ends(g);
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

}  // namespace detail

std::string link_names_fault(const PlanProblem& problem, const std::string& links) {
  std::string levels;
  for (const detail::UnitLevel& level : detail::unit_levels(problem)) {
    if (links == level.name) return "";
    const int units = (problem.devices() + level.size - 1) / level.size;
    for (int unit = 0; unit < units; ++unit) {
      const std::string name = detail::unit_name(level, unit);
      if (name == links || name.starts_with(links + " ")) return "";
    }
    levels += (levels.empty() ? "" : ", ") + in_quotes(level.name) + " (" +
              detail::unit_name(level, 0) + " to " + detail::unit_name(level, units - 1) + ")";
  }
  return "no link is named so here. There are " + levels;
}

LoweredStep lower(const PlanProblem& problem, const Plan& plan, const LowerOptions& options) {
  EXPECTS(problem.costs != nullptr);
  return detail::Lowering(problem, plan, options).run();
}

}  // namespace towtank
