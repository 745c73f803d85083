// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Constants of a framework on one generation of devices, fitted on whole training steps: the part
/// of a calibration that microbenchmarks cannot give. Shipped in model/cost/library/*.json
/// ("format": "towtank-calibration"); `towtank validate CASES --fit FILE` makes such a file.
///
///   order of choice for (framework, device)      interval         basis
///   record of its device kind                    as fitted        interpolated
///   record of its generation                     as fitted        interpolated
///   framework that stands in, its generation     log doubled      extrapolated
///   the framework, nearest NVIDIA generation     log doubled      extrapolated
///   framework that stands in, nearest one        log doubled      extrapolated
///   none: RuntimeCosts{}                         uncalibrated     analytic
///
/// Megatron-LM and NeMo run the same kernels and stand in for each other, Megatron-LM of 2021 for
/// Megatron-DeepSpeed, with compute_factor 1. The memory constants of a record that is not the
/// framework's own on its generation are not taken: its rules' are.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/cost/cost_model.h"
#include "platforms/embedded_library.h"

namespace towtank {

struct RuntimeRecord {
  Framework framework = Framework::kMegatron;
  std::string device_kind;  ///< empty: any device of the generation
  std::string generation;
  RuntimeCosts costs;
  std::vector<std::string> identified;  ///< constants that the cases tell; the others are the prior
  // Evidence: what was fitted on, and the out-of-fold errors log(measured / predicted).
  std::vector<std::string> sets;
  int rows = 0, folds = 0;
  double bias = 0, spread = 0;
};

struct RuntimeCalibration {
  std::string name;
  std::string command;  ///< what made it
  std::string source;   ///< who measured the cases
  std::vector<RuntimeRecord> records;
};

/// One entry of "frameworks", in and out.
[[nodiscard]] RuntimeRecord read_runtime_record(const JsonReader&);
[[nodiscard]] Json to_json(const RuntimeRecord&);
/// Reads the frameworks of a calibration file; other records of it are calibration_json.h's. Throws
/// InputError with every fault.
[[nodiscard]] RuntimeCalibration parse_runtime_calibration(const JsonFile&);
[[nodiscard]] Json to_json(const RuntimeCalibration&);

/// The files of model/cost/library, generated at build time.
[[nodiscard]] std::span<const EmbeddedFile> embedded_calibrations();
/// All records of those embedded_calibrations() that have "frameworks", read once.
[[nodiscard]] std::span<const RuntimeRecord> shipped_runtime_records();

/// What a framework costs on a device by the order above; `origin` says which record it is.
[[nodiscard]] RuntimeCosts runtime_costs(std::span<const RuntimeRecord>, Framework,
                                         const DeviceKind&);

}  // namespace towtank
