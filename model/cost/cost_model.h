// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long one op or one collective takes, alone on its device or its links. The seam behind
/// which the analytic roofline, a calibrated model and test fakes stand.
///
/// A cost carries its basis, so that a report can say what a number rests on. Not modelled here:
/// overlap and interference (the evaluator), contention between groups (sim/).
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.h"
#include "model/frameworks/rules.h"
#include "model/graph/model_graph.h"
#include "platforms/allocate.h"
#include "profiler/op_signature.h"

namespace towtank {

enum class Basis { kMeasured, kInterpolated, kExtrapolated, kAnalytic };
inline constexpr std::size_t kBasisCount = 4;
inline constexpr std::array<std::string_view, kBasisCount> kBasisNames{"measured", "interpolated",
                                                                       "extrapolated", "analytic"};

struct OpCost {
  Seconds time;     ///< launch + max(compute, memory); their sum where kernels follow in turn
  Seconds compute;  ///< work / achieved rate
  Seconds memory;   ///< traffic / achieved bandwidth
  Seconds launch;
  Basis basis = Basis::kAnalytic;
};

struct CollectiveCall {
  Collective op = Collective::kAllReduce;
  Bytes payload;  ///< as nccl-tests counts it
  GroupShape group;
};

struct CollectiveCost {
  Seconds launch, latency, transfer;
  int level = 0;  ///< NetworkView level whose bandwidth binds
  Basis basis = Basis::kAnalytic;
  [[nodiscard]] constexpr Seconds time() const { return launch + latency + transfer; }
};

/// What a framework adds to the work itself on one kind of device: fitted on whole training steps,
/// documented or zero until then.
struct RuntimeCosts {
  Seconds host_per_kernel;  ///< host time to launch one kernel: a layer of n kernels takes no less
                            ///< than n of these, however small its kernels are
  double compute_factor = 1.0;    ///< its kernels over those of the op costs: older libraries,
                                  ///< unfused element-wise chains
  double attention_factor = 1.0;  ///< its fused attention over that of the op costs, instead
  Seconds per_microbatch;     ///< gaps of one stage and microbatch: data, timers, synchronisation
  Seconds per_step;           ///< the same once a step
  double interference = 0.1;  ///< share by which overlapped communication slows computation
  std::optional<Bytes> context_bytes;     ///< outside the allocator; nullopt: the framework row's
  std::optional<double> reserved_factor;  ///< reserved over allocated; the same
  double low50 = 1.0, high50 = 1.35;      ///< measured over predicted step time: quartiles
  double low90 = 0.85, high90 = 1.7;      ///< and 5 % to 95 %
  Basis basis = Basis::kAnalytic;
  std::string origin;  ///< which record it is, for reports; empty: none
};

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;
  /// Zero work and zero traffic cost nothing. Monotone in work and traffic.
  [[nodiscard]] virtual OpCost op(const OpSignature&) const = 0;
  /// A group of one rank costs nothing. Monotone in payload.
  [[nodiscard]] virtual CollectiveCost collective(const CollectiveCall&) const = 0;
  /// The framework's own costs. The default is that of a machine that nobody has measured: no host
  /// costs, and the spread of uncalibrated rooflines, which published comparisons find 20-36 % off
  /// and nearly always too fast.
  [[nodiscard]] virtual RuntimeCosts runtime(Framework) const { return {}; }
  /// For reports: what it is and what it rests on.
  [[nodiscard]] virtual std::string description() const = 0;
};

}  // namespace towtank
