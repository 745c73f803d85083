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

/// Rows of one collective on fabrics of one kind that are built alike.
struct FabricGroup {
  FabricLevel level = FabricLevel::kIntranode;
  std::string fabric;
  IntranodeTopology topology = IntranodeTopology::kSwitch;  ///< in the node
  int node_devices = 0;                                     ///< in a mesh
  Collective op = Collective::kAllReduce;
  [[nodiscard]] auto order() const { return std::tie(level, fabric, topology, node_devices, op); }
  friend bool operator<(const FabricGroup& a, const FabricGroup& b) {
    return a.order() < b.order();
  }
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

  using FabricRows = std::map<FabricGroup, std::vector<CollectiveRow>>;

  [[nodiscard]] FabricRows fabric_rows() {
    FabricRows groups;
    std::map<std::string, int> unnamed;
    std::set<std::string> unknown;
    for (const Profile& profile : profiles_) {
      for (const CollectiveMeasurement& m : profile.collectives) {
        if (left_out(profile, std::string(kCollectiveNames[static_cast<std::size_t>(m.op)])))
          continue;
        const bool inside = m.ranks == m.ranks_per_node;
        const std::string& fabric = inside ? profile.fabric_intranode : profile.fabric_internode;
        if (fabric.empty() || m.ranks % m.ranks_per_node != 0) {
          ++unnamed[profile.name];
          continue;
        }
        const FabricLevel level = inside ? FabricLevel::kIntranode : FabricLevel::kInternode;
        const NetworkView* view = view_for(profile, fabric, level);
        if (view == nullptr) {
          unknown.insert(fabric + ", " +
                         std::string(kFabricLevelNames[static_cast<std::size_t>(level)]));
          continue;
        }
        groups[group_of(*view, level, m.op)].push_back({&m, &profile, view});
      }
    }
    for (const auto& [profile, rows] : unnamed) {
      refuse("collectives of " + profile,
             std::to_string(rows) + " rows cross a fabric that the profile does not name",
             "Name it when importing (--fabric, --fabric-internode)");
    }
    for (const std::string& fabric : unknown) {
      refuse("collectives on " + fabric,
             "no machine with it was named, so its hardware rate is not known",
             "Name one (--platform)");
    }
    return groups;
  }

  [[nodiscard]] static FabricGroup group_of(const NetworkView& view, FabricLevel level,
                                            Collective op) {
    FabricGroup group;
    group.level = level;
    group.fabric = view.levels[static_cast<std::size_t>(level)].fabric;
    group.op = op;
    if (level == FabricLevel::kIntranode) group.topology = view.topology;
    if (group.topology == IntranodeTopology::kMesh) group.node_devices = view.node_slots;
    return group;
  }

  /// What a profile's machine sees: that of the first platform with the fabric at the level, nodes
  /// that are large enough, and the profile's device if that is known. nullptr: there is none.
  [[nodiscard]] const NetworkView* view_for(const Profile& profile, const std::string& fabric,
                                            FabricLevel level) {
    const auto key = std::tuple{profile.name, fabric, level};
    if (const auto known = views_.find(key); known != views_.end()) return &known->second;
    int devices = 2;
    int in_node = 1;
    for (const CollectiveMeasurement& m : profile.collectives) {
      devices = std::max(devices, m.ranks);
      in_node = std::max(in_node, m.ranks_per_node);
    }
    for (const Platform& platform : options_.platforms) {
      auto view = view_of(platform, profile.device_kind, devices, level);
      const auto l = static_cast<std::size_t>(level);
      if (view && view->levels[l].fabric == fabric && view->node_slots >= in_node) {
        return &views_.emplace(key, *std::move(view)).first->second;
      }
    }
    return nullptr;
  }

  /// What at least `devices` of a platform see, of its nodes with a device kind if one is named.
  [[nodiscard]] static std::optional<NetworkView> view_of(Platform platform,
                                                          const std::string& device, int devices,
                                                          FabricLevel level) {
    const auto has_device = [&](const NodeGroup& group) {
      const DeviceKindId id = platform.node_kinds[group.kind].device;
      return device.empty() || platform.device_kinds[id].name == device;
    };
    std::erase_if(platform.nodes, [&](const NodeGroup& group) { return !has_device(group); });
    if (platform.nodes.empty()) return std::nullopt;
    const int node = platform.node_kinds[platform.nodes.front().kind].devices;
    const bool inside = level == FabricLevel::kIntranode;
    const auto allocated = allocate(platform, inside ? node : std::max(devices, 2 * node));
    if (!std::holds_alternative<Allocation>(allocated)) return std::nullopt;
    NetworkView view = network_view(platform, std::get<Allocation>(allocated));
    if (static_cast<std::size_t>(level) >= view.levels.size()) return std::nullopt;
    return view;
  }

  void fit_fabrics() {
    std::map<LaunchKey, Estimate> launch;
    // What a fabric's node reaches is known when several nodes are fitted.
    std::map<std::string, CollectiveParameters::ByCollective> inside;
    for (const auto& [group, rows] : fabric_rows()) {
      const NetworkView& view = *rows.front().view;
      CollectiveParameters parameters = documented_collective_parameters(view);
      const auto known = inside.find(view.levels.front().fabric);
      if (known != inside.end()) parameters.level.front() = known->second;
      auto result = fit_collective({group.level, group.op}, rows, parameters);
      if (auto* refusal = std::get_if<Refusal>(&result)) {
        out_.refusals.push_back(std::move(*refusal));
        continue;
      }
      if (group.level == FabricLevel::kIntranode) {
        inside.insert_or_assign(group.fabric, parameters.level.front());
      }
      auto& fit = std::get<CollectiveFit>(result);
      const Estimate& found = fit.record.launch;
      const auto [least, added] = launch.emplace(launch_key(fit.record), found);
      const bool better =
          found.fitted == least->second.fitted ? found.value < least->second.value : found.fitted;
      if (!added && better) least->second = found;
      out_.calibration.collectives.push_back(std::move(fit.record));
      out_.reports.push_back(std::move(fit.report));
    }
    for (CollectiveRecord& record : out_.calibration.collectives) {
      record.launch = launch.at(launch_key(record));
    }
  }

  std::map<std::tuple<std::string, std::string, FabricLevel>, NetworkView> views_;
  std::span<const Profile> profiles_;
  const CalibrateOptions& options_;
  CalibrationResult out_;
};

}  // namespace

CalibrationResult calibrate(std::span<const Profile> profiles, const CalibrateOptions& options) {
  return Calibrator(profiles, options).run();
}

}  // namespace towtank
