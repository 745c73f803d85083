// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was fitted from profiles: parameters of the cost formulas with the rows behind them.
///
///   record       parameters of                                          for
///   op           op_formula.h: a kind of op, dtypes of equal rate       device kind
///   collective   collective_cost.h: one collective on one level         fabric kind, topology,
///   level framework    RuntimeCosts, memory beside the model's own            framework, device
///   kind
///
/// Shares are fractions of the datasheet rate of the device or fabric that was measured, so that a
/// record serves others of its generation. Measured shapes stand beside an op's fit: a product of
/// that shape takes what was measured, one between two of its family (same batch, n and k) the fit
/// corrected by what they are off.
///
/// An Estimate that the rows could not tell keeps the documented value and says so (fitted: false).
/// Units: seconds, bytes, fractions. Not modelled: clocks under power limits, library versions.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "model/cost/collective_cost.h"
#include "model/cost/cost_model.h"
#include "model/cost/op_parameters.h"
#include "model/cost/runtime_record.h"
#include "profiler/op_signature.h"

namespace towtank {

struct Estimate {
  double value = 0.0;
  double error = 0.0;   ///< standard error, same unit; 0 if not fitted
  bool fitted = false;  ///< else documented, or taken from another record
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

/// Rows behind a record: which, how many, and how well it meets rows that it was not fitted to.
/// A residual is log(measured / predicted).
struct FitEvidence {
  std::vector<std::string> profiles;  ///< names of the profiles used
  int rows = 0;
  int host_bound = 0;    ///< of them, timed by the launcher: they tell nothing of the device
  int outliers = 0;      ///< beyond four robust standard deviations of the fit, and 10 %
  std::string held_out;  ///< what was left out in turn: "each of 3 groups"; empty: nothing could
  int held_out_rows = 0;
  double bias = 0.0;    ///< mean residual of rows left out
  double spread = 0.0;  ///< their standard deviation
  double median = 0.0;  ///< their median magnitude
  friend bool operator==(const FitEvidence&, const FitEvidence&) = default;
};

/// Parameters of op formulas by name; which of them an op kind has: terms_of().
enum class OpTerm {
  kShare,          ///< of the peak (products, fused attention), of the bandwidth (the others)
  kBackwardShare,  ///< the same of gradient ops; not of products
  kDepthHalf,      ///< products
  kIdleShare,      ///< products
  kMisaligned,     ///< products
  kStreamShare,    ///< products: of the bandwidth, where traffic binds
  kKeysHalf,       ///< fused attention
  kCausalKeysHalf,
  kWidthHalf,
  kRamp,
  kGap,
};
inline constexpr std::size_t kOpTermCount = 11;
/// Names in files: with the unit's suffix.
inline constexpr std::array<std::string_view, kOpTermCount> kOpTermNames{
    "share",     "backward_share",   "depth_half", "idle_share", "misaligned", "stream_share",
    "keys_half", "causal_keys_half", "width_half", "ramp_s",     "gap_s"};

struct Range {
  double low = 0.0, high = 0.0;
  [[nodiscard]] bool holds(double x) const { return x >= low && x <= high; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Measured products of one batch, n and k; log_ratio is log(measured / fitted).
struct ShapeFamily {
  struct Knot {
    std::int64_t m = 0;
    double log_ratio = 0.0;
    friend bool operator==(const Knot&, const Knot&) = default;
  };
  std::int64_t batch = 1, n = 0, k = 0;
  std::vector<Knot> knots;  ///< m ascending, each once
  friend bool operator==(const ShapeFamily&, const ShapeFamily&) = default;
};

struct OpRecord {
  std::string device_kind, generation;
  BytesPerSecond memory_bandwidth;  ///< of the device that was measured, by its datasheet
  FlopPerSecond peak;               ///< of its two-byte products
  OpKind kind = OpKind::kMatmul;
  bool fused = true;          ///< kAttention only: two kinds of core
  std::vector<DType> dtypes;  ///< that it serves: of equal rate and element size
  std::array<std::optional<Estimate>, kOpTermCount> terms;
  Range m, n, k;  ///< products: shapes of the rows
  Range traffic;  ///< bytes of the rows
  std::vector<ShapeFamily> families;
  FitEvidence evidence;
};
/// Terms of a record's kind, in the order of OpTerm.
[[nodiscard]] std::vector<OpTerm> terms_of(OpKind kind, bool fused);
/// The term of a dtype in the parameters of the formulas. Pre: the kind has it.
[[nodiscard]] double term_of(const OpParameters&, OpKind, bool fused, DType, OpTerm);
void set_term(OpParameters&, OpKind, bool fused, DType, OpTerm, double value);

enum class FabricLevel { kIntranode, kInternode };
inline constexpr std::array<std::string_view, 2> kFabricLevelNames{"intranode", "internode"};

struct CollectiveRecord {
  std::string fabric;
  FabricLevel level = FabricLevel::kIntranode;
  IntranodeTopology topology = IntranodeTopology::kSwitch;  ///< intranode only
  int node_devices = 0;  ///< mesh only: of the node that was measured; 0: any
  Collective op = Collective::kAllReduce;
  Estimate launch, step, low_step;  ///< [s]
  Estimate low_share;
  std::optional<Estimate> group_limit;  ///< [bytes/s], internode: of one group through one node
  struct Share {
    int ranks = 2;  ///< of the group at this level
    Estimate share;
    friend bool operator==(const Share&, const Share&) = default;
  };
  std::vector<Share> shares;  ///< ranks ascending; those between are interpolated
  Range payload;              ///< bytes of the rows
  FitEvidence evidence;
};

struct Calibration {
  std::string name;
  std::string command;  ///< what made it
  std::string source;   ///< who measured the rows, with licence
  std::vector<OpRecord> ops;
  std::vector<CollectiveRecord> collectives;
  std::vector<RuntimeRecord> frameworks;
  std::string hash;  ///< of the file's text; set on reading
};

}  // namespace towtank
