// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

#include "core/unit_text.h"
#include "platforms/platform_json.h"

namespace towtank {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 4> kTimes{{{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
constexpr std::array<Unit, 4> kRates{{{"B/s", 1.0}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};
constexpr std::array<Unit, 4> kWorkRates{
    {{"FLOP/s", 1.0}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
constexpr std::array<Unit, 2> kPowers{{{"W", 1.0}, {"kW", 1e3}}};
constexpr std::array<Unit, 1> kMoney{{{"USD", 1.0}}};

/// The shortest text that reads back as exactly this value; ties: the first unit.
template <class Q, class Parse>
std::string exact_text(Q quantity, std::span<const Unit> units, Parse parse) {
  std::string best;
  for (const Unit& unit : units) {
    const double number = quantity.value / unit.factor;
    std::array<char, 400> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                   std::chars_format::fixed);
    std::string text(digits.data(), end.ptr);
    text += ' ';
    text += unit.name;
    const Parsed<Q> back = parse(text);
    const Q* same = std::get_if<Q>(&back);
    if (same == nullptr || *same != quantity) continue;
    if (best.empty() || text.size() < best.size()) best = std::move(text);
  }
  return best;
}

std::string exact(Seconds q) { return exact_text(q, kTimes, parse_seconds); }
std::string exact(BytesPerSecond q) { return exact_text(q, kRates, parse_bytes_per_second); }
std::string exact(FlopPerSecond q) { return exact_text(q, kWorkRates, parse_flop_per_second); }
std::string exact(Watts q) { return exact_text(q, kPowers, parse_watts); }
std::string exact(Usd q) { return exact_text(q, kMoney, parse_usd); }

std::string exact(Bytes q) {
  constexpr std::int64_t kKi = 1024;
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::int64_t number = q.value;
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && number != 0 && number % kKi == 0) {
    number /= kKi;
    ++unit;
  }
  return std::to_string(number) + ' ' + std::string(kUnits[unit]);
}

template <class Q>
Json exact_or_null(const std::optional<Q>& quantity) {
  return quantity ? Json(exact(*quantity)) : Json(nullptr);
}

template <class T>
void put_if(Json& object, const char* key, const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, int>) {
    if (value) object[key] = *value;
  } else {
    if (value) object[key] = exact(*value);
  }
}

std::string_view to_text(IntranodeTopology topology) {
  switch (topology) {
    case IntranodeTopology::kSwitch:
      return "switch";
    case IntranodeTopology::kMesh:
      return "mesh";
    case IntranodeTopology::kPcie:
      return "pcie";
  }
  return "";  // not reached: the switch is exhaustive
}

Json device_json(const DeviceKind& device) {
  Json peak = Json::object();
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (device.peak[i]) peak[std::string(kDTypeNames[i])] = exact(*device.peak[i]);
  }
  Json out;
  out["generation"] = device.generation;
  out["peak"] = peak;
  out["vector_peak"] = exact(device.vector_peak);
  out["memory"] = exact(device.memory);
  out["memory_bandwidth"] = exact(device.memory_bandwidth);
  put_if(out, "multiprocessors", device.multiprocessors);
  put_if(out, "power", device.power);
  out["source"] = device.source;
  return out;
}

void put_fabric(Json& object, const Fabric& fabric) {
  object["fabric"] = fabric.kind;
  object["bandwidth"] = exact_or_null(fabric.bandwidth);
  object["latency"] = exact(fabric.latency);
  object["source"] = fabric.source;
}

Json node_json(const Platform& platform, const NodeKind& node) {
  Json out;
  out["device"] = platform.device_kinds[node.device].name;
  out["devices"] = node.devices;
  if (!node.intranode.kind.empty()) {
    out["topology"] = to_text(node.topology);
    put_fabric(out["intranode"], node.intranode);
  }
  if (!node.nic_source.empty()) {
    out["nics"] = {{"count", node.nics},
                   {"bandwidth", exact_or_null(node.nic_bandwidth)},
                   {"source", node.nic_source}};
  }
  put_if(out, "pcie", node.pcie_bandwidth);
  put_if(out, "host_memory", node.host_memory);
  put_if(out, "host_memory_bandwidth", node.host_memory_bandwidth);
  put_if(out, "cores", node.cores);
  put_if(out, "power", node.power);
  out["source"] = node.source;
  return out;
}

Json level_json(const NetworkLevel& level) {
  Json out;
  out["name"] = level.name;
  put_fabric(out, level.fabric);
  out["group_nodes"] = level.group_nodes ? Json(*level.group_nodes) : Json(nullptr);
  out["oversubscription"] = level.oversubscription;
  return out;
}

Json nodes_json(const Platform& platform, const NodeGroup& group) {
  Json out;
  out["kind"] = platform.node_kinds[group.kind].name;
  out["count"] = group.count ? Json(*group.count) : Json(nullptr);
  if (!group.site.empty()) out["site"] = group.site;
  if (!group.source.empty()) out["source"] = group.source;
  return out;
}

Json link_json(const WanLink& link) {
  return {{"from", link.from},
          {"to", link.to},
          {"bandwidth", exact(link.bandwidth)},
          {"latency", exact(link.latency)},
          {"source", link.source}};
}

}  // namespace

Json to_json(const Platform& platform) {
  Json out;
  out["format"] = "towtank-platform";
  out["version"] = 1;
  out["name"] = platform.name;
  out["description"] = platform.description;
  if (!platform.aliases.empty()) out["aliases"] = platform.aliases;
  Json& devices = out["device_kinds"] = Json::object();
  for (const DeviceKind& device : platform.device_kinds) devices[device.name] = device_json(device);
  Json& nodes = out["node_kinds"] = Json::object();
  for (const NodeKind& node : platform.node_kinds) nodes[node.name] = node_json(platform, node);
  Json& levels = out["levels"] = Json::array();
  for (const NetworkLevel& level : platform.levels) levels.push_back(level_json(level));
  Json& groups = out["nodes"] = Json::array();
  for (const NodeGroup& group : platform.nodes) groups.push_back(nodes_json(platform, group));
  if (!platform.wan.empty()) {
    Json& wan = out["links"]["wan"] = Json::array();
    for (const WanLink& link : platform.wan) wan.push_back(link_json(link));
  }
  if (!platform.storage_source.empty()) {
    out["storage"] = {{"bandwidth", exact_or_null(platform.storage_bandwidth)},
                      {"source", platform.storage_source}};
  }
  if (platform.price) {
    out["price"] = {{"device_hour", exact(platform.price->device_hour)},
                    {"source", platform.price->source}};
  }
  out["calibrations"] = platform.calibrations;
  return out;
}

}  // namespace towtank
