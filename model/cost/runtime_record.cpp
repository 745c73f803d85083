// SPDX-License-Identifier: Apache-2.0
#include "model/cost/runtime_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

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

// NVIDIA's generations by year of their training devices; no record carries over to or from others.
constexpr std::array<std::string_view, 6> kGenerations{"volta", "turing", "ampere",
                                                       "ada",   "hopper", "blackwell"};

std::optional<int> place_of(std::string_view generation) {
  const auto* at = std::find(kGenerations.begin(), kGenerations.end(), generation);
  if (at == kGenerations.end()) return std::nullopt;
  return static_cast<int>(at - kGenerations.begin());
}

/// Of the generation nearest in kGenerations, the older of two as near.
const RuntimeRecord* nearest_record(std::span<const RuntimeRecord> records, Framework framework,
                                    const DeviceKind& device) {
  const auto place = place_of(device.generation);
  if (!place) return nullptr;
  const RuntimeRecord* best = nullptr;
  std::pair<int, int> least;
  for (const RuntimeRecord& r : records) {
    const auto other = place_of(r.generation);
    if (r.framework != framework || !r.device_kind.empty() || !other) continue;
    const std::pair<int, int> distance{std::abs(*other - *place), *other};
    if (best == nullptr || distance < least) {
      best = &r;
      least = distance;
    }
  }
  return best;
}

std::optional<Framework> stand_in(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:
      return Framework::kNemo;
    case Framework::kNemo:
      return Framework::kMegatron;
    case Framework::kMegatronDeepSpeed:
      return Framework::kMegatron2021;
    case Framework::kMegatron2021:
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

std::string origin_of(const RuntimeRecord& record, Framework asked, bool own_generation) {
  std::string out = "runtime constants of " + std::string(name_of(record.framework)) + " on " +
                    record.generation + ", fitted on " + std::to_string(record.rows) +
                    " measured steps";
  if (record.framework != asked) out += ", stand in for " + std::string(name_of(asked));
  if (!own_generation) out += ", the nearest generation";
  if (record.framework != asked || !own_generation) out += ": interval doubled";
  return out;
}

/// Another framework's kernels carry over, but not how the measured precisions compare with the op
/// costs; what lies beyond the tensors is the process's own, and of its generation.
RuntimeCosts carried_over(const RuntimeRecord& record, Framework asked, bool own_generation) {
  RuntimeCosts costs = record.costs;
  costs.basis = Basis::kExtrapolated;
  costs.origin = origin_of(record, asked, own_generation);
  if (record.framework != asked) costs.compute_factor = 1.0;
  costs.context_bytes = std::nullopt;
  costs.reserved_factor = std::nullopt;
  widen(costs.low50, costs.high50);
  widen(costs.low90, costs.high90);
  return costs;
}

}  // namespace

RuntimeCosts runtime_costs(std::span<const RuntimeRecord> records, Framework framework,
                           const DeviceKind& device) {
  if (const RuntimeRecord* own = find_record(records, framework, device)) {
    RuntimeCosts costs = own->costs;
    costs.basis = Basis::kInterpolated;
    costs.origin = origin_of(*own, framework, true);
    return costs;
  }
  const auto kin = stand_in(framework);
  if (kin) {
    const RuntimeRecord* other = find_record(records, *kin, device);
    if (other != nullptr) return carried_over(*other, framework, true);
  }
  if (const RuntimeRecord* own = nearest_record(records, framework, device)) {
    return carried_over(*own, framework, false);
  }
  const RuntimeRecord* other = kin ? nearest_record(records, *kin, device) : nullptr;
  return other != nullptr ? carried_over(*other, framework, false) : RuntimeCosts{};
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
