// SPDX-License-Identifier: Apache-2.0
#include "model/cost/flops.h"

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr double kFusedBackward = 2.5;    // Dao 2023: 5 products against 2
constexpr double kUnfusedBackward = 2.0;  // gradients of both operands

/// factor * B s L h^2 (1 + attention * s/h + V / (head * h L))
Flop gpt_flop(const GptShape& g, double samples, double factor, double attention, double head) {
  const double block = samples * g.sequence * g.layers * g.hidden * g.hidden;
  return {factor * block *
          (1.0 + attention * g.sequence / g.hidden + g.vocabulary / (head * g.hidden * g.layers))};
}

}  // namespace

Flop model_flop(const ForwardWork& sample, double samples) {
  EXPECTS(samples >= 0.0);
  return 3.0 * samples * (sample.matmul + sample.attention_counted);
}

Flop hardware_flop(const ForwardWork& sample, double samples, AttentionKernel kernel,
                   const ForwardWork& again) {
  EXPECTS(samples >= 0.0);
  const bool fused = kernel == AttentionKernel::kFused;
  const Flop forward = fused ? sample.attention_run : sample.attention_counted;
  const Flop repeated = fused ? again.attention_run : again.attention_counted;
  const double backward = fused ? kFusedBackward : kUnfusedBackward;
  return samples * (3.0 * sample.matmul + (1.0 + backward) * forward + again.matmul + repeated);
}

double utilisation(Flop work, Seconds step, int devices, FlopPerSecond peak) {
  EXPECTS(devices >= 1 && peak.value > 0.0);
  return step.value > 0.0 ? work.value / (step.value * devices * peak.value) : 0.0;
}

FlopPerSecond rate_per_device(Flop work, Seconds step, int devices) {
  EXPECTS(devices >= 1 && step.value > 0.0);
  return work / step / static_cast<double>(devices);
}

double gpt_parameters(const GptShape& g) {
  return 12.0 * g.layers * g.hidden * g.hidden *
         (1.0 + 13.0 / (12.0 * g.hidden) +
          (g.vocabulary + g.sequence) / (12.0 * g.layers * g.hidden));
}

Flop gpt_model_flop(const GptShape& g, double samples) {
  return gpt_flop(g, samples, 72.0, 1.0 / 6.0, 12.0);
}

Flop gpt_full_recompute_flop(const GptShape& g, double samples) {
  return gpt_flop(g, samples, 96.0, 1.0 / 6.0, 16.0);
}

Flop gpt_selective_recompute_flop(const GptShape& g, double samples) {
  return gpt_flop(g, samples, 72.0, 2.0 / 9.0, 12.0);
}

Flop gpt_selective_recompute_flop_published(const GptShape& g, double samples) {
  return gpt_flop(g, samples, 72.0, 1.0 / 3.0, 12.0);
}

Flop foundry_model_flop(double parameters, const GptShape& g, double samples) {
  return {samples * g.sequence * (6.0 * parameters + 12.0 * g.layers * g.hidden * g.sequence)};
}

}  // namespace towtank
