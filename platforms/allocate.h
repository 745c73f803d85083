// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Takes devices from a platform, and answers what a process group sees of its network.
///
/// Ranks are placed node by node: rank r is device r mod n of node r / n (n devices a node).
/// A process group is described by how it spans the machine (GroupShape): that is all a
/// closed-form collective needs.
#include <variant>

#include "platforms/platform.h"

namespace towtank {

[[nodiscard]] std::variant<Allocation, TooManyDevices> allocate(const Platform&, int devices);

/// The network as closed forms see it: one homogeneous view of an allocation. Where node kinds
/// differ, the slowest figure of each stands for all, and `mixed` says so.
struct NetworkView {
  int devices = 1;           ///< N
  int devices_per_node = 1;  ///< n
  DeviceKindId device;  ///< the slowest kind of the allocation (by peak bf16/fp16, then memory)
  NodeKindId node;      ///< its node kind
  bool mixed = false;   ///< several device kinds
  IntranodeTopology topology = IntranodeTopology::kSwitch;  ///< of `node`
  int node_slots = 1;  ///< devices of a whole node of that kind: ends of a mesh's links
  struct Level {
    std::string name;    ///< "intranode", then NetworkLevel names
    std::string fabric;  ///< kind
    int group = 1;       ///< devices that one group of this level joins
    BytesPerSecond
        bandwidth;         ///< one device, one direction, oversubscription of lower levels applied
    Seconds latency;       ///< one hop at this level
    bool assumed = false;  ///< the bandwidth was not stated by a source
  };
  std::vector<Level> levels;  ///< [0] is intranode; the last joins all N devices
};

/// Pre: the allocation came from this platform.
///
/// Levels that join no more than the one below are left out; the first that joins all N devices is
/// the last. Its group is N. A bandwidth that is not stated is substituted and marked as assumed:
///   intranode    the device's PCIe rate, else 12.5 GB/s (100 Gbit/s)
///   above        the level below, else the node's NICs / its devices (stated: no assumption), else
///                the lesser of 12.5 GB/s and the PCIe rate
/// Sites are joined by one more level, "wan": the slowest link between sites of the allocation over
/// the devices of the largest site, since all of them may send at once.
/// Irregular machines are made regular downwards: node kinds of 8 and 4 devices give n = 4; sites
/// of different size give groups of their greatest common divisor (of the first, if it is the
/// larger of two).
[[nodiscard]] NetworkView network_view(const Platform&, const Allocation&);

/// How the ranks {first + i * stride : 0 <= i < size} of one process group lie on the machine, for
/// the worst of the sibling groups that tile the ranks in blocks of size * stride (as the
/// dimensions of a rank grid do).
///
///   blocks[k]     most groups of level k that one process group touches; blocks[-1] = size
///   per_level[k]  = ceil(blocks[k-1] / blocks[k])
///
/// per_level[0] is ranks of the group in one node, per_level[1] nodes under one leaf, ... One entry
/// for each level of the view. The product is size if the group lies regularly (strides and sizes
/// that divide or are multiples of the levels' groups), else size rounded up: 3 ranks on 8-device
/// nodes, where {6, 7, 8} straddles two, give {2, 2}.
struct GroupShape {
  int size = 1;                ///< ranks
  std::vector<int> per_level;  ///< each >= 1
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// Pre: size >= 1, stride >= 1, (size - 1) * stride < view.devices.
[[nodiscard]] GroupShape group_shape(const NetworkView&, int size, int stride);

}  // namespace towtank
