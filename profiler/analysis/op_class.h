// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What an op of PyTorch computes, from its name and its inputs.
///
///   aten op                                     signature
///   mm addmm bmm baddbmm matmul linear          kMatmul of the shapes
///   convolution and its backends                kConvolution: output points x window x channels
///   convolution_backward                        the same product, input gradient; both gradients
///                                               have twice the batch (profiler/profile.h)
///   _flash_attention_forward, ... _backward     kAttention, fused; backward 2.5 times the work
///   _softmax of four dimensions                 kAttention, not fused: the softmax of its core
///   *layer_norm *batch_norm *group_norm         kNorm: reads and writes its input; backward reads
///                                               it and the gradient
///   embedding index_select                      kEmbedding: rows read and written
///   _log_softmax nll_loss cross_entropy         kCrossEntropy
///   add mul copy_ gelu dropout cat ...          kElementwise: inputs read, the widest written
///
/// The gradient of a product is itself a product: pass kInputGrad stands for either gradient.
/// Work and traffic as profiler/op_signature.h counts them; of attention only the four products
/// (4 * batch * m * n * k; half of it if causal).
///
/// Not known: strides (copies of transposed tensors are not told apart), what fused and custom
/// kernels compute, reductions over lists whose shapes are not recorded.
#include <optional>
#include <span>
#include <string_view>

#include "profiler/op_signature.h"
#include "profiler/trace.h"

namespace towtank {

/// Number format of an element type as PyTorch writes it: "float", "c10::BFloat16", "Half".
[[nodiscard]] std::optional<DType> tensor_dtype(std::string_view type);
/// Bytes of an element of any type, also of integers and truth values.
[[nodiscard]] std::optional<int> tensor_element_bytes(std::string_view type);

/// `backward`: whether autograd's engine ran it. nullopt: not known, or without what is needed.
[[nodiscard]] std::optional<OpSignature> op_signature(std::string_view name,
                                                      std::span<const TraceInput> inputs,
                                                      bool backward);

}  // namespace towtank
