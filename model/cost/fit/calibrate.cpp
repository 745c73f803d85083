// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/calibrate.h"

#include <algorithm>
#include <array>
#include <iterator>
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
  std::size_t platform = 0;  ///< of the options; as many as there are: none has the fabric
  CollectiveKey key;
  std::vector<CollectiveRow> rows;
};

/// Collectives whose kernels cost the same to start: those that go round, those that only send.
using LaunchKey = std::tuple<std::string, FabricLevel, bool>;
LaunchKey launch_key(const CollectiveRecord& record) {
  const bool sends = record.op == Collective::kSendRecv || record.op == Collective::kAllToAll;
  return {record.fabric, record.level, sends};
}

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
    using Key = std::tuple<FabricLevel, std::string, std::size_t, Collective>;
    std::map<Key, std::vector<CollectiveRow>> sorted;
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
        sorted[{level, fabric, platform_for(profile, fabric, level), m.op}].push_back(
            {&m, &profile});
      }
    }
    for (const auto& [profile, rows] : unknown) {
      refuse("collectives of " + profile,
             std::to_string(rows) + " rows cross a fabric that the profile does not name",
             "Name it when importing (--fabric, --fabric-internode)");
    }
    std::vector<FabricGroup> groups;
    for (auto& [key, rows] : sorted) {
      const auto& [level, fabric, platform, op] = key;
      groups.push_back({fabric, platform, {level, op}, std::move(rows)});
    }
    return groups;
  }

  /// The first platform that has the fabric at the level, with the profile's device if that is
  /// known.
  [[nodiscard]] std::size_t platform_for(const Profile& profile, const std::string& fabric,
                                         FabricLevel level) const {
    for (std::size_t i = 0; i < options_.platforms.size(); ++i) {
      const auto view = view_of(options_.platforms[i], profile.device_kind, 2, level);
      if (view && view->levels[static_cast<std::size_t>(level)].fabric == fabric) return i;
    }
    return options_.platforms.size();
  }

  /// What at least `devices` of a platform see, of its nodes with a device kind if one is named.
  [[nodiscard]] static std::optional<NetworkView> view_of(Platform platform,
                                                          const std::string& device, int devices,
                                                          FabricLevel level) {
    const auto has_device = [&](const NodeGroup& group) {
      const DeviceKindId id = platform.node_kinds[group.kind].device;
      return device.empty() || platform.device_kinds[id].name == device;
    };
    std::vector<NodeGroup> nodes;
    std::copy_if(platform.nodes.begin(), platform.nodes.end(), std::back_inserter(nodes),
                 has_device);
    if (nodes.empty()) return std::nullopt;
    const NodeKind& node = platform.node_kinds[nodes.front().kind];
    platform.nodes = std::move(nodes);
    const bool inside = level == FabricLevel::kIntranode;
    const auto allocated = allocate(platform, std::max(devices, inside ? 1 : 2 * node.devices));
    if (!std::holds_alternative<Allocation>(allocated)) return std::nullopt;
    NetworkView view = network_view(platform, std::get<Allocation>(allocated));
    if (static_cast<std::size_t>(level) >= view.levels.size()) return std::nullopt;
    return view;
  }

  [[nodiscard]] std::optional<NetworkView> view_for(const FabricGroup& group) const {
    if (group.platform == options_.platforms.size()) return std::nullopt;
    int devices = 2;
    for (const CollectiveRow& row : group.rows) devices = std::max(devices, row.measurement->ranks);
    return view_of(options_.platforms[group.platform], group.rows.front().profile->device_kind,
                   devices, group.key.level);
  }

  void fit_fabrics() {
    std::map<LaunchKey, Estimate> launch;
    std::map<std::pair<std::string, std::size_t>, CollectiveParameters> fitted;
    for (const FabricGroup& group : fabric_groups()) {
      const auto view = view_for(group);
      if (!view) {
        refuse(std::string(to_text(group.key.op)) + " on " + group.fabric,
               "no platform with this fabric (and device) was named, so its hardware rate is not "
               "known",
               "Name one (--platform)");
        continue;
      }
      // What a fabric's node reaches is known when several nodes are fitted.
      const std::string& inside = view->levels.front().fabric;
      CollectiveParameters parameters = documented_collective_parameters(*view);
      if (const auto known = fitted.find({inside, group.platform}); known != fitted.end()) {
        parameters.level.front() = known->second.level.front();
      }
      auto result = fit_collective(*view, group.key, group.rows, parameters);
      if (auto* refusal = std::get_if<Refusal>(&result)) {
        out_.refusals.push_back(std::move(*refusal));
        continue;
      }
      if (group.key.level == FabricLevel::kIntranode) {
        fitted.insert_or_assign(std::pair{inside, group.platform}, parameters);
      }
      auto& fit = std::get<CollectiveFit>(result);
      const auto [least, added] = launch.emplace(launch_key(fit.record), fit.record.launch);
      if (!added && fit.record.launch.value < least->second.value) {
        least->second = fit.record.launch;
      }
      out_.calibration.collectives.push_back(std::move(fit.record));
      out_.reports.push_back(std::move(fit.report));
    }
    for (CollectiveRecord& record : out_.calibration.collectives) {
      record.launch = launch.at(launch_key(record));
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
