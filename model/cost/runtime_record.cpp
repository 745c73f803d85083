// SPDX-License-Identifier: Apache-2.0
#include "model/cost/runtime_record.h"

#include <algorithm>
#include <cmath>

namespace towtank {
namespace {

const RuntimeRecord* find_record(std::span<const RuntimeRecord> records, Framework framework,
                                 const DeviceKind& device) {
  const RuntimeRecord* found = nullptr;
  for (const RuntimeRecord& r : records) {
    if (r.framework != framework) continue;
    if (r.device_kind == device.name) return &r;
    if (r.device_kind.empty() && r.generation == device.generation && found == nullptr) found = &r;
  }
  return found;
}

std::optional<Framework> stand_in(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:
      return Framework::kNemo;
    case Framework::kNemo:
      return Framework::kMegatron;
    case Framework::kMegatron2021:
    case Framework::kMegatronDeepSpeed:
    case Framework::kFsdp:
    case Framework::kTorchtitan:
    case Framework::kDeepSpeed:
    case Framework::kTowtankRuntime:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string_view name_of(Framework f) { return kFrameworkNames[static_cast<std::size_t>(f)]; }

/// Twice as wide in logarithms, around the same middle.
void widen(double& low, double& high) {
  const double middle = std::sqrt(low * high);
  low = middle * (low / middle) * (low / middle);
  high = middle * (high / middle) * (high / middle);
}

std::string origin_of(const RuntimeRecord& record, Framework asked) {
  std::string out = "runtime constants of " + std::string(name_of(record.framework)) + " on " +
                    record.generation + ", fitted on " + std::to_string(record.rows) +
                    " measured steps";
  if (record.framework != asked) {
    out += ", stand in for " + std::string(name_of(asked)) + ": interval doubled";
  }
  return out;
}

}  // namespace

RuntimeCosts runtime_costs(std::span<const RuntimeRecord> records, Framework framework,
                           const DeviceKind& device) {
  if (const RuntimeRecord* own = find_record(records, framework, device)) {
    RuntimeCosts costs = own->costs;
    costs.basis = Basis::kInterpolated;
    costs.origin = origin_of(*own, framework);
    return costs;
  }
  const auto kin = stand_in(framework);
  const RuntimeRecord* other = kin ? find_record(records, *kin, device) : nullptr;
  if (other == nullptr) return {};
  RuntimeCosts costs = other->costs;
  costs.basis = Basis::kExtrapolated;
  costs.origin = origin_of(*other, framework);
  // Kernels carry over, but not how the measured precisions compare with the op costs; what lies
  // beyond the tensors is the process's own.
  costs.compute_factor = 1.0;
  costs.context_bytes = std::nullopt;
  costs.reserved_factor = std::nullopt;
  widen(costs.low50, costs.high50);
  widen(costs.low90, costs.high90);
  return costs;
}

std::span<const RuntimeRecord> shipped_runtime_records() {
  static const std::vector<RuntimeRecord> kRecords = [] {
    std::vector<RuntimeRecord> all;
    for (const EmbeddedFile& file : embedded_calibrations()) {
      if (file.text.find("\"frameworks\"") == std::string_view::npos) continue;
      RuntimeCalibration calibration = parse_runtime_calibration(
          JsonFile::parse(std::string(file.text), std::string(file.name) + ".json"));
      std::move(calibration.records.begin(), calibration.records.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kRecords;
}

}  // namespace towtank
