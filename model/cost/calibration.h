// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was fitted from profiles: parameters of the cost formulas, each record *for* a device kind,
/// a fabric kind and level, or a (framework, device kind), with residuals and the rows used.
///
///   record        formula                                                             for
///   matmul        t = launch + 2 b m n k / (peak e)                                   device, dtype
///                 e = e_max * waves(m, n) * k/(k + k_half) * mn/(mn + mn_half)
///   attention     t = launch + work / (peak e_max * l/(l + l_half)), fused            device, dtype
///   memory-bound  t = launch + traffic / (bandwidth e_max * S/(S + S_half))           device, op kind
///   collective    t = launch + steps alpha + wire S / (beta e_max * S/(S + S_half))   fabric, level
///   framework     host_per_kernel, per_microbatch, per_step, interference, memory     framework,
///                                                                                     device
///   waves(m, n)   tiles / (ceil(tiles / multiprocessors) * multiprocessors), blended with 1 by the
///                 fitted share `wave_share`
///
/// `spread` is the standard deviation of log(measured / predicted) on rows that the fit did not use.
/// Units: seconds, bytes, fractions of the hardware rate. Not modelled: clocks under power limits.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "model/cost/cost_model.h"
#include "profiler/op_signature.h"

namespace towtank {

/// Rows behind a record: which, how many, and how well they are met.
struct FitEvidence {
  std::vector<std::string> profiles;   ///< names of the profiles used
  int rows = 0, outliers = 0;
  double spread = 0;                   ///< held-out standard deviation of log residuals
  double bias = 0;                     ///< held-out mean of log residuals
  int held_out_rows = 0;
  std::string held_out;                ///< which groups
};

/// One measured shape kept beside the fit: the correction near it.
struct MeasuredShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double log_ratio = 0;                ///< log(measured / fitted)
};

struct OpRecord {
  std::string device_kind;
  OpKind kind = OpKind::kMatmul;
  DType dtype = DType::kBf16;
  Seconds launch;                      ///< per kernel, on the device
  double e_max = 0.7;                  ///< (0, 1]
  double k_half = 0;                   ///< matmul: inner size at half the rate; attention: l_half
  double mn_half = 0;                  ///< matmul: outputs at half the rate
  double wave_share = 0;               ///< [0, 1]
  double traffic_half = 0;             ///< memory-bound: bytes at half the bandwidth
  double backward_factor = 1;          ///< time of an input- or weight-gradient op over the formula
  std::vector<MeasuredShape> shapes;
  FitEvidence evidence;
};

enum class FabricLevel { kIntranode, kInternode };

struct CollectiveRecord {
  std::string fabric;
  FabricLevel level = FabricLevel::kIntranode;
  Collective op = Collective::kAllReduce;
  Seconds launch, alpha;
  double e_max = 0.8;
  double payload_half = 0;             ///< bytes at half the bandwidth
  FitEvidence evidence;
};

struct FrameworkRecord {
  std::string device_kind;             ///< empty: any device of the generation given
  std::string generation;
  Framework framework = Framework::kMegatron;
  RuntimeCosts costs;
  std::optional<Bytes> context_bytes, buffer_bytes;
  std::optional<double> reserved_factor;
  FitEvidence evidence;
};

struct Calibration {
  std::string name;
  std::string command;                 ///< what made it
  std::vector<OpRecord> ops;
  std::vector<CollectiveRecord> collectives;
  std::vector<FrameworkRecord> frameworks;
  std::string hash;
};

}  // namespace towtank
