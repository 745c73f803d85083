// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Profiles in, calibration out: every record that their rows can tell, and why the others cannot.
///
/// Rows are sorted by what they are for: ops by (device kind, kind, dtypes of one rate),
/// collectives by (fabric kind, level, collective). Streams are fitted before products, whose
/// copies they are, products before cross entropy, whose logits they are. A collective of several
/// nodes is fitted with what its node's fabric reaches.
///
/// A launch costs all collectives that go round a fabric the same, and all that only send (send-
/// receive, all-to-all): records have the least that any profile of those found.
#include <span>
#include <string>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/fit/evidence.h"
#include "model/cost/fit/op_fit.h"
#include "platforms/platform.h"
#include "profiler/profile.h"

namespace towtank {

/// Rows that are not to be fitted, and why: an op's label, alone or with its pass ("fc1
/// input_grad"), or a collective's name, in one profile; "*" for all.
struct LeaveOut {
  std::string profile, label, reason;
};

struct CalibrateOptions {
  std::string name;
  std::string command;
  std::vector<DeviceKind> devices;  ///< by name those of the profiles
  std::vector<Platform> platforms;  ///< whose fabrics the profiles' collectives crossed
  std::vector<LeaveOut> leave_out;
};

struct LeftOut {
  LeaveOut rule;
  int rows = 0;
};

struct CalibrationResult {
  Calibration calibration;
  std::vector<RecordReport> reports;  ///< of the op records, then of the collective ones
  std::vector<Refusal> refusals;
  std::vector<LeftOut> left_out;
};

/// Deterministic. Records in the order of device kinds, fabrics and kinds.
[[nodiscard]] CalibrationResult calibrate(std::span<const Profile> profiles,
                                          const CalibrateOptions& options);

}  // namespace towtank
