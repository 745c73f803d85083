// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "app/commands.h"
#include "app/report.h"
#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "platforms/catalogue.h"
#include "platforms/platform_json.h"
#include "sim/export/simgrid_xml.h"

namespace towtank {
namespace {

template <class Q>
std::string or_dash(const std::optional<Q>& value) {
  return value ? to_text(*value) : "-";
}

/// Devices that the platform has; nothing if it has as many as asked.
std::optional<std::int64_t> devices_of(const Platform& platform) {
  std::int64_t devices = 0;
  for (const NodeGroup& group : platform.nodes) {
    if (!group.count) return std::nullopt;
    devices += static_cast<std::int64_t>(*group.count) * platform.node_kinds[group.kind].devices;
  }
  return devices;
}

std::optional<BytesPerSecond> outside_bandwidth(const Platform& platform, const NodeKind& node) {
  if (!platform.levels.empty() && platform.levels.front().fabric.bandwidth) {
    return platform.levels.front().fabric.bandwidth;
  }
  return node.nic_bandwidth_per_device();
}

std::string list_text(const std::vector<Platform>& platforms) {
  TextTable table({{"name", Align::kLeft, 0},
                   {"devices", Align::kRight, 1},
                   {"a node", Align::kRight, 1},
                   {"device", Align::kLeft, 2},
                   {"memory", Align::kRight, 1},
                   {"in node", Align::kRight, 2},
                   {"outside", Align::kRight, 2},
                   {"$/h", Align::kRight, 2}});
  for (const Platform& p : platforms) {
    const NodeKind& node = p.node_kinds[p.nodes.front().kind];
    const DeviceKind& device = p.device_kinds[node.device];
    const auto count = devices_of(p);
    table.add_row({p.name, count ? with_thousands(*count) : "any", std::to_string(node.devices),
                   device.name, to_text(device.memory), or_dash(node.intranode.bandwidth),
                   or_dash(outside_bandwidth(p, node)),
                   p.price ? three_digits(p.price->device_hour.value) : "-"});
  }
  return table.text() +
         "\nBandwidths: of the hardware, one device, one direction. $/h: of one device. A dash: no "
         "source\nstates it. Details and sources: towtank platforms show NAME\n";
}

std::string device_text(const DeviceKind& device) {
  std::string peaks;
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    if (!device.peak[d]) continue;
    peaks +=
        (peaks.empty() ? "" : ", ") + std::string(kDTypeNames[d]) + " " + to_text(*device.peak[d]);
  }
  std::string out = "Device    " + device.name + "\n";
  out += labelled(
      "", "memory " + to_text(device.memory) + " at " + to_text(device.memory_bandwidth), 10);
  out += labelled("", "dense peaks: " + peaks, 10);
  return out + labelled("", "source: " + device.source, 10);
}

std::string node_text(const Platform& platform, const NodeGroup& group) {
  const NodeKind& node = platform.node_kinds[group.kind];
  const std::string count = group.count ? with_thousands(*group.count) : "as many as asked";
  std::string out = "Node      " + node.name + ", " + count +
                    (group.site.empty() ? "" : " at " + group.site) + "\n";
  out += labelled("",
                  std::to_string(node.devices) + " x " + platform.device_kinds[node.device].name +
                      "; " + node.intranode.kind + " " + or_dash(node.intranode.bandwidth) +
                      " a device, hop " + to_text(node.intranode.latency),
                  10);
  if (node.nics > 0) {
    out += labelled("",
                    std::to_string(node.nics) + " ports of " + or_dash(node.nic_bandwidth) +
                        (node.nic_source.empty() ? "" : " (" + node.nic_source + ")"),
                    10);
  }
  return out + labelled("", "source: " + node.source, 10);
}

std::string level_text(const NetworkLevel& level) {
  std::string out = level.name + ": " + level.fabric.kind + " " + or_dash(level.fabric.bandwidth) +
                    " a device, hop " + to_text(level.fabric.latency) + ", joins " +
                    (level.group_nodes ? with_thousands(*level.group_nodes) + " nodes" : "all");
  if (level.oversubscription > 1) {
    out += ", oversubscribed " + three_digits(level.oversubscription) + ":1";
  }
  return labelled("Network", out, 10) + labelled("", "source: " + level.fabric.source, 10);
}

std::string show_text(const Platform& p) {
  std::string out = p.name + "\n" + wrapped(p.description, 0) + "\n\n";
  for (const DeviceKind& device : p.device_kinds) out += device_text(device);
  for (const NodeGroup& group : p.nodes) out += node_text(p, group);
  for (const NetworkLevel& level : p.levels) out += level_text(level);
  for (const WanLink& link : p.wan) {
    out += labelled("Between",
                    link.from + " and " + link.to + ": " + to_text(link.bandwidth) + ", " +
                        to_text(link.latency) + " (" + link.source + ")",
                    10);
  }
  if (p.storage_bandwidth) {
    out += labelled("Storage", to_text(*p.storage_bandwidth) + " (" + p.storage_source + ")", 10);
  }
  if (p.price) {
    out += labelled("Price",
                    to_text(p.price->device_hour) + " a device-hour (" + p.price->source + ")", 10);
  }
  return out;
}

std::string list_json(const std::vector<Platform>& platforms) {
  Json out{{"format", "towtank-platforms"}, {"version", 1}, {"platforms", Json::array()}};
  for (const Platform& p : platforms) {
    const NodeKind& node = p.node_kinds[p.nodes.front().kind];
    const DeviceKind& device = p.device_kinds[node.device];
    const auto count = devices_of(p);
    const auto outside = outside_bandwidth(p, node);
    Json item{{"name", p.name}, {"description", p.description}, {"aliases", p.aliases}};
    item["devices"] = count ? Json(*count) : Json();
    item["devices_per_node"] = node.devices;
    item["device_kind"] = device.name;
    item["memory_bytes"] = device.memory.value;
    const auto& inside = node.intranode.bandwidth;
    item["intranode_bytes_per_s"] = inside ? Json(inside->value) : Json();
    item["internode_bytes_per_s"] = outside ? Json(outside->value) : Json();
    item["device_hour_usd"] = p.price ? Json(p.price->device_hour.value) : Json();
    out["platforms"].push_back(std::move(item));
  }
  return to_text(out);
}

std::vector<Platform> catalogue() {
  std::vector<Platform> out;
  for (const std::string& name : catalogue_names()) out.push_back(load_platform(name));
  return out;
}

/// The machine as a SimGrid platform file, with --devices of its devices or all of them.
std::string xml_of(const Platform& platform, const ArgumentReader& reader) {
  constexpr int kMost = 65'536;
  const auto asked = reader.integer("--devices", 1, kMost);
  const auto all = devices_of(platform);
  if (!asked && (!all || *all > kMost)) {
    reader.faults().add({"--devices", "is needed beside --simgrid-xml",
                         printable(platform.name) + " has as many nodes as are asked for",
                         "Write --devices 64, for instance"});
  }
  reader.faults().throw_if_any();
  const int devices = asked.value_or(static_cast<int>(all.value_or(1)));
  const ModelGraph no_model;
  const Workload no_workload;
  const auto problem = make_problem(no_model, no_workload, platform, devices);
  if (const auto* few = std::get_if<TooManyDevices>(&problem)) {
    throw InputError({"--devices", std::to_string(few->asked) + " are too many",
                      printable(platform.name) + " has " + std::to_string(few->available), ""});
  }
  return simgrid_xml(std::get<PlanProblem>(problem),
                     platform.name + ", " + std::to_string(devices) + " devices; towtank " +
                         std::string(build_info().version));
}

}  // namespace

Outcome run_platforms(const Arguments& arguments, const Terminal&) {
  Outcome outcome;
  Faults faults;
  const ArgumentReader reader(arguments, faults);
  const bool json = reader.flag("--json");
  const auto xml = reader.text("--simgrid-xml");
  if (xml && arguments.positionals.empty()) {
    throw InputError({"--simgrid-xml", "needs a machine", "",
                      "Write towtank platforms show NAME --simgrid-xml FILE"});
  }
  if (arguments.positionals.empty()) {
    const std::vector<Platform> all = catalogue();
    outcome.out = json ? list_json(all) : list_text(all);
    return outcome;
  }
  if (arguments.positionals.front() != "show") {
    throw InputError({in_quotes(arguments.positionals.front()), "is not what platforms can do", "",
                      "Write towtank platforms, or towtank platforms show NAME"});
  }
  if (arguments.positionals.size() < 2) {
    throw InputError(
        {"towtank platforms show", "needs a name", "", "towtank platforms lists the machines"});
  }
  const Platform platform = load_platform(arguments.positionals[1]);
  if (xml) outcome.files.emplace_back(*xml, xml_of(platform, reader));
  outcome.out = json ? to_text(to_json(platform)) : show_text(platform);
  return outcome;
}

}  // namespace towtank
