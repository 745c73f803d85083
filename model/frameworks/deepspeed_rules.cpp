// SPDX-License-Identifier: Apache-2.0
#include "model/frameworks/tables.h"
#include "model/graph/model_graph.h"

namespace towtank::detail {

FrameworkRules deepspeed_rules() {
  FrameworkRules r = torchtitan_rules();
  r.framework = Framework::kDeepSpeed;
  r.fused_attention = {true, kAssumed};
  r.dropout = {false, kAssumed};
  r.fused_cross_entropy = {false, "transformers loss: logits.float(), cross_entropy"};
  r.logits_bytes = {14,
                    "transformers causal-language-model loss: bf16 logits, fp32 copy, shifted "
                    "fp32 copy, fp32 log-softmax"};
  r.vocabulary_multiple = {1, "DeepSpeed does not change the model"};
  r.highest_sharding_stage = {3, "DeepSpeed zero_optimization.stage"};
  r.sharding_stage_3_with_pipeline = {false, "DeepSpeed pipe/engine.py: ZeRO-2 and 3 refused"};
  r.reduce_cadence_low = {ReduceCadence::kPerStep, "DeepSpeed engine.py: at the boundary"};
  r.reduce_cadence_high = {ReduceCadence::kPerMicrobatch,
                           "DeepSpeed stage_1_and_2.py, stage3.py: reduced in backward"};
  r.reduce_cadence_pipeline = {ReduceCadence::kPerStep, "DeepSpeed pipe/engine.py"};
  r.reduce_bytes = {2, "DeepSpeed: gradients reduce in their own type"};
  r.bucket_bytes = {{1'000'000'000}, "DeepSpeed reduce_bucket_size 5e8 elements of 2 bytes"};
  r.bucket_copies = {2, "DeepSpeed stage_1_and_2.py: two ipg buffers with overlap_comm"};
  r.bucket_all_gradients = {false, "DeepSpeed engine.py: buckets of a limited size"};
  r.overlap_grad_reduce = {true, "DeepSpeed overlap_comm"};
  r.overlap_param_gather = {false, "DeepSpeed stage_1_and_2.py: gathers inside step"};
  r.gather_layers = {1, "DeepSpeed stage3_prefetch_bucket_size 5e7 elements"};
  r.prefetch_units = {1, "DeepSpeed stage3_prefetch_bucket_size 5e7 elements"};
  r.live_parameters = {1e9, "DeepSpeed stage3_max_live_parameters 1e9"};
  r.reshard_after_forward = {true, "DeepSpeed stage3_max_reuse_distance 1e9"};
  r.reshard_in_pipeline = {true, "DeepSpeed pipe/engine.py: ZeRO-3 refused"};
  r.scatter_gather_p2p = {true,
                          "DeepSpeed pipe/engine.py: is_pipe_partitioned with tensor "
                          "parallelism"};
  r.async_p2p = {false, "DeepSpeed pipe/p2p.py: blocking send and receive"};
  r.async_p2p_interleaved = {false, "DeepSpeed pipe/engine.py has no interleaved schedule"};
  r.kv_replication = {false, kAssumed};
  r.selective_groups = {group_bits(RecomputeGroup::kAttentionCore), kAssumed};
  r.selective_mlp_kept = {0, kAssumed};
  r.distribute_saved = {false, "DeepSpeed partition_activations is off by default"};
  r.optimizer_traffic = {30,
                         "Adam: read fp32 gradient, main copy, two moments; write the last "
                         "three and 2 bytes of parameter"};
  r.optimizer_temporary = {4, "DeepSpeed stage_1_and_2.py: step makes an fp32 gradient partition"};
  r.optimizer_group = {1e9, "DeepSpeed sub_group_size 1e9"};
  return r;
}

}  // namespace towtank::detail
