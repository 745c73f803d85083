// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/calibrate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "core/text.h"
#include "model/cost/fit/collective_fit.h"
#include "platforms/allocate.h"

namespace towtank {
namespace {

constexpr std::array<std::string_view, 3> kPassNames{"forward", "input_grad", "weight_grad"};

/// Streams, then products, then what holds products.
constexpr std::array kOrder{OpKind::kElementwise, OpKind::kNorm,         OpKind::kEmbedding,
                            OpKind::kRouting,     OpKind::kOptimizer,    OpKind::kAttention,
                            OpKind::kMatmul,      OpKind::kCrossEntropy, OpKind::kConvolution};

struct OpGroup {
  OpKey key;
  std::vector<OpRow> rows;
};

struct FabricGroup {
  std::string fabric;
  CollectiveKey key;
  std::vector<CollectiveRow> rows;
};

class Calibrator {
 public:
  Calibrator(std::span<const Profile> profiles, const CalibrateOptions& options)
      : profiles_(profiles), options_(options) {
    for (const LeaveOut& rule : options.leave_out) out_.left_out.push_back({rule, 0});
  }

  CalibrationResult run() {
    out_.calibration.name = options_.name;
    out_.calibration.command = options_.command;
    std::vector<std::string> sources;
    for (const Profile& profile : profiles_) {
      if (std::find(sources.begin(), sources.end(), profile.source) == sources.end()) {
        sources.push_back(profile.source);
      }
    }
    out_.calibration.source = join(sources, "; ");
    fit_devices();
    fit_fabrics();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool left_out(const Profile& profile, const std::string& label,
                              std::string_view pass = "") {
    for (LeftOut& entry : out_.left_out) {
      const LeaveOut& rule = entry.rule;
      const bool labelled = rule.label == "*" || rule.label == label ||
                            (!pass.empty() && rule.label == label + " " + std::string(pass));
      if ((rule.profile == "*" || rule.profile == profile.name) && labelled) {
        ++entry.rows;
        return true;
      }
    }
    return false;
  }

  void refuse(std::string title, std::string why, std::string measure) {
    out_.refusals.push_back({std::move(title), std::move(why), std::move(measure)});
  }

  // --- ops ---

  void fit_devices() {
    std::set<std::string> names;
    for (const Profile& profile : profiles_) {
      if (!profile.ops.empty()) names.insert(profile.device_kind);
    }
    for (const std::string& name : names) {
      const auto device = std::find_if(options_.devices.begin(), options_.devices.end(),
                                       [&](const DeviceKind& d) { return d.name == name; });
      if (device == options_.devices.end()) {
        refuse("ops on " + (name.empty() ? "a device that is not named" : name),
               "the rates of the device are not known",
               "Name a device kind of the catalogue when importing the profile");
        continue;
      }
      fit_device(*device);
    }
  }

  [[nodiscard]] std::vector<OpGroup> groups_of(const std::string& device) {
    std::vector<OpGroup> groups;
    for (const Profile& profile : profiles_) {
      if (profile.device_kind != device) continue;
      for (const OpMeasurement& m : profile.ops) {
        const auto pass = static_cast<std::size_t>(m.signature.pass);
        if (left_out(profile, m.label, kPassNames[pass])) continue;
        const OpSignature& s = m.signature;
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const OpGroup& g) {
          const std::vector<DType>& served = g.key.dtypes;
          const bool core = s.kind != OpKind::kAttention || g.key.fused == s.fused;
          return g.key.kind == s.kind && core &&
                 std::find(served.begin(), served.end(), s.dtype) != served.end();
        });
        if (same != groups.end()) {
          same->rows.push_back({&m, &profile});
        } else {
          groups.push_back(
              {{s.kind, s.fused, dtypes_with(s.kind, s.fused, s.dtype)}, {{&m, &profile}}});
        }
      }
    }
    const auto place = [](const OpGroup& g) {
      const auto at = std::find(kOrder.begin(), kOrder.end(), g.key.kind) - kOrder.begin();
      return std::tuple{at, g.key.fused, g.key.dtypes.front()};
    };
    std::sort(groups.begin(), groups.end(),
              [&](const OpGroup& a, const OpGroup& b) { return place(a) < place(b); });
    return groups;
  }

  void fit_device(const DeviceKind& device) {
    OpParameters parameters = documented_op_parameters(device);
    for (const OpGroup& group : groups_of(device.name)) {
      auto fitted = fit_op(device, group.key, group.rows, parameters);
      if (auto* refusal = std::get_if<Refusal>(&fitted)) {
        out_.refusals.push_back(std::move(*refusal));
        continue;
      }
      auto& fit = std::get<OpFit>(fitted);
      out_.calibration.ops.push_back(std::move(fit.record));
      out_.reports.push_back(std::move(fit.report));
    }
  }

  // --- collectives ---

  [[nodiscard]] std::vector<FabricGroup> fabric_groups() {
    std::map<std::tuple<FabricLevel, std::string, Collective>, std::vector<CollectiveRow>> sorted;
    std::map<std::string, int> unknown;
    for (const Profile& profile : profiles_) {
      for (const CollectiveMeasurement& m : profile.collectives) {
        const auto op = static_cast<std::size_t>(m.op);
        if (left_out(profile, std::string(kCollectiveNames[op]))) continue;
        const bool inside = m.ranks == m.ranks_per_node;
        const std::string& fabric = inside ? profile.fabric_intranode : profile.fabric_internode;
        if (fabric.empty() || m.ranks % m.ranks_per_node != 0) {
          ++unknown[profile.name];
          continue;
        }
        const FabricLevel level = inside ? FabricLevel::kIntranode : FabricLevel::kInternode;
        sorted[{level, fabric, m.op}].push_back({&m, &profile});
      }
    }
    for (const auto& [profile, rows] : unknown) {
      refuse("collectives of " + profile,
             std::to_string(rows) + " rows cross a fabric that the profile does not name",
             "Name it when importing (--fabric, --fabric-internode)");
    }
    std::vector<FabricGroup> groups;
    for (auto& [key, rows] : sorted) {
      groups.push_back({std::get<1>(key), {std::get<0>(key), std::get<2>(key)}, std::move(rows)});
    }
    return groups;
  }

  /// The network of the first platform whose level has the fabric.
  [[nodiscard]] std::optional<NetworkView> view_for(const FabricGroup& group) const {
    int devices = 2;
    for (const CollectiveRow& row : group.rows) devices = std::max(devices, row.measurement->ranks);
    for (const Platform& platform : options_.platforms) {
      const auto allocated = allocate(platform, devices);
      if (!std::holds_alternative<Allocation>(allocated)) continue;
      NetworkView view = network_view(platform, std::get<Allocation>(allocated));
      const auto level = static_cast<std::size_t>(group.key.level);
      if (level < view.levels.size() && view.levels[level].fabric == group.fabric) return view;
    }
    return std::nullopt;
  }

  void fit_fabrics() {
    std::map<std::pair<std::string, bool>, Estimate> launch;
    std::map<std::string, CollectiveParameters> fitted;
    for (const FabricGroup& group : fabric_groups()) {
      const auto view = view_for(group);
      if (!view) {
        refuse(std::string(to_text(group.key.op)) + " on " + group.fabric,
               "no platform with this fabric was named, so its hardware rate is not known",
               "Name one (--platform)");
        continue;
      }
      // What a fabric's node reaches is known when several nodes are fitted.
      const std::string& inside = view->levels.front().fabric;
      CollectiveParameters parameters = documented_collective_parameters(*view);
      if (const auto known = fitted.find(inside); known != fitted.end()) {
        parameters.level.front() = known->second.level.front();
      }
      auto result = fit_collective(*view, group.key, group.rows, parameters);
      if (auto* refusal = std::get_if<Refusal>(&result)) {
        out_.refusals.push_back(std::move(*refusal));
        continue;
      }
      if (group.key.level == FabricLevel::kIntranode) fitted.insert_or_assign(inside, parameters);
      auto& fit = std::get<CollectiveFit>(result);
      const auto [least, added] = launch.emplace(
          std::pair{group.fabric, group.key.level == FabricLevel::kIntranode}, fit.record.launch);
      if (!added && fit.record.launch.value < least->second.value)
        least->second = fit.record.launch;
      out_.calibration.collectives.push_back(std::move(fit.record));
      out_.reports.push_back(std::move(fit.report));
    }
    for (CollectiveRecord& record : out_.calibration.collectives) {
      record.launch = launch.at({record.fabric, record.level == FabricLevel::kIntranode});
    }
  }

  std::span<const Profile> profiles_;
  const CalibrateOptions& options_;
  CalibrationResult out_;
};

}  // namespace

CalibrationResult calibrate(std::span<const Profile> profiles, const CalibrateOptions& options) {
  return Calibrator(profiles, options).run();
}

}  // namespace towtank
