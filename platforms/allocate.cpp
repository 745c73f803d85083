// SPDX-License-Identifier: Apache-2.0
#include "platforms/allocate.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr BytesPerSecond kAssumedBandwidth{12.5e9};  // 100 Gbit/s

struct SiteDevices {
  std::string site;
  int devices = 0;
};

std::vector<SiteDevices> devices_by_site(const Allocation& allocation) {
  std::vector<SiteDevices> sites;
  for (const Allocation::Part& part : allocation.parts) {
    const auto known = std::find_if(sites.begin(), sites.end(),
                                    [&](const SiteDevices& s) { return s.site == part.site; });
    if (known == sites.end()) {
      sites.push_back({part.site, part.devices});
    } else {
      known->devices += part.devices;
    }
  }
  return sites;
}

/// Consecutive devices that are sure to lie in one site, whatever multiple of it they start at.
int regular_site_group(const std::vector<SiteDevices>& sites) {
  if (sites.size() == 2 && sites[0].devices >= sites[1].devices) return sites[0].devices;
  int group = 0;
  for (const SiteDevices& s : sites) group = std::gcd(group, s.devices);
  return group;
}

double training_peak(const DeviceKind& device) {
  double peak = 0.0;
  for (const DType d : {DType::kBf16, DType::kFp16}) {
    if (const auto rate = device.peak_of(d)) peak = std::max(peak, rate->value);
  }
  return peak > 0.0 ? peak : device.vector_peak.value;
}

bool slower(const DeviceKind& a, const DeviceKind& b) {
  const double peak_a = training_peak(a);
  const double peak_b = training_peak(b);
  return peak_a != peak_b ? peak_a < peak_b : a.memory < b.memory;
}

/// Devices of a node, and the slowest device kind and its node kind.
void describe_nodes(const Platform& platform, const Allocation& allocation, NetworkView& view) {
  int per_node = 0;
  view.node = allocation.parts.front().kind;
  view.device = platform.node_kinds[view.node].device;
  for (const Allocation::Part& part : allocation.parts) {
    const NodeKind& node = platform.node_kinds[part.kind];
    per_node = std::gcd(per_node, node.devices);
    view.mixed = view.mixed || node.device != platform.node_kinds[allocation.parts[0].kind].device;
    if (slower(platform.device_kinds[node.device], platform.device_kinds[view.device])) {
      view.node = part.kind;
      view.device = node.device;
    }
  }
  view.topology = platform.node_kinds[view.node].topology;
  view.node_slots = platform.node_kinds[view.node].devices;
  view.devices_per_node = std::min(per_node, allocation.devices);
}

NetworkView::Level intranode_of(const NodeKind& node) {
  const auto stated = node.intranode.bandwidth;
  return {.name = "intranode",
          .fabric = node.intranode.kind,
          .group = 1,
          .bandwidth = stated.value_or(node.pcie_bandwidth.value_or(kAssumedBandwidth)),
          .latency = node.intranode.latency,
          .assumed = !stated.has_value()};
}

NetworkView::Level intranode_level(const Platform& platform, const Allocation& allocation,
                                   const NetworkView& view) {
  NetworkView::Level level = intranode_of(platform.node_kinds[allocation.parts[0].kind]);
  for (const Allocation::Part& part : allocation.parts) {
    const NetworkView::Level other = intranode_of(platform.node_kinds[part.kind]);
    if (other.bandwidth < level.bandwidth) {
      level.fabric = other.fabric;
      level.bandwidth = other.bandwidth;
    }
    level.latency = std::max(level.latency, other.latency);
    level.assumed = level.assumed || other.assumed;
  }
  level.group = view.devices_per_node;
  if (level.group == 1) level.assumed = false;  // nothing crosses it
  return level;
}

/// The least share of its node's NICs that a device of the allocation has, if every kind states it.
std::optional<BytesPerSecond> least_nic_share(const Platform& platform,
                                              const Allocation& allocation) {
  std::optional<BytesPerSecond> least;
  for (const Allocation::Part& part : allocation.parts) {
    const auto share = platform.node_kinds[part.kind].nic_bandwidth_per_device();
    if (!share) return std::nullopt;
    if (!least || *share < *least) least = share;
  }
  return least;
}

BytesPerSecond assumed_network(const Platform& platform, const Allocation& allocation) {
  BytesPerSecond rate = kAssumedBandwidth;
  for (const Allocation::Part& part : allocation.parts) {
    const auto pcie = platform.node_kinds[part.kind].pcie_bandwidth;
    if (pcie) rate = std::min(rate, *pcie);
  }
  return rate;
}

/// Appends the levels above the node up to the one that joins `reach` devices.
void add_network_levels(const Platform& platform, const Allocation& allocation, int reach,
                        NetworkView& view) {
  const auto nic_share = least_nic_share(platform, allocation);
  std::optional<BytesPerSecond> below;  // of the last level, before oversubscription
  double oversubscription = 1.0;
  for (const NetworkLevel& level : platform.levels) {
    if (view.levels.back().group >= reach) return;
    const auto stated = level.fabric.bandwidth;
    const bool assumed = !stated && (below || !nic_share);
    BytesPerSecond rate = stated      ? *stated
                          : below     ? *below
                          : nic_share ? *nic_share
                                      : assumed_network(platform, allocation);
    if (nic_share) rate = std::min(rate, *nic_share);
    const std::int64_t group = level.group_nodes
                                   ? std::int64_t{*level.group_nodes} * view.devices_per_node
                                   : std::int64_t{reach};
    const int joined = static_cast<int>(std::min<std::int64_t>(group, reach));
    if (joined > view.levels.back().group) {
      view.levels.push_back({.name = level.name,
                             .fabric = level.fabric.kind,
                             .group = joined,
                             .bandwidth = rate / oversubscription,
                             .latency = level.fabric.latency,
                             .assumed = assumed});
    }
    below = rate;
    oversubscription *= level.oversubscription;
  }
}

bool among(const std::vector<SiteDevices>& sites, const std::string& name) {
  return std::any_of(sites.begin(), sites.end(),
                     [&](const SiteDevices& s) { return s.site == name; });
}

NetworkView::Level wan_level(const Platform& platform, const std::vector<SiteDevices>& sites,
                             int devices) {
  // Links that join two sites of the allocation; if there are none, the way leads through others.
  std::vector<WanLink> links;
  std::copy_if(platform.wan.begin(), platform.wan.end(), std::back_inserter(links),
               [&](const WanLink& w) { return among(sites, w.from) && among(sites, w.to); });
  if (links.empty()) links = platform.wan;
  EXPECTS(!links.empty());
  int largest = 0;
  for (const SiteDevices& s : sites) largest = std::max(largest, s.devices);
  NetworkView::Level level{.name = "wan",
                           .fabric = "wan",
                           .group = devices,
                           .bandwidth = links.front().bandwidth,
                           .latency = links.front().latency,
                           .assumed = false};
  for (const WanLink& link : links) {
    level.bandwidth = std::min(level.bandwidth, link.bandwidth);
    level.latency = std::max(level.latency, link.latency);
  }
  level.bandwidth = level.bandwidth / largest;
  return level;
}

/// Most groups of `block` consecutive ranks that one process group touches.
int most_blocks(int size, int stride, int block, int devices) {
  if (stride >= block) return size;
  // Process groups start at k * tile + j, 0 <= j < stride; `reach` ranks lie between their ends.
  const std::int64_t tile = std::int64_t{size} * stride;
  const std::int64_t reach = (std::int64_t{size} - 1) * stride;
  const std::int64_t gcd = std::gcd(tile, std::int64_t{block});
  const std::int64_t offsets =
      block / gcd;  // different values of k * tile mod block: multiples of gcd
  const std::int64_t tiles = std::max<std::int64_t>(1, devices / tile);
  std::int64_t worst = 0;  // the largest start within a block
  if (tiles >= offsets) {
    worst = stride >= gcd ? block - 1 : block - gcd + stride - 1;
  } else {
    for (std::int64_t k = 0; k < tiles; ++k) {
      const std::int64_t first = (k * tile) % block;
      worst = std::max(worst, std::min<std::int64_t>(first + stride, block) - 1);
    }
  }
  return static_cast<int>(std::min<std::int64_t>((worst + reach) / block + 1, size));
}

}  // namespace

std::variant<Allocation, TooManyDevices> allocate(const Platform& platform, int devices) {
  EXPECTS(devices >= 1);
  Allocation out;
  std::int64_t available = 0;
  for (const NodeGroup& group : platform.nodes) {
    if (out.devices == devices) break;
    const int per_node = platform.node_kinds[group.kind].devices;
    const int left = devices - out.devices;
    const int needed = (left - 1) / per_node + 1;
    const int nodes = group.count ? std::min(needed, *group.count) : needed;
    const int taken =
        static_cast<int>(std::min<std::int64_t>(left, std::int64_t{nodes} * per_node));
    available += std::int64_t{nodes} * per_node;
    if (nodes == 0) continue;
    if (!out.parts.empty() && out.parts.back().kind == group.kind &&
        out.parts.back().site == group.site) {
      out.parts.back().nodes += nodes;
      out.parts.back().devices += taken;
    } else {
      out.parts.push_back({group.kind, nodes, taken, group.site});
    }
    out.devices += taken;
    out.nodes += nodes;
  }
  if (out.devices == devices) return out;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return TooManyDevices{devices, static_cast<int>(std::min(available, kMost))};
}

NetworkView network_view(const Platform& platform, const Allocation& allocation) {
  EXPECTS(!allocation.parts.empty() && allocation.devices >= 1);
  NetworkView view;
  view.devices = allocation.devices;
  describe_nodes(platform, allocation, view);
  view.levels.push_back(intranode_level(platform, allocation, view));
  const std::vector<SiteDevices> sites = devices_by_site(allocation);
  const int reach = sites.size() == 1 ? view.devices : regular_site_group(sites);
  view.levels.back().group = std::min(view.levels.back().group, reach);
  view.devices_per_node = view.levels.back().group;
  add_network_levels(platform, allocation, reach, view);
  if (sites.size() > 1) view.levels.push_back(wan_level(platform, sites, view.devices));
  ENSURES(view.levels.back().group == view.devices);
  return view;
}

GroupShape group_shape(const NetworkView& view, int size, int stride) {
  EXPECTS(size >= 1 && stride >= 1);
  EXPECTS((std::int64_t{size} - 1) * stride < view.devices);
  GroupShape shape;
  shape.size = size;
  shape.per_level.reserve(view.levels.size());
  int below = size;
  for (const NetworkView::Level& level : view.levels) {
    const int blocks = level.group >= view.devices
                           ? 1
                           : std::min(below, most_blocks(size, stride, level.group, view.devices));
    shape.per_level.push_back((below - 1) / blocks + 1);
    below = blocks;
  }
  return shape;
}

}  // namespace towtank
