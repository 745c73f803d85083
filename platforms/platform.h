// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the machine is: device kinds, node kinds, and the levels of its network.
///
/// A Platform is a template: it says of what kind the nodes are and how they are joined, and
/// `allocate` takes a number of devices from it. All bandwidths are hardware rates in one direction
/// (what a link or port can carry), never what a benchmark reached: that is a calibration's job.
/// A fact that no source gives is nullopt, and whoever uses a substitute says so.
///
///   level        group it joins                          bandwidth
///   intranode    the devices of one node (or island)     one device into the node's fabric
///   leaf         nodes under one leaf switch             a node's NICs / its devices
///   spine        leaves                                  the same; oversubscription says what is
///   left wan          sites                                   of the link between two sites
///
/// Not modelled here: what a collective reaches (model/cost), contention (sim/).
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/units.h"
#include "platforms/dtype.h"

namespace towtank {

using DeviceKindId = Id<struct DeviceKindTag>;
using NodeKindId = Id<struct NodeKindTag>;

/// One kind of accelerator. Calibrations are *for* a device kind's name.
struct DeviceKind {
  std::string name;        ///< "h100-sxm-80g"
  std::string generation;  ///< "hopper": calibrations transfer within one generation
  std::array<std::optional<FlopPerSecond>, kDTypeCount> peak;  ///< dense matrix peak by DType
  FlopPerSecond vector_peak;           ///< fp32 outside the matrix units; > 0
  Bytes memory;                        ///< as the driver reports it
  BytesPerSecond memory_bandwidth;     ///< > 0
  std::optional<int> multiprocessors;  ///< SMs or CUs: the width of a wave of tiles
  std::optional<Watts> power;          ///< board power limit
  std::string source;

  /// Dense peak of a dtype; nullopt if the device has no such units.
  [[nodiscard]] std::optional<FlopPerSecond> peak_of(DType d) const {
    return peak[static_cast<std::size_t>(d)];
  }
  friend bool operator==(const DeviceKind&, const DeviceKind&) = default;
};

/// How the devices of one node reach each other.
enum class IntranodeTopology {
  kSwitch,  ///< every device has its full bandwidth to the switch (NVSwitch)
  kMesh,    ///< point-to-point links; bandwidth is a device's sum over its links
  kPcie,    ///< through PCIe switches and the host's root complex
};

/// A kind of port or link, named so that calibrations can be for it: "nvlink4", "ib-ndr400".
struct Fabric {
  std::string kind;
  std::optional<BytesPerSecond> bandwidth;  ///< see the field that holds the Fabric
  Seconds latency;                          ///< one hop, zero bytes
  std::string source;
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

struct NodeKind {
  std::string name;
  DeviceKindId device;
  int devices = 1;  ///< slots; >= 1
  IntranodeTopology topology = IntranodeTopology::kSwitch;
  Fabric intranode;                              ///< bandwidth: one device, one direction
  int nics = 0;                                  ///< network ports (rails) that serve the devices
  std::optional<BytesPerSecond> nic_bandwidth;   ///< one port, one direction
  std::string nic_source;                        ///< empty if nics is 0
  std::optional<BytesPerSecond> pcie_bandwidth;  ///< one device to its host, one direction
  std::optional<Bytes> host_memory;
  std::optional<BytesPerSecond> host_memory_bandwidth;
  std::optional<int> cores;
  std::optional<Watts> power;  ///< of the whole node under load
  std::string source;

  /// What one device can send out of the node when all do: nics x nic_bandwidth / devices.
  [[nodiscard]] std::optional<BytesPerSecond> nic_bandwidth_per_device() const;
  friend bool operator==(const NodeKind&, const NodeKind&) = default;
};

/// One level of the network above the node.
struct NetworkLevel {
  std::string name;                ///< "leaf", "spine", "site"
  Fabric fabric;                   ///< bandwidth: one device, one direction, when all devices send
  std::optional<int> group_nodes;  ///< nodes that one group of this level joins; nullopt = all
  double oversubscription = 1.0;  ///< >= 1: downlink over uplink capacity of this level's group, so
                                  ///< that the levels above carry only bandwidth / oversubscription
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

struct NodeGroup {
  NodeKindId kind;
  std::optional<int> count;  ///< nullopt: as many as asked
  std::string site;          ///< empty: the only site
  std::string source;        ///< of the count; empty if that is nullopt
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct WanLink {
  std::string from, to;      ///< sites
  BytesPerSecond bandwidth;  ///< shared by all that cross, one direction; the link is two-way
  Seconds latency;
  std::string source;
  friend bool operator==(const WanLink&, const WanLink&) = default;
};

struct Price {
  Usd device_hour;
  std::string source;  ///< with its date
  friend bool operator==(const Price&, const Price&) = default;
};

struct Platform {
  std::string name;
  std::string description;
  IdVector<DeviceKindId, DeviceKind> device_kinds;
  IdVector<NodeKindId, NodeKind> node_kinds;
  std::vector<NetworkLevel> levels;  ///< from the leaf outwards; may be empty (one node)
  std::vector<NodeGroup> nodes;      ///< in file order, at least one
  std::vector<WanLink> wan;
  std::optional<BytesPerSecond> storage_bandwidth;  ///< whole file system, one direction
  std::string storage_source;                       ///< empty if storage is not described
  std::optional<Price> price;
  std::vector<std::string> calibrations;  ///< files that the platform names; may be empty
  std::vector<std::string> aliases;       ///< other names that find it in the catalogue
  std::string hash;  ///< content_hash of what it says (to_json), whatever its layout and defaults
};

/// N devices of a platform, taken node by node in file order.
struct Allocation {
  struct Part {
    NodeKindId kind;
    int nodes = 0;
    int devices = 0;  ///< in these nodes; the last node may be part full
    std::string site;
  };
  std::vector<Part> parts;
  int devices = 0;
  int nodes = 0;
};

/// Why N devices cannot be had: how many there are.
struct TooManyDevices {
  int asked = 0;
  int available = 0;
};

}  // namespace towtank
