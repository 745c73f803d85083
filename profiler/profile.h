// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was measured: durations per op signature and per collective, with spread and provenance.
/// A Profile is what importers and collectors make and what calibration fits.
///
/// Every duration is measured and in seconds. `launch_included` says whether a launch by the host is
/// part of it: kernels replayed from a CUDA graph or summed from a trace are without.
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "profiler/collective.h"
#include "profiler/op_signature.h"

namespace towtank {

/// Repeats of one measurement. The median is what is fitted.
struct Duration {
  Seconds median;
  std::optional<Seconds> low, high;   ///< least and largest repeat; nullopt if not recorded
  int repeats = 1;
};

struct OpMeasurement {
  OpSignature signature;
  Duration time;
  std::string label;        ///< the source's own name: "mlp_up_proj"
  std::string group;        ///< rows that must stay together when data is split: model, file
};

struct CollectiveMeasurement {
  Collective op = Collective::kAllReduce;
  Bytes payload;            ///< as nccl-tests counts it
  int ranks = 2;
  int ranks_per_node = 2;   ///< ranks == ranks_per_node: inside one node
  Duration time;
  std::string group;
};

/// What an importer met: each oddity counted, none dropped in silence.
struct ImportStats {
  enum class Severity { kInfo, kLoss, kError };
  struct Count {
    std::string what;       ///< "rows with zero time"
    Severity severity = Severity::kInfo;
    long rows = 0;
  };
  long rows_read = 0, rows_kept = 0;
  std::vector<Count> counts;
  void add(std::string_view what, Severity severity, long rows = 1);
};

struct Profile {
  std::string name;
  std::string device_kind;          ///< platform catalogue's name; empty if collectives only
  std::string fabric_intranode;     ///< fabric kinds; empty where unknown
  std::string fabric_internode;
  bool launch_included = false;
  std::string source;               ///< who measured it and where it stands, with licence
  std::string machine;              ///< host, driver, clocks, library versions, as far as known
  std::vector<OpMeasurement> ops;
  std::vector<CollectiveMeasurement> collectives;
  ImportStats stats;
};

}  // namespace towtank
