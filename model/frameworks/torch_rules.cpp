// SPDX-License-Identifier: Apache-2.0
#include "model/frameworks/tables.h"
#include "model/graph/model_graph.h"

namespace towtank::detail {

FrameworkRules torchtitan_rules() {
  return {
      .framework = Framework::kTorchtitan,
      .fused_attention = {true, "torchtitan models/attention.py: scaled_dot_product_attention"},
      .dropout = {false, "torchtitan llama3 model.py has no dropout"},
      .fused_cross_entropy = {false, "torchtitan components/loss.py: cross_entropy(pred.float())"},
      .logits_bytes = {12,
                       "torchtitan components/loss.py in eager mode: fp32 log-softmax and two "
                       "fp32 gradients at once; bf16 logits are deleted before"},
      .loss_traffic = {14, "torch: bf16 logits cast to fp32, log-softmax of those"},
      .loss_traffic_backward = {22,
                                "torch: zeros and one gradient a token, log-softmax backward, "
                                "cast to bf16"},
      .vocabulary_multiple = {1, "torchtitan does not pad"},
      .highest_sharding_stage = {3, "torchtitan docs/fsdp.md"},
      .sharding_stage_3_with_pipeline = {true, "torchtitan README: FSDP2 with pipeline parallel"},
      .reduce_cadence_low = {ReduceCadence::kPerMicrobatch, kAssumed},
      .reduce_cadence_high =
          {ReduceCadence::kPerMicrobatch,
           "torch fully_shard: set_requires_gradient_sync is on unless turned off"},
      .reduce_cadence_pipeline = {ReduceCadence::kPerStep,
                                  "torch distributed/pipelining/stage.py: "
                                  "backward_maybe_with_nosync"},
      .reduce_bytes = {4, "torchtitan --training.mixed_precision_reduce float32"},
      .bucket_bytes = {{0}, "torch fully_shard: one reduction a unit"},
      .bucket_copies = {0, "torch fully_shard: one reduction a unit"},
      .bucket_all_gradients = {true, "torch DDP: gradient_as_bucket_view is off by default"},
      .overlap_grad_reduce = {true, "torch fully_shard: reduces on its own stream"},
      .overlap_param_gather = {true, "torch fully_shard: implicit prefetch"},
      .gather_layers = {1, "torchtitan parallelize.py: fully_shard on each block"},
      .prefetch_units = {1, "torch fully_shard: one unit ahead"},
      .live_parameters = {0, "torch fully_shard frees a unit after use"},
      .reshard_after_forward = {true, "torchtitan fsdp_reshard_after_forward default"},
      .reshard_in_pipeline = {false, "torchtitan fsdp_reshard_after_forward default"},
      .tensor_overlap = {0, "torchtitan enable_async_tensor_parallel is off by default"},
      .async_p2p = {true, kAssumed},
      .async_p2p_interleaved = {true, kAssumed},
      .kv_replication = {false, "torchtitan: kv heads must be divisible by t"},
      .scatter_gather_p2p = {false, kAssumed},
      .selective_groups = {group_bits(RecomputeGroup::kNorm, RecomputeGroup::kGatedProduct,
                                      RecomputeGroup::kMlp, RecomputeGroup::kMlaUp,
                                      RecomputeGroup::kExperts),
                           "torchtitan distributed/activation_checkpoint.py, option op: saves "
                           "every second product, attention, reduce-scatter"},
      .selective_mlp_kept = {0.5,
                             "torchtitan distributed/activation_checkpoint.py: every second "
                             "product"},
      .distribute_saved = {false, "torchtitan activation checkpoints are not distributed"},
      .optimizer_traffic = {28,
                            "Adam: read fp32 gradient, parameter, two moments; write the last "
                            "three"},
      .optimizer_temporary = {0, "torchtitan components/optimizer.py: implementation fused"},
      .optimizer_group = {0, "torchtitan components/optimizer.py: implementation fused"},
      .context_bytes = {{1'250'000'000}, kAssumed},
      .buffer_bytes = {{128'000'000}, kAssumed},
      .reserved_factor = {1.075, "Mist (EuroSys'25): the allocator reserves 7 to 8 % more"},
      .elementwise_kernels = {4, kAssumed},
  };
}

FrameworkRules fsdp_rules() {
  FrameworkRules r = torchtitan_rules();
  r.framework = Framework::kFsdp;
  r.fused_attention = {true, "LLM-Foundry scripts/train/benchmarking: attn_impl flash"};
  r.dropout = {false, "LLM-Foundry MPT configurations: no dropout"};
  r.fused_cross_entropy = {true, "LLM-Foundry MPT loss_fn defaults to fused_crossentropy"};
  r.logits_bytes = {4, "flash-attn cross entropy: bf16 logits and their bf16 gradient"};
  r.loss_traffic = {8, kAssumed};
  r.loss_traffic_backward = {6, kAssumed};
  r.vocabulary_multiple = {1, "LLM-Foundry takes vocab_size as it is (50368 in its files)"};
  r.highest_sharding_stage = {3, "PyTorch FSDP FULL_SHARD"};
  r.sharding_stage_3_with_pipeline = {false, "Composer has no pipeline"};
  r.reduce_cadence_low = {ReduceCadence::kPerStep, "Composer DDPSyncStrategy: SINGLE_AUTO_SYNC"};
  r.reduce_cadence_high = {ReduceCadence::kPerMicrobatch,
                           "Composer ddp_sync_context: no_sync for DDP only"};
  r.reduce_cadence_pipeline = {ReduceCadence::kPerMicrobatch, "Composer has no pipeline"};
  r.reduce_bytes = {2, "LLM-Foundry scripts/train/yamls: fsdp_config.mixed_precision PURE"};
  r.gather_layers = {1, "Composer wraps each block"};
  r.prefetch_units = {1, "PyTorch FSDP limit_all_gathers"};
  r.reshard_after_forward = {true, "PyTorch FSDP FULL_SHARD"};
  r.reshard_in_pipeline = {true, "Composer has no pipeline"};
  r.tensor_overlap = {0, "Composer has no overlapped tensor parallelism"};
  r.kv_replication = {false, kAssumed};
  r.selective_groups = {group_bits(RecomputeGroup::kAttentionCore), kAssumed};
  r.selective_mlp_kept = {0, kAssumed};
  r.optimizer_temporary = {4,
                           "torch.optim.AdamW docs: foreach, the default, needs the size of the "
                           "parameters more"};
  r.optimizer_group = {0, "torch.optim.AdamW docs: foreach takes all tensors at once"};
  return r;
}

FrameworkRules towtank_runtime_rules() {
  constexpr std::string_view kLayers = "validate/runtime/layers.cpp";
  constexpr std::string_view kOps = "validate/runtime/parallel_ops.cpp";
  constexpr std::string_view kState = "validate/runtime/parameters.cpp";
  constexpr std::string_view kTrainer = "validate/runtime/trainer.cpp";
  FrameworkRules r = torchtitan_rules();
  r.framework = Framework::kTowtankRuntime;
  r.fused_attention = {false, kLayers};
  r.dropout = {false, "validate/run/model_shape.h"};
  r.fused_cross_entropy = {true, kOps};
  // fp32 logits, and their difference to the largest, which becomes probabilities and gradient.
  r.logits_bytes = {8, kOps};
  r.loss_traffic = {32,
                    "validate/runtime/parallel_ops.cpp: maximum, difference, power, sum, share"};
  r.loss_traffic_backward = {8, kOps};
  r.vocabulary_multiple = {1, "validate/run/runnable.h: the vocabulary divides by t"};
  r.highest_sharding_stage = {3, kState};
  r.sharding_stage_3_with_pipeline = {true, kTrainer};
  r.reduce_cadence_low = {ReduceCadence::kPerStep, kState};
  r.reduce_cadence_high = {ReduceCadence::kPerMicrobatch, kState};
  r.reduce_cadence_pipeline = {ReduceCadence::kPerMicrobatch, kState};
  r.reduce_bytes = {4, kState};
  r.bucket_bytes = {{0}, "validate/runtime/parameters.h: a layer is reduced at once"};
  r.bucket_copies = {0, kState};
  r.bucket_all_gradients = {false, "validate/runtime/parameters.cpp: reduced in place"};
  r.overlap_grad_reduce = {true, kTrainer};
  r.overlap_param_gather = {true, kState};
  r.gather_layers = {1, kTrainer};
  r.prefetch_units = {1, kTrainer};
  r.live_parameters = {0, kTrainer};
  r.reshard_after_forward = {true, kTrainer};
  r.reshard_in_pipeline = {true, kTrainer};
  r.tensor_overlap = {0, kOps};
  r.async_p2p = {true, kTrainer};
  r.async_p2p_interleaved = {true, kTrainer};
  r.kv_replication = {false, "validate/run/runnable.h"};
  r.scatter_gather_p2p = {false, kTrainer};
  r.selective_groups = {group_bits(RecomputeGroup::kAttentionCore), kLayers};
  r.selective_mlp_kept = {0, kLayers};
  r.distribute_saved = {false, kTrainer};
  // Each of eight element-wise operations reads and writes its operands.
  r.optimizer_traffic = {84, kState};
  r.optimizer_temporary = {4, kState};
  r.optimizer_group = {1 << 20, kState};
  r.context_bytes = {{166'000'000}, "measured: Debian's libtorch 1.13 before main"};
  r.buffer_bytes = {{0}, kState};
  r.reserved_factor = {1, "validate/runtime/memory_meter.cpp: counts what tensors hold"};
  return r;
}

}  // namespace towtank::detail
