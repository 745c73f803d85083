// SPDX-License-Identifier: Apache-2.0
#include "model/cost/efficiencies.h"

#include <algorithm>
#include <array>

namespace towtank {
namespace {

// product         ml-engineering, maximum achievable matmul FLOPS: A100 271 of 312 TFLOP/s, H100
//                 795 and GH200 829 of 989, B200 1745 of 2250, MI300X 668 of 1307, MI355X 1565 of
//                 2300. V100 112 of 125 and T4 46.5 of 65: DeepBench, mixed precision. Ada: cuBLAS
//                 on an L20 105 to 115 of 119.5, CUDA-Learn-Notes/hgemm. cdna2 assumed.
// flash_forward   A100 225 of 312, up to 72 %: Dao 2023, FlashAttention-2. H100 621 at 16k
//                 (pytorch/benchmark pull 2391), 639 at 8k; B200 1535 at 8k (flash-attention pull
//                 2280); hopper and blackwell lowered to what training of Llama-3.1-8B at 128k
//                 reached of both passes, 42 and 37 % (ml-engineering, when to upgrade), because
//                 clocks fall under load.
// flash_backward  H100 561 at 8k (facebookexperimental/triton pull 3463), B200 1250 to 1360 (as
//                 above), lowered likewise. A100, ada: assumed in the proportion of hopper's.
//                 No fused kernel is common on volta; turing, cdna2 and cdna3 are assumed.
// memory          Large element-wise kernels: V100 0.82 to 0.87, T4 0.72 to 0.76 (NeuSight); A100
//                 0.82 to 0.90, A40 0.83 to 0.86, H100 0.95 to 1.0 with some hits in the cache
//                 (Vidur). Ada as A40; blackwell and cdna assumed.
constexpr std::array kTable{
    Efficiencies{"volta", 0.88, 0.40, 0.33, 0.84},      //
    Efficiencies{"turing", 0.71, 0.45, 0.37, 0.74},     //
    Efficiencies{"ampere", 0.87, 0.72, 0.60, 0.85},     //
    Efficiencies{"ada", 0.90, 0.72, 0.60, 0.84},        //
    Efficiencies{"hopper", 0.80, 0.62, 0.50, 0.92},     //
    Efficiencies{"blackwell", 0.77, 0.56, 0.43, 0.90},  //
    Efficiencies{"cdna2", 0.55, 0.30, 0.22, 0.75},      //
    Efficiencies{"cdna3", 0.51, 0.38, 0.27, 0.78},      //
    Efficiencies{"cdna4", 0.68, 0.45, 0.33, 0.78},      //
};
// No better than the least of the known in each column.
constexpr Efficiencies kUnknown{"unknown", 0.50, 0.30, 0.22, 0.70};

}  // namespace

const Efficiencies& efficiencies_of(std::string_view generation) {
  const auto* const known = std::find_if(kTable.begin(), kTable.end(), [&](const Efficiencies& e) {
    return e.generation == generation;
  });
  return known == kTable.end() ? kUnknown : *known;
}

}  // namespace towtank
