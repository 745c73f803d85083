// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was measured: durations per op signature and per collective, with spread and provenance.
/// A Profile is what importers and collectors make and what calibration fits.
///
/// Every duration is measured and in seconds. `launch_included` says whether a launch by the host
/// is part of it: kernels replayed from a CUDA graph or summed from a trace are without.
///
/// One time can cover several kernels. Then `signature.kernels` counts them, `work` and `traffic`
/// are their sums, and the kind and shape are those of the one that matters most:
///
///   measured together            signature
///   a product and copies         kMatmul, its shape; traffic with that of the copies
///   both gradients of a product  kMatmul, kInputGrad, shape of the input gradient, batch twice
///   that
///                                of the forward product, work and traffic of the two
///   logits and loss              kCrossEntropy, work that of the product
///   softmax of an attention      kAttention, unfused, no shape and no work: part of its core
///
/// Not recorded: clocks, temperature, which kernel ran.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "profiler/collective.h"
#include "profiler/op_signature.h"

namespace towtank {

/// Repeats of one measurement. The median is what is fitted.
struct Duration {
  Seconds median;
  std::optional<Seconds> low, high;  ///< least and largest repeat; nullopt if not recorded
  int repeats = 1;
  friend bool operator==(const Duration&, const Duration&) = default;
};

/// Repeats that are all known: their median (of an even number: the mean of the middle two), least
/// and largest. Pre: not empty.
[[nodiscard]] Duration duration_of(std::vector<Seconds> repeats);

struct OpMeasurement {
  OpSignature signature;
  Duration time;
  std::string label;  ///< the source's own name: "mlp_up_proj"
  std::string group;  ///< rows that must stay together when data is split: model, file
};

struct CollectiveMeasurement {
  Collective op = Collective::kAllReduce;
  Bytes payload;  ///< as nccl-tests counts it
  int ranks = 2;
  int ranks_per_node = 2;  ///< ranks == ranks_per_node: inside one node
  Duration time;
  std::string group;
};

/// What an importer met: each oddity counted, none dropped in silence.
struct ImportStats {
  enum class Severity { kInfo, kLoss, kError };
  struct Count {
    std::string what;  ///< "rows with zero time"
    Severity severity = Severity::kInfo;
    long rows = 0;
    std::string first;  ///< where the first one stands: "a.csv: line 12"; may be empty
    friend bool operator==(const Count&, const Count&) = default;
  };
  long rows_read = 0, rows_kept = 0;
  std::vector<Count> counts;  ///< in the order in which they were first met
  void add(std::string_view what, Severity severity, long rows = 1, std::string_view where = "");
  friend bool operator==(const ImportStats&, const ImportStats&) = default;
};
inline constexpr std::size_t kSeverityCount = 3;
/// info: nothing is lost; loss: measured data left out; error: data that cannot be read.
inline constexpr std::array<std::string_view, kSeverityCount> kSeverityNames{"info", "loss",
                                                                             "error"};

struct Profile {
  std::string name;
  std::string device_kind;       ///< platform catalogue's name; empty if collectives only
  std::string fabric_intranode;  ///< fabric kinds; empty where unknown: rows that cross it
  std::string fabric_internode;  ///< calibrate nothing
  bool launch_included = false;
  std::string source;   ///< who measured it and where it stands, with licence
  std::string machine;  ///< host, driver, clocks, library versions, as far as known
  std::vector<OpMeasurement> ops;
  std::vector<CollectiveMeasurement> collectives;
  ImportStats stats;
};

}  // namespace towtank
