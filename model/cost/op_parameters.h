// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one device reaches, kind by kind: the parameters of the op formulas (op_formula.h). The
/// documented values serve machines that nobody has measured; calibration fits them.
///
/// Shares are fractions of the datasheet rate of the device, so that they carry over to devices of
/// the same generation; times are times.
#include <array>

#include "core/units.h"
#include "platforms/platform.h"
#include "profiler/op_signature.h"

namespace towtank {

/// Matrix products of one dtype.
struct ProductParameters {
  double share = 0.5;       ///< (0, 1] of the dense peak, for large products
  double depth_half = 0.0;  ///< inner size that takes as long as starting and storing a tile; >= 0
  double idle_share = 0.0;  ///< of the multiprocessors that the last wave leaves without work; >= 0
  double stream_share = 0.7;  ///< (0, 1] of memory bandwidth, where traffic binds
  Seconds ramp;               ///< time at full bandwidth before the first loads arrive
  Seconds gap;                ///< per kernel, on the device
  double misaligned = 0.0;    ///< added time of a product with rows of one element alignment, as a
                              ///< share; none from rows of 32 bytes on; >= 0
};

/// Ops that are bound by memory traffic, of one kind and one width of elements.
struct StreamParameters {
  double forward_share = 0.5;   ///< (0, 1] of memory bandwidth
  double backward_share = 0.5;  ///< the same of an input- or weight-gradient op
  Seconds ramp;
  Seconds gap;
};

/// Fused attention of one dtype; its traffic streams as StreamParameters of kAttention.
struct FusedAttentionParameters {
  double forward_share = 0.4;   ///< (0, 1] of the dense peak, heads 128 wide, many keys
  double backward_share = 0.3;  ///< the same
  double keys_half = 0.0;       ///< keys at which half of that is reached, forward, no mask
  double causal_keys_half = 0.0;
  double backward_keys = 1.0;  ///< those of backward over those of forward
  double width_half = 0.0;     ///< head width at which half is reached
  Seconds gap;
};

/// Elements of two bytes and less, and wider ones: kernels of the first kind convert to fp32.
enum class ElementWidth { kNarrow, kWide };
inline constexpr std::size_t kElementWidthCount = 2;
[[nodiscard]] ElementWidth element_width(DType d);

struct OpParameters {
  std::array<ProductParameters, kDTypeCount> product;
  std::array<FusedAttentionParameters, kDTypeCount> fused_attention;
  /// By kind; kAttention: softmax of unfused cores and traffic of fused ones. The entries of
  /// kMatmul and kConvolution are not used.
  std::array<std::array<StreamParameters, kElementWidthCount>, kOpKindCount> stream;
  double convolution_share = 0.7;  ///< of what products of the same shape reach
  double vector_share = 0.5;       ///< (0, 1] of the vector peak, chains of dependent instructions
  Seconds host;                    ///< per kernel: a device that outruns its host waits for it
};

/// The peak that products of a dtype run at: its own, else that of the next wider units (bf16 on a
/// V100: fp16), else the vector units'.
[[nodiscard]] FlopPerSecond product_peak(const DeviceKind& device, DType d);

/// Documented values by generation; sources stand in op_parameters.cpp. Eight- and four-bit floats
/// gain what was measured in training, not their peak.
[[nodiscard]] OpParameters documented_op_parameters(const DeviceKind& device);

}  // namespace towtank
