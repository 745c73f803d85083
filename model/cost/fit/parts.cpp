// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/parts.h"

#include <algorithm>

namespace towtank {
namespace {

// Traffic that differs by less is rounding of the source's own sizes.
constexpr double kRounding = 0.01;

std::vector<OpSignature> product_and_copies(const OpSignature& op) {
  OpSignature product = matmul(op.dtype, op.batch, op.m, op.n, op.k);
  product.pass = op.pass;
  const Bytes extra = op.traffic - product.traffic;
  const auto own = static_cast<double>(product.traffic.value);
  if (static_cast<double>(extra.value) <= kRounding * own) return {op};
  OpSignature copies = memory_op(OpKind::kElementwise, op.dtype, extra);
  copies.pass = op.pass;
  copies.kernels = std::max(1, op.kernels - 1);
  return {product, copies};
}

std::vector<OpSignature> logits_and_loss(const OpSignature& op) {
  OpSignature logits;
  logits.kind = OpKind::kMatmul;
  logits.dtype = op.dtype;
  logits.pass = op.pass;
  logits.work = op.work;
  OpSignature loss = op;
  loss.work = {};
  loss.kernels = std::max(1, op.kernels - 1);
  return {logits, loss};
}

}  // namespace

std::vector<OpSignature> parts_of(const OpSignature& op) {
  const bool shaped = op.m > 0 && op.n > 0 && op.k > 0;
  if (op.kind == OpKind::kMatmul && shaped) return product_and_copies(op);
  if (op.kind == OpKind::kCrossEntropy && op.work.value > 0.0) return logits_and_loss(op);
  return {op};
}

}  // namespace towtank
