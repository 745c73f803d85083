// SPDX-License-Identifier: Apache-2.0
#include "model/cost/choose_costs.h"

#include <algorithm>
#include <string>

#include "model/cost/analytic.h"
#include "model/cost/calibrated.h"
#include "model/cost/calibration_json.h"

namespace towtank {
namespace {

bool serves(const Calibration& calibration, const DeviceKind& device, const NetworkView& view) {
  const bool ops =
      std::any_of(calibration.ops.begin(), calibration.ops.end(), [&](const OpRecord& r) {
        return r.device_kind == device.name || r.generation == device.generation;
      });
  const bool links =
      std::any_of(calibration.collectives.begin(), calibration.collectives.end(),
                  [&](const CollectiveRecord& r) {
                    return std::any_of(view.levels.begin(), view.levels.end(),
                                       [&](const auto& level) { return level.fabric == r.fabric; });
                  });
  return ops || links;
}

}  // namespace

std::span<const Calibration> shipped_calibrations() {
  static const std::vector<Calibration> kShipped = [] {
    std::vector<Calibration> all;
    for (const EmbeddedFile& file : embedded_calibrations()) {
      all.push_back(parse_calibration(
          JsonFile::parse(std::string(file.text), std::string(file.name) + ".json")));
    }
    return all;
  }();
  return kShipped;
}

std::unique_ptr<CostModel> load_cost_model(const Platform& platform, const DeviceKind& device,
                                           const NetworkView& view,
                                           std::span<const Calibration> user) {
  std::vector<Calibration> named;
  for (const std::string& name : platform.calibrations) named.push_back(load_calibration(name));
  std::vector<const Calibration*> asked;
  std::vector<RuntimeRecord> runtime;
  const auto ask = [&](std::span<const Calibration> calibrations) {
    for (const Calibration& c : calibrations) {
      if (serves(c, device, view)) asked.push_back(&c);
      runtime.insert(runtime.end(), c.frameworks.begin(), c.frameworks.end());
    }
  };
  ask(user);
  ask(named);
  const bool own_runtime = !runtime.empty();
  ask(shipped_calibrations());
  if (asked.empty() && !own_runtime) return std::make_unique<AnalyticCostModel>(device, view);
  return std::make_unique<CalibratedCostModel>(device, view, asked, runtime);
}

}  // namespace towtank
