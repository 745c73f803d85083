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
  kMegatronDeepSpeed,  ///< the 2021-2022 fork: unfused attention, dropout
  kNemo,               ///< NeMo / Megatron-Bridge
  kFsdp,               ///< Composer / PyTorch FSDP (LLM-Foundry)
  kTorchtitan,         ///< FSDP2
  kDeepSpeed,          ///< ZeRO engine without Megatron
  kTowtankRuntime,     ///< the thin runtime of this repository
};
inline constexpr std::size_t kFrameworkCount = 7;
inline constexpr std::array<std::string_view, kFrameworkCount> kFrameworkNames{
    "megatron", "megatron-deepspeed", "nemo", "fsdp", "torchtitan", "deepspeed", "towtank-runtime"};

/// A fact about a framework: its value, and where it stands ("" = assumed).
template <class T>
struct Cell {
  T value{};
  std::string_view source;
  [[nodiscard]] constexpr bool assumed() const { return source.empty(); }
};

enum class ReduceCadence { kPerStep, kPerMicrobatch };

/// Bytes a parameter of the training states, one rank, before division by the shard group.
/// `sharded_from[i]` of the table: the sharding stage from which the part is divided.
struct StateBytes {
  double parameter = 2;   ///< copy that computes; divided from stage 3
  double gradient = 4;    ///< accumulated gradient; divided from stage 2
  double optimizer = 12;  ///< main copy and moments; divided from stage 1
  double extra = 0;       ///< never divided (e.g. an unsharded fp32 gradient copy)
};

struct FrameworkRules {
  Framework framework = Framework::kMegatron;
  Cell<bool> fused_attention;       ///< flash; else scores are materialised
  Cell<bool> dropout;               ///< dropout masks are kept
  Cell<bool> fused_cross_entropy;   ///< saves fp32 softmax only (kappa 6), else eager fp32
  Cell<double> logits_bytes;        ///< kappa: bytes a logit at the loss, in all
  Cell<int> vocabulary_multiple;    ///< V is padded to a multiple of this * t; 1 = not padded
  Cell<int> highest_sharding_stage; ///< 0..3
  Cell<bool> sharding_stage_3_with_pipeline;
  Cell<ReduceCadence> reduce_cadence_low;   ///< sharding stage 0, 1
  Cell<ReduceCadence> reduce_cadence_high;  ///< sharding stage 2, 3
  Cell<double> reduce_bytes;        ///< bytes a gradient element on the wire
  Cell<Bytes> bucket_bytes;         ///< of gradient buckets; 0 = one bucket
  Cell<bool> overlap_grad_reduce;
  Cell<bool> overlap_param_gather;  ///< sharding stage 1, 2: gathers hide behind the next forward
  Cell<int> gather_layers;          ///< stage 3: layers per gathered unit
  Cell<int> prefetch_units;         ///< stage 3: units gathered ahead
  Cell<bool> reshard_after_forward; ///< stage 3: gather again in backward
  Cell<double> tensor_overlap;      ///< fraction of tensor-parallel collectives hidden; 0 = none
  Cell<bool> async_p2p;             ///< pipeline sends do not block the compute stream
  Cell<bool> kv_replication;        ///< t > kv heads is allowed
  Cell<bool> scatter_gather_p2p;    ///< pipeline sends carry 1/t without sequence parallelism
  Cell<unsigned> selective_groups;  ///< bit set of RecomputeGroup that "selective" drops
  Cell<double> optimizer_traffic;   ///< bytes moved a local parameter by the optimizer step
  Cell<Bytes> context_bytes;        ///< runtime context and libraries, outside the allocator
  Cell<Bytes> buffer_bytes;         ///< communication and workspace buffers, inside the allocator
  Cell<double> reserved_factor;     ///< allocator reserve over allocated, >= 1
  Cell<int> elementwise_kernels;    ///< launches per unfused elementwise group in a layer
};

[[nodiscard]] const FrameworkRules& rules_of(Framework);
[[nodiscard]] std::optional<Framework> framework_from(std::string_view name);

/// States by framework and precision (formulas of the cited papers and code).
[[nodiscard]] Cell<StateBytes> state_bytes(Framework, DType precision, OptimizerKind optimizer);

/// "selective recompute drops the attention core (assumed)": every assumed cell, for reports.
[[nodiscard]] std::vector<std::string> assumed_cells(Framework);

}  // namespace towtank
