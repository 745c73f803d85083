// SPDX-License-Identifier: Apache-2.0
// Backward passes are written by hand: each is compared with what the loss does when one number is
// moved a little. In fp64 a central difference of step h is wrong by h^2 and 1e-16 / h.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/rng.h"
#include "validate/runtime/layers.h"

namespace towtank {
namespace {

constexpr double kStep = 1e-5;

/// One process's groups, a world of one shape.
struct AloneWorld {
  explicit AloneWorld(const BlockShape& block, bool layer_norm) {
    rendezvous = std::make_unique<Rendezvous>(RankPlace{});
    groups = make_groups(*rendezvous, plan, recorder);
    world.shape.hidden = 8;
    world.shape.vocabulary = 12;
    world.shape.tokens = 6;
    world.shape.final_layer_norm = layer_norm;
    world.shape.blocks = {block};
    world.groups = &groups;
    world.recorder = &recorder;
    world.tensors.tensor = groups.tensor.get();
    world.tensors.expert = groups.expert.get();
    world.state.dtype = at::kDouble;
  }
  Plan plan;
  Recorder recorder;
  std::unique_ptr<Rendezvous> rendezvous;
  RankGroups groups;
  LayerWorld world;
};

using Loss = std::function<at::Tensor(const at::Tensor&)>;

/// The slope of the loss at element i of a tensor, moved in place.
double slope(const at::Tensor& moved, std::int64_t i, const std::function<double()>& loss) {
  double& element = moved.data_ptr<double>()[i];
  const double before = element;
  element = before + kStep;
  const double above = loss();
  element = before - kStep;
  const double below = loss();
  element = before;
  return (above - below) / (2 * kStep);
}

void expect_gradients(const Loss& loss, at::Tensor x, std::vector<Flat*> flats) {
  // Norms and biases start as ones and zeros: other numbers show more.
  for (Flat* flat : flats) {
    for (std::size_t p = 0; p < flat->parameters().size(); ++p) {
      flat->value(p).add_(at::randn_like(flat->value(p)).mul_(0.3));
    }
    flat->clear_gradients();
  }
  x = x.detach().requires_grad_(true);
  torch::autograd::backward({loss(x)});
  const at::NoGradGuard no_gradients;
  const auto value = [&] { return loss(x).item<double>(); };
  Rng rng(7);
  for (int n = 0; n < 6; ++n) {
    const std::int64_t i = rng.integer(0, x.numel() - 1);
    EXPECT_NEAR(x.grad().contiguous().data_ptr<double>()[i], slope(x.detach(), i, value), 1e-7);
  }
  for (Flat* flat : flats) {
    for (std::size_t p = 0; p < flat->parameters().size(); ++p) {
      const at::Tensor own = flat->value(p);
      const at::Tensor gradient = flat->gradient(p);
      for (int n = 0; n < 2; ++n) {
        const std::int64_t i = rng.integer(0, own.numel() - 1);
        EXPECT_NEAR(gradient.data_ptr<double>()[i], slope(own, i, value), 1e-7)
            << flat->parameters()[p].name << " [" << i << "]";
      }
    }
  }
}

void expect_block_gradients(const BlockShape& shape) {
  AloneWorld alone(shape, shape.layer_norm);
  BlockLayer block(alone.world, 0);
  at::manual_seed(3);
  const auto fp64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor x = at::randn({6, 2, 8}, fp64), weights = at::randn({6, 2, 8}, fp64);
  std::vector<Flat*> flats;
  for (auto& flat : block.unit().flats) flats.push_back(flat.get());
  for (const bool recompute : {false, true}) {
    expect_gradients(
        [&](const at::Tensor& in) { return block.forward(in, recompute).mul(weights).sum(); }, x,
        flats);
  }
}

TEST(LawRuntimeGradients, GptBlock) {
  expect_block_gradients({.heads = 2,
                          .kv_heads = 2,
                          .head_width = 4,
                          .layer_norm = true,
                          .qkv_bias = true,
                          .projection_bias = true,
                          .width = 10,
                          .mlp_bias = true});
}

TEST(LawRuntimeGradients, LlamaBlockWithHeadNormsAndWindow) {
  expect_block_gradients({.heads = 4,
                          .kv_heads = 2,
                          .head_width = 4,
                          .head_norm = true,
                          .rotary = true,
                          .window = 3,
                          .width = 10,
                          .gated = true});
}

TEST(LawRuntimeGradients, ExpertBlock) {
  expect_block_gradients({.heads = 4,
                          .kv_heads = 1,
                          .head_width = 2,
                          .rotary = true,
                          .width = 5,
                          .gated = true,
                          .experts = 4,
                          .chosen = 2});
}

TEST(LawRuntimeGradients, HeadAndLoss) {
  for (const bool layer_norm : {false, true}) {
    AloneWorld alone({}, layer_norm);
    Table table(alone.world, "head");
    HeadLayer head(alone.world, table);
    const at::Tensor x = at::randn({6, 2, 8}, at::TensorOptions().dtype(at::kDouble));
    const at::Tensor targets = at::arange(12).view({6, 2});
    expect_gradients([&](const at::Tensor& in) { return head.loss(in, targets, 0.5); }, x,
                     {head.unit().flats.front().get(), table.unit().flats.front().get()});
  }
}

}  // namespace
}  // namespace towtank
