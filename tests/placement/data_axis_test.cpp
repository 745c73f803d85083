// SPDX-License-Identifier: Apache-2.0
// Gathers and reductions layer by layer (sharding stage 3) against the slots of a written-out step.
#include <gtest/gtest.h>

#include "placement/detail/step_model.h"
#include "tests/support/near.h"
#include "tests/support/planning.h"

namespace towtank {
namespace {

using testing::kSameArithmetic;

/// A model of `layers` equal layers on `devices`, fully sharded by torchtitan's rules.
struct LayerTraffic {
  LayerTraffic(const std::string& machine, int devices, int pipeline, int sequence, int micro)
      : question(testing::llama_config(4096, 8, 32, 8, 14336, 32000), machine, devices, sequence,
                 devices / pipeline * micro),
        mesh(question.problem(), {}, Framework::kTorchtitan) {
    layout.pipeline = pipeline;
    layout.data = devices / pipeline;
    layout.schedule = pipeline > 1 ? ScheduleKind::kOneFOneB : ScheduleKind::kNone;
    layout.sharding_stage = 3;
    layout.microbatches = micro;
    const int n = mesh.free_layers() / pipeline;
    for (int s = 0; s < pipeline; ++s) {
      layout.stages.push_back({s * n, (s + 1) * n, 0, 0, s == 0, s + 1 == pipeline});
    }
    layers = n;
    std::size_t kind = 0;
    mesh.for_each_kind(inner(), [&](std::size_t k, int) { kind = k; });
    const auto of = [&](Collective op, double bytes) {
      const GroupShape group = group_shape(question.problem().view, layout.data, 1);
      const double payload = mesh.local(kind).dense_parameters * bytes;
      return question.problem()
          .costs->collective({op, Bytes{static_cast<std::int64_t>(std::llround(payload))}, group})
          .time()
          .value;
    };
    gather = of(Collective::kAllGather, 2);
    reduce = of(Collective::kReduceScatter, mesh.rules().reduce_bytes.value);
    forward = mesh.cost(kind).forward.value;
    backward = mesh.cost(kind).backward().value;
  }
  /// Its layers without embedding and head.
  [[nodiscard]] detail::StageRange inner() const { return {0, layers, 0, 0, false, false}; }
  /// Computation c with communication t beside it.
  [[nodiscard]] double slot(double c, double t) const {
    return std::max(c, t) + mesh.runtime().interference * std::min(c, t);
  }
  /// What the closed form makes of it: every microbatch of a stage, and the ends.
  [[nodiscard]] double closed_form() const {
    const detail::StageRange range = inner();
    const detail::DataAxis axis(question.problem(), mesh, layout);
    const auto extra = axis.per_microbatch(range, mesh.sums(range));
    return layout.microbatches *
               (layers * (forward + backward) + (extra.forward + extra.backward).value) +
           axis.step_ends(range).value;
  }

  testing::Question question;
  detail::Mesh mesh;
  detail::Layout layout;
  int layers = 0;
  double gather = 0, reduce = 0, forward = 0, backward = 0;
};

/// gather 1; forward i beside gather i+1, the last beside its own for the backward; backward i
/// beside gather i-1 and reduction i+1; reduction 1.
double regathered(const LayerTraffic& t) {
  double time = t.gather + t.layers * t.slot(t.forward, t.gather);
  for (int i = t.layers; i >= 1; --i) {
    time += t.slot(t.backward, (i > 1 ? t.gather : 0) + (i < t.layers ? t.reduce : 0));
  }
  return time + t.reduce;
}

/// The same, gathered in the first microbatch only and reduced in the last.
double kept(const LayerTraffic& t) {
  double time = t.gather;
  for (int i = 1; i <= t.layers; ++i) time += t.slot(t.forward, i < t.layers ? t.gather : 0);
  time += (t.layout.microbatches - 1) * t.layers * (t.forward + t.backward);
  for (int i = t.layers; i >= 1; --i) time += t.slot(t.backward, i < t.layers ? t.reduce : 0);
  return time + t.reduce;
}

TEST(UnitLayerTraffic, WhatComputationHidesAndWhatTheEndsExpose) {
  // Long samples on a fast fabric: all is hidden but the ends.
  const LayerTraffic hidden("dgx-h100", 16, 1, 16384, 1);
  ASSERT_LT(hidden.gather + hidden.reduce, hidden.backward);
  EXPECT_CLOSE(hidden.closed_form(), regathered(hidden), kSameArithmetic);
  // Short ones: communication binds, and the ends add nothing to it.
  const LayerTraffic bound("dgx-h100", 16, 1, 256, 1);
  ASSERT_GT(std::min(bound.gather, bound.reduce), bound.backward);
  EXPECT_CLOSE(bound.closed_form(), regathered(bound), kSameArithmetic);
  // Between them.
  for (int sequence = 512; sequence < 16384; sequence += 512) {
    const LayerTraffic between("dgx-h100", 16, 1, sequence, 1);
    EXPECT_CLOSE(between.closed_form(), regathered(between), kSameArithmetic) << sequence;
  }
}

TEST(UnitLayerTraffic, OnceAStepIsInOneMicrobatchOnly) {
  for (const int micro : {1, 2, 8}) {
    for (const int sequence : {256, 1024, 4096, 16384}) {
      const LayerTraffic t("dgx-h100", 32, 2, sequence, micro);
      EXPECT_CLOSE(t.closed_form(), kept(t), kSameArithmetic) << micro << " " << sequence;
    }
  }
}

}  // namespace
}  // namespace towtank
