// SPDX-License-Identifier: Apache-2.0
#include "profiler/op_signature.h"

#include <algorithm>

#include "core/contracts.h"

namespace towtank {
namespace {

/// Results of low-precision products leave the matrix units in two bytes.
double result_bytes(DType dtype) { return std::max(2.0, bytes_per_element(dtype)); }

/// Beyond any machine; keeps the conversion to whole bytes defined.
constexpr double kMaxTraffic = 1e17;

}  // namespace

OpSignature matmul(DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
  EXPECTS(batch >= 0 && m >= 0 && n >= 0 && k >= 0);
  const auto [rb, rm, rn, rk] = std::array{static_cast<double>(batch), static_cast<double>(m),
                                           static_cast<double>(n), static_cast<double>(k)};
  OpSignature s;
  s.kind = OpKind::kMatmul;
  s.dtype = dtype;
  s.batch = batch;
  s.m = m;
  s.n = n;
  s.k = k;
  s.work = Flop{2 * rb * rm * rn * rk};
  const double moved =
      rb * ((rm * rk + rk * rn) * bytes_per_element(dtype) + rm * rn * result_bytes(dtype));
  s.traffic = bytes_from(std::min(moved, kMaxTraffic));
  return s;
}

double softmax_passes(const OpSignature& op) {
  const bool forward = op.pass == Pass::kForward;
  if (bytes_per_element(op.dtype) > 2.0) return forward ? 6.0 : 10.0;
  const double read = forward ? 1.0 : 2.0;
  return 1.0 + (op.causal ? 0.5 : 1.0) * read;
}

OpSignature memory_op(OpKind kind, DType dtype, Bytes traffic, Flop work, int kernels) {
  EXPECTS(traffic.value >= 0 && work.value >= 0 && kernels >= 0);
  OpSignature s;
  s.kind = kind;
  s.dtype = dtype;
  s.work = work;
  s.traffic = traffic;
  s.kernels = kernels;
  return s;
}

}  // namespace towtank
