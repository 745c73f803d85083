// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost model of a device on a network: the best that calibrations can give.
///
///   asked in turn
///   1  calibrations of the user (--calibration)
///   2  those that the platform names, shipped ones by name, files by path
///   3  shipped ones (model/cost/library/*.json, compiled in)
///
/// A record of the device's own kind is taken before one of another kind of its generation,
/// whatever its place; see chosen_records.h. Where no record serves at all, the model is
/// analytic.h's.
#include <memory>
#include <span>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/cost_model.h"
#include "platforms/platform.h"

namespace towtank {

/// All embedded_calibrations(), read once.
[[nodiscard]] std::span<const Calibration> shipped_calibrations();

/// Throws InputError if a calibration that the platform names cannot be read.
[[nodiscard]] std::unique_ptr<CostModel> load_cost_model(const Platform&, const DeviceKind&,
                                                         const NetworkView&,
                                                         std::span<const Calibration> user = {});

}  // namespace towtank
