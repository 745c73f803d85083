// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How many FLOP a training step has, and what share of the peak that is.
///
///     MFU = model FLOP / (T * N * peak)         HFU = hardware FLOP / (T * N * peak)
///
///   T     step time [s]        N  devices        peak  dense, of the precision that runs [FLOP/s]
///   B     samples a step       W  ForwardWork of one sample [FLOP]
///
///   model FLOP      3 B (W.matmul + W.attention_counted): backward counts as two forwards, and
///                   causal attention as if it were full (the published convention)
///   hardware FLOP   B (3 W.matmul + a W.attention + R.matmul + R.attention)
///                   fused attention:   W.attention_run,     a = 1 + 2.5 (backward has 5 products
///                                      where forward has 2)
///                   unfused attention: W.attention_counted, a = 3 (no half is skipped)
///   R               the forward work of one sample that is run again (recomputation)
///
/// Closed forms for a GPT (4h wide MLP, as many KV heads as heads, tied embedding), per step:
///
///   parameters               12 L h^2 (1 + 13/(12h) + (V+s)/(12Lh))
///   model FLOP               72 B s L h^2 (1 + s/(6h) + V/(12hL))
///   hardware, full           96 B s L h^2 (1 + s/(6h) + V/(16Lh))
///   hardware, selective      72 B s L h^2 (1 + 2s/(9h) + V/(12hL)) counting operations
///                            72 B s L h^2 (1 + s/(3h) + V/(12hL)) as its paper prints it
///
/// Sources: Narayanan et al., SC'21, sec. 5.1 and appendix; Korthikanti et al., MLSys 2023,
/// appendix A (selective); Chowdhery et al. 2022, appendix B (MFU); Dao 2023 (fused backward).
/// Not counted: norms, softmax, activation functions, the optimizer.
#include "core/units.h"
#include "model/graph/model_graph.h"

namespace towtank {

enum class AttentionKernel {
  kFused,    ///< skips what a causal mask hides; its backward forms the scores again
  kUnfused,  ///< all scores, kept from forward
};

/// 3 B (matmul + attention_counted). Pre: samples >= 0.
[[nodiscard]] Flop model_flop(const ForwardWork& sample, double samples);

/// What runs, `again` being the forward work of a sample that recomputation repeats.
/// Pre: samples >= 0.
[[nodiscard]] Flop hardware_flop(const ForwardWork& sample, double samples, AttentionKernel,
                                 const ForwardWork& again = {});

/// FLOP over what the devices could have done; 0 for no time. Pre: devices >= 1, peak > 0.
[[nodiscard]] double utilisation(Flop work, Seconds step, int devices, FlopPerSecond peak);

/// Per device: the "TFLOP/s per GPU" of papers. Pre: devices >= 1, step > 0.
[[nodiscard]] FlopPerSecond rate_per_device(Flop work, Seconds step, int devices);

/// The shape that the closed forms count.
struct GptShape {
  double layers = 0, hidden = 0, vocabulary = 0, sequence = 0;
};
[[nodiscard]] double gpt_parameters(const GptShape&);
[[nodiscard]] Flop gpt_model_flop(const GptShape&, double samples);
[[nodiscard]] Flop gpt_full_recompute_flop(const GptShape&, double samples);
[[nodiscard]] Flop gpt_selective_recompute_flop(const GptShape&, double samples);
/// Only to compare with the HFU column of Korthikanti et al.
[[nodiscard]] Flop gpt_selective_recompute_flop_published(const GptShape&, double samples);
/// (6 P + 12 L h s) a token: the convention of the MPT tables (LLM-Foundry).
[[nodiscard]] Flop foundry_model_flop(double parameters, const GptShape&, double samples);

}  // namespace towtank
