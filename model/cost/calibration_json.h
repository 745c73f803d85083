// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Calibration files ("format": "towtank-calibration", "version": 1; docs/calibration.md) in and
/// out.
///
///   ops          [{device_kind, generation, memory_bandwidth_bytes_per_s, peak_flop_per_s, op,
///                  fused (attention), dtypes, terms, rows, shapes, evidence}]
///   collectives  [{fabric, level, topology (intranode), node_devices, collective, launch_s,
///   step_s,
///                  low_step_s, low_share, group_limit_bytes_per_s, shares, payload_bytes,
///                  evidence}]
///   frameworks   [..]                                                        runtime_record.h
///
/// An estimate is {"value", "error"}, or {"value", "fitted": false}. Written with five significant
/// digits: more would be noise. Checked: every number's range, a share for some number of ranks,
/// the terms that the kind has, knots in order.
#include <string>

#include "core/json.h"
#include "model/cost/calibration.h"

namespace towtank {

/// Throws InputError with every fault.
[[nodiscard]] Calibration parse_calibration(const JsonFile&);
/// A shipped one by name, or a file by path (it contains '/' or ends in .json). Throws InputError
/// with the nearest names.
[[nodiscard]] Calibration load_calibration(const std::string& name_or_path);
[[nodiscard]] Json to_json(const Calibration&);
/// The text of a file: records on lines of their own. parse_calibration of it gives the calibration
/// again, but for digits.
[[nodiscard]] std::string calibration_text(const Calibration&);

}  // namespace towtank
