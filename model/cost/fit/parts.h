// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Times that cover several kernels (profile.h), taken apart into ops that the formulas know.
///
///   measured together      parts
///   a product and copies   the product of its shape; what is moved beyond it, element-wise
///   logits and loss        the work at the rate of large products; all traffic, as cross entropy
///   else                   the op itself
#include <vector>

#include "profiler/op_signature.h"

namespace towtank {

/// One after the other; their kernels add up to the op's. Not empty.
[[nodiscard]] std::vector<OpSignature> parts_of(const OpSignature&);

}  // namespace towtank
