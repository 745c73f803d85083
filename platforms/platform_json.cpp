// SPDX-License-Identifier: Apache-2.0
#include "platforms/platform_json.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "core/unit_text.h"
#include "platforms/platform_check.h"
#include "platforms/shared_kinds.h"

namespace towtank {
namespace {

constexpr int kVersion = 1;
constexpr std::array<std::string_view, 3> kTopologies{"switch", "mesh", "pcie"};
constexpr JsonRange kMostDevices{1, 1024};  // of one node
constexpr JsonRange kMostNodes{1, 1e6};
constexpr JsonRange kMostUnits{1, 1e6};  // multiprocessors, cores

bool has_key(const JsonReader& object, std::string_view key) {
  return object.is_object() && object.raw().contains(std::string(key));
}

/// False, with a fault, if the value is not an object: nothing else is to be said about it then.
bool is_object(const JsonReader& reader) {
  static_cast<void>(reader.has(""));  // adds the fault
  return reader.is_object();
}

std::string read_source(const JsonReader& object) {
  constexpr std::string_view kWhy = "each number of a platform says where it comes from";
  const auto found = object.find("source");
  if (!found) {
    object.fault("has no \"source\"", std::string(kWhy),
                 R"(Add "source": "<data sheet, page or measurement>".)");
    return "";
  }
  std::string source = found->as_string();
  if (source.empty() && found->is_string()) found->fault("is empty", std::string(kWhy));
  return source;
}

/// A name, for people and for finding it.
std::string read_name(const JsonReader& object, std::string_view key) {
  std::string name = object.string(key);
  if (name.empty() && object.has(key) && object.at(key).is_string()) {
    object.at(key).fault("is empty", "must name something");
  }
  return name;
}

/// An object of the file, laid over the shared kind that its "use" names: a key that the file
/// gives, even as null, hides the shared one.
class Layers {
 public:
  Layers(JsonReader own, std::optional<JsonReader> base)
      : own_(std::move(own)), base_(std::move(base)) {}

  [[nodiscard]] const JsonReader& own() const { return own_; }
  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const {
    return holder(key).find(key);
  }
  [[nodiscard]] JsonReader at(std::string_view key) const { return holder(key).at(key); }
  /// The object that has the key, else the file's own.
  [[nodiscard]] const JsonReader& holder(std::string_view key) const {
    return base_ && !has_key(own_, key) && has_key(*base_, key) ? *base_ : own_;
  }
  [[nodiscard]] std::string source() const {
    if (!base_) return read_source(own_);
    std::string shared = read_source(*base_);
    const std::vector<std::string> keys = own_.keys();
    const bool overrides = std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
      return key != "use" && key != "source";
    });
    if (!overrides && !own_.has("source")) return shared;
    return read_source(own_) + "; the rest: " + shared;
  }

 private:
  JsonReader own_;
  std::optional<JsonReader> base_;
};

std::optional<int> optional_count(const Layers& object, std::string_view key, JsonRange range) {
  const auto found = object.find(key);
  if (!found) return std::nullopt;
  return static_cast<int>(found->as_integer(range));
}

std::optional<BytesPerSecond> optional_rate(const Layers& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found) return std::nullopt;
  return found->as_bytes_per_second();
}

std::optional<Watts> optional_power(const Layers& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found) return std::nullopt;
  return found->as_watts();
}

Bytes positive_bytes(const JsonReader& value) {
  const Bytes bytes = value.as_bytes();
  if (bytes.value == 0 && value.is_string() &&
      std::holds_alternative<Bytes>(parse_bytes(value.as_string()))) {
    value.fault(in_quotes(value.as_string()) + " is zero", "must be > 0");
  }
  return bytes;
}

/// The key must be there; null says that no source gives it.
std::optional<BytesPerSecond> stated_bandwidth(const JsonReader& object) {
  if (!has_key(object, "bandwidth")) {
    object.fault("has no \"bandwidth\"", "null where no source gives it",
                 R"(Write a rate, for example "50 GB/s", or null.)");
    return std::nullopt;
  }
  const auto found = object.find("bandwidth");
  if (!found) return std::nullopt;
  return found->as_bytes_per_second();
}

Fabric read_fabric(const JsonReader& object) {
  return {.kind = read_name(object, "fabric"),
          .bandwidth = stated_bandwidth(object),
          .latency = object.at("latency").as_seconds(),
          .source = read_source(object)};
}

class PlatformReader {
 public:
  explicit PlatformReader(JsonReader root) : root_(std::move(root)) {}

  Platform read() {
    if (!is_object(root_)) return {};
    root_.expect_format("towtank-platform", kVersion);
    out_.name = read_name(root_, "name");
    out_.description = root_.string("description");
    out_.aliases = strings("aliases");
    read_device_kinds();
    read_node_kinds();
    read_levels();
    read_nodes();
    read_links();
    read_storage_and_price();
    out_.calibrations = strings("calibrations");
    root_.no_other_keys();
    shared_.finish();
    return std::move(out_);
  }

 private:
  std::vector<std::string> strings(std::string_view key) {
    std::vector<std::string> out;
    if (!root_.find(key)) return out;
    for (const JsonReader& item : root_.array(key)) out.push_back(item.as_string());
    return out;
  }

  // --- device kinds ---

  void read_device_kinds() {
    const auto kinds = root_.find("device_kinds");
    if (!kinds || !is_object(*kinds)) return;
    for (const std::string& name : kinds->keys()) {
      const JsonReader own = kinds->at(name);
      if (!is_object(own)) continue;
      std::optional<JsonReader> base;
      if (const auto use = own.find("use")) {
        base = shared_.device(use->as_string());
        if (!base) {
          unknown(*use, "a shared device kind", shared_.device_names());
          DeviceKind known;  // so that what refers to it is not wrong too
          known.name = name;
          out_.device_kinds.push_back(std::move(known));
          continue;
        }
      }
      out_.device_kinds.push_back(read_device(name, {own, base}));
      own.no_other_keys(kDeviceKeys);
    }
  }

  static constexpr std::array<std::string_view, 9> kDeviceKeys{"use",
                                                               "generation",
                                                               "peak",
                                                               "vector_peak",
                                                               "memory",
                                                               "source",
                                                               "memory_bandwidth",
                                                               "multiprocessors",
                                                               "power"};

  static DeviceKind read_device(const std::string& name, const Layers& from) {
    DeviceKind device;
    device.name = name;
    device.generation = read_name(from.holder("generation"), "generation");
    const JsonReader peak = from.at("peak");
    if (is_object(peak)) {
      for (std::size_t i = 0; i < kDTypeCount; ++i) {
        if (const auto rate = peak.find(kDTypeNames[i])) {
          device.peak[i] = rate->as_flop_per_second();
        }
      }
      peak.no_other_keys(kDTypeNames);
    }
    device.vector_peak = from.at("vector_peak").as_flop_per_second();
    device.memory = positive_bytes(from.at("memory"));
    device.memory_bandwidth = from.at("memory_bandwidth").as_bytes_per_second();
    device.multiprocessors = optional_count(from, "multiprocessors", kMostUnits);
    device.power = optional_power(from, "power");
    device.source = from.source();
    return device;
  }

  /// The file's own kind, else the shared one, which becomes the platform's.
  std::optional<DeviceKindId> device_kind(const std::string& name) {
    for (std::size_t i = 0; i < out_.device_kinds.size(); ++i) {
      const DeviceKindId id{static_cast<std::int32_t>(i)};
      if (out_.device_kinds[id].name == name) return id;
    }
    const auto shared = shared_.device(name);
    if (!shared) return std::nullopt;
    return out_.device_kinds.push_back(read_device(name, {*shared, std::nullopt}));
  }

  // --- node kinds ---

  static constexpr std::array<std::string_view, 12> kNodeKeys{
      "use",      "device",      "devices",
      "topology", "intranode",   "nics",
      "pcie",     "host_memory", "host_memory_bandwidth",
      "cores",    "power",       "source"};

  void read_node_kinds() {
    const auto kinds = root_.find("node_kinds");
    if (!kinds || !is_object(*kinds)) return;
    for (const std::string& name : kinds->keys()) {
      const JsonReader own = kinds->at(name);
      if (!is_object(own)) continue;
      std::optional<JsonReader> base;
      if (const auto use = own.find("use")) {
        base = shared_.node(use->as_string());
        if (!base) {
          unknown(*use, "a shared node kind", shared_.node_names());
          NodeKind known;
          known.name = name;
          out_.node_kinds.push_back(std::move(known));
          continue;
        }
      }
      out_.node_kinds.push_back(read_node(name, {own, base}));
      own.no_other_keys(kNodeKeys);
    }
  }

  NodeKind read_node(const std::string& name, const Layers& from) {
    NodeKind node;
    node.name = name;
    read_devices_of(from, node);
    read_intranode(from, node);
    if (const auto nics = from.find("nics"); nics && is_object(*nics)) {
      node.nics = static_cast<int>(nics->integer("count", {0, 1024}));
      node.nic_bandwidth = stated_bandwidth(*nics);
      node.nic_source = read_source(*nics);
      nics->no_other_keys();
    }
    node.pcie_bandwidth = optional_rate(from, "pcie");
    if (const auto memory = from.find("host_memory")) node.host_memory = positive_bytes(*memory);
    node.host_memory_bandwidth = optional_rate(from, "host_memory_bandwidth");
    node.cores = optional_count(from, "cores", kMostUnits);
    node.power = optional_power(from, "power");
    node.source = from.source();
    return node;
  }

  void read_devices_of(const Layers& from, NodeKind& node) {
    node.devices = static_cast<int>(from.holder("devices").integer("devices", kMostDevices));
    const JsonReader device = from.at("device");
    const std::string name = device.as_string();
    if (!device.is_string()) return;
    if (const auto id = device_kind(name)) {
      node.device = *id;
      return;
    }
    std::vector<std::string> known = shared_.device_names();
    for (const DeviceKind& kind : out_.device_kinds) known.push_back(kind.name);
    unknown(device, "a device kind of this file or a shared one", known);
  }

  static void read_intranode(const Layers& from, NodeKind& node) {
    const auto intranode = from.find("intranode");
    if (!intranode && node.devices == 1) return;  // nothing to join
    node.topology =
        static_cast<IntranodeTopology>(from.holder("topology").one_of("topology", kTopologies));
    const JsonReader fabric = from.at("intranode");
    if (!is_object(fabric)) return;
    node.intranode = read_fabric(fabric);
    fabric.no_other_keys();
  }

  std::optional<NodeKindId> node_kind(const std::string& name) {
    for (std::size_t i = 0; i < out_.node_kinds.size(); ++i) {
      const NodeKindId id{static_cast<std::int32_t>(i)};
      if (out_.node_kinds[id].name == name) return id;
    }
    const auto shared = shared_.node(name);
    if (!shared) return std::nullopt;
    return out_.node_kinds.push_back(read_node(name, {*shared, std::nullopt}));
  }

  // --- the rest ---

  void read_levels() {
    if (!root_.find("levels")) return;
    for (const JsonReader& item : root_.array("levels")) {
      if (!is_object(item)) continue;
      NetworkLevel level;
      level.name = read_name(item, "name");
      level.fabric = read_fabric(item);
      level.group_nodes = optional_count({item, std::nullopt}, "group_nodes", {2, 1e6});
      level.oversubscription = item.number_or("oversubscription", 1.0, {1.0, 1000.0});
      item.no_other_keys();
      out_.levels.push_back(std::move(level));
    }
  }

  void read_nodes() {
    for (const JsonReader& item : root_.array("nodes")) {
      if (!is_object(item)) continue;
      NodeGroup group;
      const JsonReader kind = item.at("kind");
      const std::string name = kind.as_string();
      const auto id = kind.is_string() ? node_kind(name) : std::nullopt;
      if (kind.is_string() && !id) {
        std::vector<std::string> known = shared_.node_names();
        for (const NodeKind& node : out_.node_kinds) known.push_back(node.name);
        unknown(kind, "a node kind of this file or a shared one", known);
      }
      group.count = optional_count({item, std::nullopt}, "count", kMostNodes);
      if (group.count) {
        group.source = read_source(item);
      } else {
        group.source = item.string_or("source", "");
      }
      group.site = item.string_or("site", "");
      item.no_other_keys();
      if (id) {
        group.kind = *id;
        out_.nodes.push_back(std::move(group));
      }
    }
  }

  void read_links() {
    const auto links = root_.find("links");
    if (!links || !is_object(*links)) return;
    if (links->find("wan")) {
      for (const JsonReader& item : links->array("wan")) {
        if (!is_object(item)) continue;
        out_.wan.push_back({.from = read_name(item, "from"),
                            .to = read_name(item, "to"),
                            .bandwidth = item.at("bandwidth").as_bytes_per_second(),
                            .latency = item.at("latency").as_seconds(),
                            .source = read_source(item)});
        item.no_other_keys();
      }
    }
    links->no_other_keys();
  }

  void read_storage_and_price() {
    if (const auto storage = root_.find("storage"); storage && is_object(*storage)) {
      out_.storage_bandwidth = stated_bandwidth(*storage);
      out_.storage_source = read_source(*storage);
      storage->no_other_keys();
    }
    if (const auto price = root_.find("price"); price && is_object(*price)) {
      out_.price =
          Price{.device_hour = price->at("device_hour").as_usd(), .source = read_source(*price)};
      price->no_other_keys();
    }
  }

  static void unknown(const JsonReader& value, const std::string& what,
                      const std::vector<std::string>& known) {
    const std::string name = value.as_string();
    const auto near = nearest(name, known);
    value.fault(in_quotes(name) + " is not " + what, "",
                near ? "Did you mean \"" + *near + "\"?" : "Known: " + join(known, ", ") + ".");
  }

  JsonReader root_;
  SharedKinds shared_;
  Platform out_;
};

}  // namespace

Platform parse_platform(const JsonFile& file, const JsonReader& reader) {
  const std::size_t faults_before = file.faults().size();
  Platform platform = PlatformReader(reader).read();
  if (file.faults().size() > faults_before) return platform;
  check_platform(platform, reader);
  platform.hash = content_hash(to_json(platform).dump());
  return platform;
}

Platform parse_platform(const JsonFile& file) {
  Platform platform = parse_platform(file, file.root());
  file.finish();
  return platform;
}

}  // namespace towtank
