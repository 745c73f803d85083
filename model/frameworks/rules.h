// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What each training framework does, as one table of rules. Every cell says where it stands or
/// that it is assumed; an answer that used an assumed cell lists it.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "model/workload.h"
#include "platforms/dtype.h"

namespace towtank {

enum class Framework {
  kMegatron,           ///< Megatron-LM core
  kMegatron2021,       ///< Megatron-LM 2.x of 2021 and 2022: unfused attention, dropout
  kMegatronDeepSpeed,  ///< the fork that runs the same model in the DeepSpeed engine
  kNemo,               ///< NeMo / Megatron-Bridge
  kFsdp,               ///< Composer / PyTorch FSDP (LLM-Foundry)
  kTorchtitan,         ///< FSDP2
  kDeepSpeed,          ///< ZeRO engine without Megatron
  kTowtankRuntime,     ///< the thin runtime of this repository
};
inline constexpr std::size_t kFrameworkCount = 8;
inline constexpr std::array<std::string_view, kFrameworkCount> kFrameworkNames{
    "megatron", "megatron-2021", "megatron-deepspeed", "nemo",
    "fsdp",     "torchtitan",    "deepspeed",          "towtank-runtime"};

/// A fact about a framework: its value, and where it stands ("" = assumed).
template <class T>
struct Cell {
  T value{};
  std::string_view source;
  [[nodiscard]] constexpr bool assumed() const { return source.empty(); }
};

enum class ReduceCadence { kPerStep, kPerMicrobatch };

/// Bytes a parameter of the training states, one rank, before division by the shard group D'.
///
///   part        divided by D' from sharding stage
///   parameter   parameter_from (3 where a stored parameter is what computes; 2 in FSDP, where the
///               stored fp32 parameter is a shard of its own beside the gathered copy)
///   gradient    2
///   optimizer   1
///   extra       never
///
/// Where parameter_from is 2, stage 2 keeps the gathered copy of everything after forward, so it
/// holds `gathered` bytes a parameter besides.
struct StateBytes {
  double parameter = 2;    ///< as stored
  double gradient = 4;     ///< as accumulated
  double optimizer = 12;   ///< main copy and moments
  double extra = 0;        ///< never divided (e.g. an unsharded fp32 gradient copy)
  double gathered = 2;     ///< of a parameter gathered to compute, sharding stage 3 (FSDP: 2 too)
  int parameter_from = 3;  ///< first sharding stage that divides the stored parameter: 2 or 3
  friend bool operator==(const StateBytes&, const StateBytes&) = default;
};

struct FrameworkRules {
  Framework framework = Framework::kMegatron;
  Cell<bool> fused_attention;          ///< flash; else scores are materialised
  Cell<bool> dropout;                  ///< dropout masks are kept
  Cell<bool> fused_cross_entropy;      ///< saves fp32 softmax only (kappa 6), else eager fp32
  Cell<double> logits_bytes;           ///< kappa: bytes a logit at the loss, in all
  Cell<double> loss_traffic;           ///< bytes a logit that the loss reads and writes, forward
  Cell<double> loss_traffic_backward;  ///< the same, backward
  Cell<int> vocabulary_multiple;       ///< V is padded to a multiple of this * t; 1 = not padded
  Cell<int> highest_sharding_stage;    ///< 0..3
  Cell<bool> sharding_stage_3_with_pipeline;
  Cell<ReduceCadence> reduce_cadence_low;       ///< sharding stage 0, 1
  Cell<ReduceCadence> reduce_cadence_high;      ///< sharding stage 2, 3
  Cell<ReduceCadence> reduce_cadence_pipeline;  ///< sharding stage 2, 3 inside a pipeline
  Cell<double> reduce_bytes;                    ///< bytes a gradient element on the wire
  Cell<Bytes> bucket_bytes;                     ///< of gradient buckets; 0 = one bucket
  Cell<int> bucket_copies;          ///< buckets held beside the gradients (0: views of them)
  Cell<bool> bucket_all_gradients;  ///< sharding stage 0: buckets copy every gradient (torch DDP)
  Cell<bool> overlap_grad_reduce;
  Cell<bool> overlap_param_gather;  ///< sharding stage 1, 2: gathers hide behind the next forward
  Cell<int> gather_layers;          ///< stage 3: layers per gathered unit
  Cell<int> prefetch_units;         ///< stage 3: units gathered ahead
  Cell<double> live_parameters;  ///< stage 3: parameters kept gathered besides, at most; 0 = none
  Cell<bool> reshard_after_forward;  ///< stage 3: gather again in backward
  Cell<bool> reshard_in_pipeline;    ///< the same inside a pipeline
  Cell<double> tensor_overlap;       ///< fraction of tensor-parallel collectives hidden; 0 = none
  Cell<bool> async_p2p;              ///< pipeline sends do not block the compute stream
  Cell<bool> async_p2p_interleaved;  ///< the same with several stages a rank
  Cell<bool> kv_replication;         ///< t > kv heads is allowed
  Cell<bool> scatter_gather_p2p;     ///< pipeline sends carry 1/t without sequence parallelism
  Cell<unsigned> selective_groups;   ///< bit set of RecomputeGroup that "selective" drops
  Cell<double> selective_mlp_kept;   ///< share of a dropped kMlp group that stays all the same
  Cell<bool> distribute_saved;       ///< full recompute without sequence parallelism keeps 1/t
  Cell<double> optimizer_traffic;    ///< bytes moved a local parameter by the optimizer step
  Cell<double> optimizer_temporary;  ///< bytes an updated parameter that the step allocates
  Cell<double> optimizer_group;      ///< parameters whose temporaries live at once; 0 = all
  Cell<Bytes> context_bytes;         ///< runtime context and libraries, outside the allocator
  Cell<Bytes> buffer_bytes;          ///< communication and workspace buffers, inside the allocator
  Cell<double> reserved_factor;      ///< allocator reserve over allocated, >= 1
  Cell<int> elementwise_kernels;     ///< launches per unfused elementwise group in a layer
};

[[nodiscard]] const FrameworkRules& rules_of(Framework);
/// The same as they hold in a precision: where tensors have 4 bytes, gradients reduce in 4.
[[nodiscard]] const FrameworkRules& rules_of(Framework, DType precision);
/// Bytes of an activation or a gathered parameter on the wire: 4 where the precision stores 4
/// (fp32, tf32), else 2; frameworks send fp8 tensors in their 16-bit form.
[[nodiscard]] double wire_bytes(DType precision);
[[nodiscard]] std::optional<Framework> framework_from(std::string_view name);

/// States by framework and precision (formulas of the cited papers and code).
[[nodiscard]] Cell<StateBytes> state_bytes(Framework, DType precision, OptimizerKind optimizer);

/// A rule as people read it: "selective recompute drops", "norms, MLP", "" (= assumed).
struct RuleLine {
  std::string_view name;
  std::string value;
  std::string_view source;
};
[[nodiscard]] std::vector<RuleLine> rule_lines(Framework);

/// "selective recompute drops the attention core (assumed)": every assumed cell, for reports.
[[nodiscard]] std::vector<std::string> assumed_cells(Framework);

}  // namespace towtank
