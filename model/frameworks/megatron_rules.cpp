// SPDX-License-Identifier: Apache-2.0
#include "model/frameworks/tables.h"
#include "model/graph/model_graph.h"

namespace towtank::detail {

FrameworkRules megatron_rules() {
  return {
      .framework = Framework::kMegatron,
      .fused_attention = {true, "Megatron-LM --attention-backend auto (flash or fused)"},
      .dropout = {false, kAssumed},
      .fused_cross_entropy = {true, "Megatron-LM core/tensor_parallel/cross_entropy.py"},
      .logits_bytes = {6,
                       "Megatron-LM core/tensor_parallel/cross_entropy.py: bf16 logits, fp32 "
                       "softmax in place"},
      // Cast, maximum, difference, exponential, sum and quotient over fp32 logits, each a kernel.
      .loss_traffic = {36,
                       "Sailor op profiles of this loss: 33 to 37 bytes at the rate of "
                       "element-wise kernels on V100, A100 and GH200"},
      .loss_traffic_backward = {12, "Sailor op profiles of this loss: 9 to 15 bytes"},
      .vocabulary_multiple = {128, "Megatron-LM --make-vocab-size-divisible-by 128, times t"},
      .highest_sharding_stage = {3, "Megatron-LM --data-parallel-sharding-strategy"},
      .sharding_stage_3_with_pipeline = {false, kAssumed},
      .reduce_cadence_low = {ReduceCadence::kPerStep,
                             "Megatron-LM core/pipeline_parallel/"
                             "schedules.py: no_sync until the last"},
      .reduce_cadence_high =
          {ReduceCadence::kPerMicrobatch,
           "Megatron-FSDP param_and_grad_buffer.py: stages 2 and 3 reduce in every backward"},
      .reduce_cadence_pipeline = {ReduceCadence::kPerMicrobatch, kAssumed},
      .reduce_bytes = {4, "Megatron-LM --bf16: fp32 main gradients, reduced as they are"},
      .bucket_bytes = {{160'000'000},
                       "Megatron-LM core/distributed: max(40e6, 1e6 * dp) elements "
                       "of 4 bytes"},
      .bucket_copies = {0, "Megatron-LM core/distributed/param_and_grad_buffer.py: views"},
      .bucket_all_gradients = {false, "Megatron-LM core/distributed/param_and_grad_buffer.py"},
      .overlap_grad_reduce = {true, kAssumed},
      .overlap_param_gather = {true, kAssumed},
      .gather_layers = {1, "Megatron-FSDP fsdp_unit_modules: TransformerLayer"},
      .prefetch_units = {1, kAssumed},
      .live_parameters = {0, kAssumed},
      .reshard_after_forward = {true, kAssumed},
      .reshard_in_pipeline = {true, kAssumed},
      .tensor_overlap = {0, "Megatron-LM --tp-comm-overlap is off by default"},
      .async_p2p = {false,
                    "Megatron-LM core/pipeline_parallel/schedules.py: 1F1B waits for each "
                    "send and receive"},
      .async_p2p_interleaved =
          {true, "Megatron-LM --no-overlap-p2p-communication: overlapped when interleaved"},
      .kv_replication = {true, "Megatron-LM 0.16 replicates query groups below t"},
      .scatter_gather_p2p =
          {false, "Megatron-LM core/pipeline_parallel/p2p_communication.py: whole tensors"},
      .selective_groups = {group_bits(RecomputeGroup::kAttentionCore),
                           "Megatron-LM --recompute-modules defaults to core_attn"},
      .selective_mlp_kept = {0, "Megatron-LM --recompute-modules defaults to core_attn"},
      .distribute_saved = {false, "Megatron-LM --distribute-saved-activations is off by default"},
      .optimizer_traffic = {30,
                            "Adam: read fp32 gradient, main copy, two moments; write the last "
                            "three and 2 bytes of parameter"},
      .optimizer_temporary = {0, "Apex and Transformer Engine FusedAdam update in place"},
      .optimizer_group = {0, "Apex and Transformer Engine FusedAdam update in place"},
      .context_bytes = {{1'250'000'000}, kAssumed},
      .buffer_bytes = {{128'000'000}, kAssumed},
      .reserved_factor = {1.075, "Mist (EuroSys'25): the allocator reserves 7 to 8 % more"},
      .elementwise_kernels = {1, kAssumed},
  };
}

FrameworkRules megatron_2021_rules() {
  FrameworkRules r = megatron_rules();
  r.framework = Framework::kMegatron2021;
  r.fused_attention = {false, "Megatron-LM 2.x transformer.py: CoreAttention materialises scores"};
  r.dropout = {true, "Megatron-LM arguments.py: hidden and attention dropout default to 0.1"};
  r.highest_sharding_stage = {1, "Megatron-LM 3.0 --use-distributed-optimizer"};
  r.reduce_cadence_high = {ReduceCadence::kPerStep, "Megatron-LM 2.x: no stage 2 or 3"};
  r.reduce_cadence_pipeline = {ReduceCadence::kPerStep, "Megatron-LM 2.x: no stage 2 or 3"};
  r.reduce_bytes = {2, "Megatron-LM 2.x --accumulate-allreduce-grads-in-fp32 is off for fp16"};
  r.bucket_bytes = {{0}, "Megatron-LM 2.x model/distributed.py: one contiguous buffer a type"};
  r.overlap_grad_reduce = {false,
                           "Megatron-LM 2.x training.py: all-reduce after the last backward"};
  r.overlap_param_gather = {false, "Megatron-LM 3.0 optimizer/distrib_optimizer.py: after step"};
  r.async_p2p_interleaved = {false, "Megatron-LM 2.x schedules.py: each send is waited for"};
  r.kv_replication = {false, "Megatron-LM 2.x has no grouped queries"};
  r.scatter_gather_p2p = {true, "Narayanan et al., SC'21, sec. 4.1: scatter/gather on by default"};
  r.selective_groups.source = "Megatron-LM 3.0 --recompute-activations: attention core";
  // A CUDA context of 1.8 GiB under PyTorch 1.x, and the communicators.
  r.context_bytes = {{2'583'000'000}, kAssumed};
  r.elementwise_kernels = {2, kAssumed};
  return r;
}

FrameworkRules megatron_deepspeed_rules() {
  FrameworkRules r = megatron_2021_rules();
  r.framework = Framework::kMegatronDeepSpeed;
  r.highest_sharding_stage = {3, "Megatron-DeepSpeed README: ZeRO stages 1 to 3"};
  r.sharding_stage_3_with_pipeline = {false, "DeepSpeed pipe/engine.py: ZeRO-2 and 3 refused"};
  r.reduce_cadence_high = {ReduceCadence::kPerMicrobatch,
                           "DeepSpeed stage_1_and_2.py, stage3.py: reduced in backward"};
  r.reduce_cadence_pipeline = {ReduceCadence::kPerMicrobatch, kAssumed};
  r.reduce_bytes = {2, "DeepSpeed: gradients reduce in their own type"};
  r.bucket_bytes = {{1'000'000'000}, "DeepSpeed reduce_bucket_size 5e8 elements of 2 bytes"};
  r.bucket_copies = {1, "DeepSpeed stage_1_and_2.py: one ipg buffer without overlap_comm"};
  r.overlap_grad_reduce = {false, "DeepSpeed pipe/engine.py: reduces after the last backward"};
  r.overlap_param_gather = {false, "DeepSpeed stage_1_and_2.py: gathers inside step"};
  r.async_p2p_interleaved = {false, "DeepSpeed pipe/engine.py has no interleaved schedule"};
  r.kv_replication = {false, kAssumed};
  r.scatter_gather_p2p = {true,
                          "DeepSpeed pipe/engine.py: is_pipe_partitioned with tensor parallelism"};
  r.optimizer_temporary = {4, "DeepSpeed stage_1_and_2.py: step makes an fp32 gradient partition"};
  r.optimizer_group = {0, "DeepSpeed stage_1_and_2.py: whole parameter groups"};
  return r;
}

FrameworkRules nemo_rules() {
  FrameworkRules r = megatron_rules();
  r.framework = Framework::kNemo;
  r.reduce_bytes = {2,
                    "NeMo and Megatron-Bridge performance recipes: ddp.grad_reduce_in_fp32 False"};
  r.bucket_bytes = {{80'000'000},
                    "Megatron-LM core/distributed: max(40e6, 1e6 * dp) elements of 2 bytes"};
  r.loss_traffic = {8, "NeMo and Megatron-Bridge performance recipes: cross_entropy_loss_fusion"};
  r.loss_traffic_backward = {6, "NeMo performance recipes: cross_entropy_loss_fusion"};
  r.overlap_grad_reduce = {true, "Megatron-Bridge docs, communication overlap: data parallel"};
  r.overlap_param_gather = {true, "Megatron-Bridge docs, communication overlap: data parallel"};
  r.tensor_overlap = {0.7, kAssumed};
  r.async_p2p_interleaved = {true, "Megatron-Bridge training/comm_overlap.py: overlap_p2p_comm"};
  r.async_p2p = {false, "Megatron-Bridge training/comm_overlap.py: batch_p2p_comm"};
  return r;
}

}  // namespace towtank::detail
