// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long one op or one collective takes, alone on its device or its links. The seam behind
/// which the analytic roofline, a calibrated model and test fakes stand.
///
/// A cost carries its basis, so that a report can say what a number rests on. Not modelled here:
/// overlap and interference (the evaluator), contention between groups (sim/).
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/units.h"
#include "model/graph/model_graph.h"
#include "platforms/allocate.h"
#include "profiler/op_signature.h"

namespace towtank {

enum class Basis { kMeasured, kInterpolated, kExtrapolated, kAnalytic };
inline constexpr std::size_t kBasisCount = 4;
inline constexpr std::array<std::string_view, kBasisCount> kBasisNames{"measured", "interpolated",
                                                                       "extrapolated", "analytic"};

struct OpCost {
  Seconds time;       ///< launch + max(compute, memory)
  Seconds compute;    ///< work / achieved rate
  Seconds memory;     ///< traffic / achieved bandwidth
  Seconds launch;
  Basis basis = Basis::kAnalytic;
};

struct CollectiveCall {
  Collective op = Collective::kAllReduce;
  Bytes payload;      ///< as nccl-tests counts it
  GroupShape group;
};

struct CollectiveCost {
  Seconds launch, latency, transfer;
  int level = 0;      ///< NetworkView level whose bandwidth binds
  Basis basis = Basis::kAnalytic;
  [[nodiscard]] constexpr Seconds time() const { return launch + latency + transfer; }
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
  /// For reports: what it is and what it rests on.
  [[nodiscard]] virtual std::string description() const = 0;
};

}  // namespace towtank
