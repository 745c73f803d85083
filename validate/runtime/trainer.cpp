// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/trainer.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/contracts.h"
#include "core/rng.h"
#include "validate/runtime/memory_meter.h"

namespace towtank {
namespace {

/// Receives are asked for this many actions ahead of the one that needs them.
constexpr std::size_t kReceivesAhead = 2;

using Segment = std::vector<Flat*>;

Segment flats_of(Unit& unit) {
  Segment out;
  for (auto& flat : unit.flats) out.push_back(flat.get());
  return out;
}

void append(Segment& to, const Segment& more) { to.insert(to.end(), more.begin(), more.end()); }

void need(const Segment& segment) {
  for (Flat* flat : segment) flat->need();
}
void start_gather(const Segment& segment) {
  for (Flat* flat : segment) flat->start_gather();
}
void release(const Segment& segment) {
  for (Flat* flat : segment) flat->release();
}

}  // namespace

/// Layers [first, last) of the model on this rank, with the ends of the pipeline.
struct Trainer::Stage {
  int number = 0;
  PlanStage layers;
  std::unique_ptr<EmbeddingLayer> embedding;
  std::vector<std::unique_ptr<BlockLayer>> blocks;
  std::unique_ptr<HeadLayer> head;
  /// What is gathered together, in the order of forward: ends and blocks.
  std::vector<Segment> segments;
  std::vector<Segment> reduced;  ///< of a segment: what is complete after its backward
  int done = 0;                  ///< microbatches whose gradients are complete
};

/// A microbatch between its forward and its backward.
struct Trainer::Live {
  struct Block {
    at::Tensor input, output;  ///< no output: run again
  };
  std::vector<Block> blocks;
  at::Tensor head_input, loss;
  at::Tensor tokens, targets;
  WeightWork weights;
};

Trainer::Trainer(Rendezvous& rendezvous, const Plan& plan, ModelShape shape,
                 const TrainOptions& options, Recorder& recorder)
    : plan_(plan),
      options_(options),
      recorder_(recorder),
      place_(coordinates_of(plan, rendezvous.place().rank)),
      rank_(rendezvous.place().rank),
      groups_(make_groups(rendezvous, plan, recorder)) {
  world_.shape = std::move(shape);
  world_.groups = &groups_;
  world_.recorder = &recorder_;
  world_.tensors.tensor = groups_.tensor.get();
  world_.tensors.expert = groups_.expert.get();
  world_.tensors.sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  world_.state = {plan.sharding_stage, options.dtype, options.seed};
  const int microbatches = options.global_batch / (plan.data * plan.microbatch);
  schedule_ = make_schedule(plan.schedule, {plan.pipeline, microbatches, plan.stages_per_rank});
  make_stages();
}

Trainer::~Trainer() = default;

void Trainer::make_stages() {
  const int stages = static_cast<int>(plan_.stages.size());
  const auto table_for = [&](const std::string& name) {
    return std::make_unique<Table>(world_, name);
  };
  for (int number = place_.pipeline; number < stages; number += plan_.pipeline) {
    auto stage = std::make_unique<Stage>();
    stage->number = number;
    stage->layers = plan_.stages[static_cast<std::size_t>(number)];
    const auto add_segment = [&](Segment segment, Segment reduced) {
      stage->segments.push_back(std::move(segment));
      stage->reduced.push_back(std::move(reduced));
    };
    if (number == 0) {
      table_ = table_for("table");
      stage->embedding = std::make_unique<EmbeddingLayer>(world_, *table_);
      Segment segment = flats_of(table_->unit());
      append(segment, flats_of(stage->embedding->unit()));
      add_segment(segment, segment);
    }
    for (int layer = stage->layers.first; layer < stage->layers.last; ++layer) {
      stage->blocks.push_back(std::make_unique<BlockLayer>(world_, layer));
      const Segment segment = flats_of(stage->blocks.back()->unit());
      add_segment(segment, segment);
    }
    if (number == stages - 1) {
      const bool own = !world_.shape.tied || table_ == nullptr;
      if (own) head_table_ = table_for(world_.shape.tied ? "table" : "head");
      Table& table = own ? *head_table_ : *table_;
      stage->head = std::make_unique<HeadLayer>(world_, table);
      Segment reduced = flats_of(stage->head->unit());
      // A table that the embedding of this rank shares is complete there.
      if (own) append(reduced, flats_of(table.unit()));
      Segment segment = flats_of(stage->head->unit());
      append(segment, flats_of(table.unit()));
      add_segment(segment, reduced);
    }
    stages_.push_back(std::move(stage));
  }
}

std::pair<at::Tensor, at::Tensor> Trainer::batch(int microbatch) const {
  const int replica_batch = options_.global_batch / plan_.data;
  const int first = place_.data * replica_batch + microbatch * plan_.microbatch;
  const std::int64_t s = world_.shape.tokens;
  at::Tensor samples = at::empty({plan_.microbatch, s + 1}, at::kLong);
  auto* out = samples.data_ptr<std::int64_t>();
  for (int i = 0; i < plan_.microbatch; ++i) {
    // Two rounds, so that steps and samples do not share sequences.
    Rng step_seed(options_.seed + static_cast<std::uint64_t>(step_));
    Rng tokens(step_seed.next() + static_cast<std::uint64_t>(first + i));
    for (std::int64_t j = 0; j <= s; ++j) {
      *out++ = tokens.integer(0, world_.shape.vocabulary - 1);
    }
  }
  const at::Tensor by_token = samples.t();
  return {by_token.narrow(0, 0, s).contiguous(), by_token.narrow(0, 1, s).contiguous()};
}

double Trainer::step(int number) {
  const ScopedSpan span(recorder_, SpanKind::kStep);
  step_ = number;
  loss_ = 0;
  for (Flat* flat : flats()) flat->clear_gradients();
  for (auto& stage : stages_) stage->done = 0;
  const std::vector<Action>& order = schedule_.order[RankId{place_.pipeline}];
  for (std::size_t i = 0; i < order.size(); ++i) {
    post_receives(i);
    run(order[i]);
  }
  optimize(number);
  groups_.mail->flush();
  return place_.tensor == 0 ? loss_ : 0;  // tensor ranks have the same
}

void Trainer::run(const Action& action) {
  Stage& stage = *stages_[static_cast<std::size_t>(action.stage.value / plan_.pipeline)];
  const int microbatch = action.microbatch.value;
  switch (action.phase) {
    case Phase::kForward:
      return forward(stage, microbatch);
    case Phase::kBackward:
      return backward(stage, microbatch, false);
    case Phase::kInputGrad:
      return backward(stage, microbatch, true);
    case Phase::kWeightGrad:
      return weight_gradients(stage, microbatch);
  }
}

at::Tensor Trainer::block_forward(Stage& stage, std::size_t block, Live& live, at::Tensor x) {
  const int index = static_cast<int>(block);
  const int full = stage.layers.recompute_full;
  const bool core = index >= full && index < full + stage.layers.recompute_selective;
  if (index < full) {
    const at::NoGradGuard no_gradients;
    live.blocks.push_back({x, at::Tensor()});
    return stage.blocks[block]->forward(x, false);
  }
  const at::Tensor input = x.detach().requires_grad_(true);
  const at::Tensor output = stage.blocks[block]->forward(input, core);
  live.blocks.push_back({input, output});
  return output.detach();
}

void Trainer::forward(Stage& stage, int microbatch) {
  const ScopedSpan span(recorder_, SpanKind::kForward, stage.number, microbatch);
  const MemoryScope memory(MemoryKind::kActivations);
  Live& live = live_[{stage.number, microbatch}];
  if (stage.embedding || stage.head) std::tie(live.tokens, live.targets) = batch(microbatch);
  at::Tensor x;
  if (stage.number > 0) x = incoming(stage.number, microbatch, true);
  const std::size_t first_block = stage.embedding ? 1 : 0;
  for (std::size_t i = 0; i < stage.segments.size(); ++i) {
    need(stage.segments[i]);
    if (i + 1 < stage.segments.size()) start_gather(stage.segments[i + 1]);
    if (i < first_block) {
      x = stage.embedding->forward(live.tokens);
    } else if (i - first_block < stage.blocks.size()) {
      x = block_forward(stage, i - first_block, live, std::move(x));
    } else {
      live.head_input = x.detach().requires_grad_(true);
      const double scale = 1.0 / (static_cast<double>(options_.global_batch) *
                                  static_cast<double>(world_.shape.tokens));
      live.loss = stage.head->loss(live.head_input, live.targets, scale);
      loss_ += live.loss.item<double>();
    }
    release(stage.segments[i]);
  }
  if (!stage.head) outgoing(stage.number + 1, microbatch, true, x);
}

at::Tensor Trainer::block_backward(Stage& stage, std::size_t block, Live& live,
                                   const at::Tensor& gradient) {
  Live::Block own = std::exchange(live.blocks[block], {});
  if (!own.output.defined()) {
    const ScopedSpan span(recorder_, SpanKind::kRecompute, stage.number);
    const MemoryScope memory(MemoryKind::kActivations);
    own.input = own.input.detach().requires_grad_(true);
    own.output = stage.blocks[block]->forward(own.input, false);
  }
  torch::autograd::backward({own.output}, {gradient});
  return own.input.grad();
}

void Trainer::backward(Stage& stage, int microbatch, bool defer_weights) {
  const ScopedSpan span(recorder_, defer_weights ? SpanKind::kInputGrad : SpanKind::kBackward,
                        stage.number, microbatch);
  const MemoryScope memory(MemoryKind::kWorking);
  Live& live = live_.at({stage.number, microbatch});
  world_.tensors.deferred = defer_weights ? &live.weights : nullptr;
  const bool last = !defer_weights && ++stage.done == schedule_.shape.microbatches;
  at::Tensor gradient;
  if (!stage.head) gradient = incoming(stage.number, microbatch, false);
  const std::size_t first_block = stage.embedding ? 1 : 0;
  for (std::size_t i = stage.segments.size(); i-- > 0;) {
    need(stage.segments[i]);
    if (i > 0) start_gather(stage.segments[i - 1]);
    if (i < first_block) {
      stage.embedding->backward(live.tokens, gradient);
    } else if (i - first_block < stage.blocks.size()) {
      gradient = block_backward(stage, i - first_block, live, gradient);
    } else {
      torch::autograd::backward({live.loss});
      gradient = live.head_input.grad();
      live.head_input = live.loss = at::Tensor();
    }
    release(stage.segments[i]);
    if (defer_weights) continue;
    for (Flat* flat : stage.reduced[i]) flat->microbatch_done(last);
  }
  world_.tensors.deferred = nullptr;
  if (stage.number > 0) outgoing(stage.number - 1, microbatch, false, gradient);
  if (!defer_weights) live_.erase({stage.number, microbatch});
}

void Trainer::weight_gradients(Stage& stage, int microbatch) {
  const ScopedSpan span(recorder_, SpanKind::kWeightGrad, stage.number, microbatch);
  const MemoryScope memory(MemoryKind::kWorking);
  live_.at({stage.number, microbatch}).weights.run();
  live_.erase({stage.number, microbatch});
  const bool last = ++stage.done == schedule_.shape.microbatches;
  for (std::size_t i = stage.segments.size(); i-- > 0;) {
    for (Flat* flat : stage.reduced[i]) flat->microbatch_done(last);
  }
}

namespace {

/// A message to `stage`: its activation or its gradient.
int tag_of(int stage, int microbatch, int microbatches, bool forward) {
  return (stage * microbatches + microbatch) * 2 + (forward ? 0 : 1);
}

}  // namespace

void Trainer::post_receives(std::size_t next) {
  const std::vector<Action>& order = schedule_.order[RankId{place_.pipeline}];
  const int stages = static_cast<int>(plan_.stages.size());
  const int stride = group_of(plan_, Axis::kPipeline).stride;
  for (std::size_t i = next; i < std::min(order.size(), next + 1 + kReceivesAhead); ++i) {
    const Action& a = order[i];
    if (a.phase == Phase::kWeightGrad) continue;
    const bool forward = a.phase == Phase::kForward;
    const int from = a.stage.value + (forward ? -1 : 1);
    if (from < 0 || from >= stages) continue;
    const int peer = from % plan_.pipeline;
    if (peer == place_.pipeline) continue;
    const int tag =
        tag_of(a.stage.value, a.microbatch.value, schedule_.shape.microbatches, forward);
    if (expected_.contains(tag)) continue;
    const MemoryScope memory(forward ? MemoryKind::kActivations : MemoryKind::kWorking);
    const std::int64_t divided = world_.tensors.sequence_parallel ? plan_.tensor : 1;
    at::Tensor x = at::empty({world_.shape.tokens / divided, plan_.microbatch, world_.shape.hidden},
                             at::TensorOptions().dtype(options_.dtype));
    Pending pending = groups_.mail->receive(x, rank_ + (peer - place_.pipeline) * stride, tag);
    expected_.emplace(tag, std::pair(x, std::move(pending)));
  }
}

at::Tensor Trainer::incoming(int stage, int microbatch, bool forward) {
  const int tag = tag_of(stage, microbatch, schedule_.shape.microbatches, forward);
  if (auto node = local_.extract(tag)) return node.mapped();
  auto node = expected_.extract(tag);
  EXPECTS(!node.empty());
  node.mapped().second.wait();
  return node.mapped().first;
}

void Trainer::outgoing(int stage, int microbatch, bool forward, const at::Tensor& x) {
  const int tag = tag_of(stage, microbatch, schedule_.shape.microbatches, forward);
  const int peer = stage % plan_.pipeline;
  if (peer == place_.pipeline) {
    local_[tag] = x;
    return;
  }
  const int stride = group_of(plan_, Axis::kPipeline).stride;
  groups_.mail->send(x.detach().contiguous(), rank_ + (peer - place_.pipeline) * stride, tag);
}

std::vector<Flat*> Trainer::flats() const {
  std::vector<Flat*> out;
  for (const auto& stage : stages_) {
    for (std::size_t i = stage->segments.size(); i-- > 0;) append(out, stage->reduced[i]);
  }
  return out;
}

void Trainer::optimize(int number) {
  const ScopedSpan span(recorder_, SpanKind::kOptimizer);
  for (Flat* flat : flats()) flat->finish_gradients();
  // Two stages hold the tied table: its gradient is the sum of both.
  if (world_.shape.tied && plan_.pipeline > 1) {
    Table* table = table_ ? table_.get() : head_table_.get();
    if (table != nullptr) {
      groups_.ends->all_reduce(table->unit().flats.front()->owned_gradient()).wait();
    }
  }
  for (Flat* flat : flats()) flat->step(options_.adam, number);
  for (Flat* flat : flats()) flat->start_parameter_gather();
}

std::vector<GradientPiece> Trainer::gradients() const {
  std::vector<GradientPiece> out;
  for (const Flat* flat : flats()) {
    if (!flat->owner()) continue;
    const at::Tensor owned = flat->owned_gradient().to(at::kDouble);
    const std::int64_t begin = flat->owned_begin(), end = begin + owned.numel();
    for (const Parameter& p : flat->parameters()) {
      const std::int64_t first = std::max(begin, p.offset);
      const std::int64_t last = std::min(end, p.offset + p.numel());
      if (first >= last) continue;
      const double* values = owned.data_ptr<double>() + (first - begin);
      out.push_back({p.name, p.whole, p.split, p.part, p.parts, first - p.offset,
                     std::vector<double>(values, values + (last - first))});
    }
  }
  return out;
}

}  // namespace towtank
