// SPDX-License-Identifier: Apache-2.0
#include "core/contracts.h"
#include "model/frameworks/rules.h"
#include "model/frameworks/tables.h"

namespace towtank {
namespace {

/// fp32 moments: m and v of Adam, the velocity of SGD with momentum.
double moment_bytes(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::kAdam:
      return 4 + 4;
    case OptimizerKind::kMomentum:
      return 4;
    case OptimizerKind::kSgd:
      return 0;
  }
  contract_violated("EXPECTS", "optimizer is one of the enumerators", __FILE__, __LINE__);
}

/// Everything in fp32: there is no main copy, and a gathered parameter is fp32 too.
StateBytes full_precision(double moments) {
  return {.parameter = 4, .gradient = 4, .optimizer = moments, .gathered = 4};
}

Cell<StateBytes> megatron_states(DType precision, double moments) {
  constexpr std::string_view kSource = "Megatron-LM docs/source/api-guide/dist_optimizer.md";
  switch (precision) {
    case DType::kFp16:
      // fp16 gradients, copied to fp32 main gradients beside the main parameters.
      return {{.parameter = 2, .gradient = 2, .optimizer = 4 + 4 + moments}, kSource};
    case DType::kFp8:
    case DType::kFp4:
      // The products' low-precision copies are made from bf16 parameters: nothing shrinks.
    case DType::kBf16:
      return {{.parameter = 2, .gradient = 4, .optimizer = 4 + moments}, kSource};
    case DType::kFp64:
    case DType::kFp32:
    case DType::kTf32:
    case DType::kInt8:
      return {full_precision(moments), kSource};
  }
  contract_violated("EXPECTS", "precision is one of the enumerators", __FILE__, __LINE__);
}

/// NeMo's performance recipes keep and reduce 16-bit gradients.
Cell<StateBytes> nemo_states(DType precision, double moments) {
  Cell<StateBytes> states = megatron_states(precision, moments);
  if (precision == DType::kBf16 || precision == DType::kFp8 || precision == DType::kFp4) {
    states.value.gradient = 2;
    states.source = "NeMo and Megatron-Bridge performance recipes: ddp.grad_reduce_in_fp32 False";
  }
  return states;
}

/// DeepSpeed's ZeRO engine: 16-bit parameters and gradients, fp32 main copy.
Cell<StateBytes> zero_states(DType precision, double moments) {
  constexpr std::string_view kSource = "DeepSpeed runtime/zero/stage_1_and_2.py, stage3.py";
  switch (precision) {
    case DType::kFp16:
    case DType::kFp8:
    case DType::kFp4:
    case DType::kBf16:
      return {{.parameter = 2, .gradient = 2, .optimizer = 4 + moments}, kSource};
    case DType::kFp64:
    case DType::kFp32:
    case DType::kTf32:
    case DType::kInt8:
      return {full_precision(moments), kSource};
  }
  contract_violated("EXPECTS", "precision is one of the enumerators", __FILE__, __LINE__);
}

/// FSDP: fp32 parameters, gradients and moments as shards; 16-bit copies exist while gathered.
Cell<StateBytes> fsdp_states(DType precision, double moments) {
  constexpr std::string_view kSource = "torch fully_shard MixedPrecisionPolicy: fp32 shards";
  StateBytes states = full_precision(moments);
  states.parameter_from = 2;
  switch (precision) {
    case DType::kFp16:
    case DType::kFp8:
    case DType::kFp4:
    case DType::kBf16:
      states.gathered = 2;
      return {states, kSource};
    case DType::kFp64:
    case DType::kFp32:
    case DType::kTf32:
    case DType::kInt8:
      return {states, kSource};
  }
  contract_violated("EXPECTS", "precision is one of the enumerators", __FILE__, __LINE__);
}

/// The thin runtime computes with the fp32 parameters that it stores. It has no 16-bit mode: what
/// one would hold is FSDP's.
Cell<StateBytes> runtime_states(DType precision, double moments) {
  Cell<StateBytes> states = fsdp_states(precision, moments);
  if (states.value.gathered == full_precision(moments).gathered) {
    states = {full_precision(moments), "validate/runtime/parameters.h"};
  }
  return states;
}

/// BF16_Optimizer keeps whole fp32 gradient accumulators beside the bf16 gradients.
Cell<StateBytes> megatron_deepspeed_states(DType precision, double moments) {
  Cell<StateBytes> states = zero_states(precision, moments);
  if (precision == DType::kBf16 || precision == DType::kFp8) {
    states.value.extra = 4;
    states.source = "DeepSpeed runtime/bf16_optimizer.py: fp32 gradient accumulators, not sharded";
  }
  return states;
}

}  // namespace

Cell<StateBytes> state_bytes(Framework framework, DType precision, OptimizerKind optimizer) {
  const double moments = moment_bytes(optimizer);
  switch (framework) {
    case Framework::kMegatron:
    case Framework::kMegatron2021:
      return megatron_states(precision, moments);
    case Framework::kNemo:
      return nemo_states(precision, moments);
    case Framework::kMegatronDeepSpeed:
      return megatron_deepspeed_states(precision, moments);
    case Framework::kDeepSpeed:
      return zero_states(precision, moments);
    case Framework::kFsdp:
    case Framework::kTorchtitan:
      return fsdp_states(precision, moments);
    case Framework::kTowtankRuntime:
      return runtime_states(precision, moments);
  }
  contract_violated("EXPECTS", "framework is one of the enumerators", __FILE__, __LINE__);
}

}  // namespace towtank
