// SPDX-License-Identifier: Apache-2.0
#include "platforms/platform_check.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

constexpr double kSameRate = 1.0 + 1e-9;  // rates written in different units

JsonReader element(const JsonReader& root, std::string_view key, std::size_t i) {
  return root.array(key).at(i);
}

struct Site {
  std::string name;
  std::int64_t nodes = 0;
};

std::vector<Site> sites_of(const Platform& platform) {
  constexpr std::int64_t kUnlimited = std::numeric_limits<int>::max();
  std::vector<Site> sites;
  for (const NodeGroup& group : platform.nodes) {
    const std::int64_t nodes = group.count ? *group.count : kUnlimited;
    const auto known = std::find_if(sites.begin(), sites.end(),
                                    [&](const Site& s) { return s.name == group.site; });
    if (known == sites.end()) {
      sites.push_back({group.site, nodes});
    } else {
      known->nodes = std::min(known->nodes + nodes, kUnlimited);
    }
  }
  return sites;
}

void check_devices(const Platform& platform, const JsonReader& root) {
  for (const DeviceKind& device : platform.device_kinds) {
    const bool any = std::any_of(device.peak.begin(), device.peak.end(),
                                 [](const auto& rate) { return rate.has_value(); });
    if (any) continue;
    root.at("device_kinds")
        .at(device.name)
        .fault("has no peak rate", "at least one number format is needed",
               R"(Write for example "peak": {"bf16": "989.4 TFLOP/s"}.)");
  }
}

void check_node_order(const Platform& platform, const JsonReader& root) {
  if (platform.nodes.empty()) {
    root.at("nodes").fault("is empty", "a platform has at least one node");
    return;
  }
  for (std::size_t i = 0; i + 1 < platform.nodes.size(); ++i) {
    if (platform.nodes[i].count) continue;
    element(root, "nodes", i)
        .fault("has no count", "it is as many as asked, and the nodes after it are never taken",
               "Give it a count with its source, or move it to the end.");
  }
}

void check_levels(const Platform& platform, const std::vector<Site>& sites,
                  const JsonReader& root) {
  const auto& levels = platform.levels;
  std::int64_t most_nodes = 0;
  for (const Site& site : sites) most_nodes = std::max(most_nodes, site.nodes);
  if (levels.empty()) {
    if (most_nodes > 1) {
      root.fault("has no \"levels\"", "more than one node needs a network",
                 R"(Add "levels": [{"name": "leaf", "fabric": ..., "bandwidth": ..., ...}].)");
    }
    return;
  }
  int joined = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const JsonReader place = element(root, "levels", i);
    const NetworkLevel& level = levels[i];
    if (level.name == "intranode" || level.name == "wan") {
      place.fault(in_quotes(level.name) + " is the name of another level",
                  "the intra-node fabric stands in the node kind, WAN links in \"links\"");
    }
    const bool twice = std::any_of(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const NetworkLevel& l) { return l.name == level.name; });
    if (twice) place.fault(in_quotes(level.name) + " is there twice");
    const bool last = i + 1 == levels.size();
    if (!level.group_nodes) {
      if (!last) {
        place.fault("joins all nodes, but a level follows", "only the last level joins all",
                    "Give it \"group_nodes\".");
      }
      continue;
    }
    if (*level.group_nodes <= joined || *level.group_nodes % joined != 0) {
      place.fault("group_nodes " + std::to_string(*level.group_nodes) +
                      " is not a multiple of the level below, " + std::to_string(joined),
                  "a group is made of whole groups of the level below");
    }
    joined = *level.group_nodes;
    if (last && joined < most_nodes) {
      place.fault("joins " + std::to_string(joined) + " nodes, but a job may use more",
                  "the last level joins all nodes of a site",
                  "Leave out \"group_nodes\", or add a level above.");
    }
  }
}

/// A level cannot carry more of a device than the device's NICs do.
void check_level_rates(const Platform& platform, const JsonReader& root) {
  std::optional<BytesPerSecond> most;
  for (const NodeGroup& group : platform.nodes) {
    const auto share = platform.node_kinds[group.kind].nic_bandwidth_per_device();
    if (!share) return;
    if (!most || *share > *most) most = share;
  }
  if (!most) return;
  for (std::size_t i = 0; i < platform.levels.size(); ++i) {
    const auto rate = platform.levels[i].fabric.bandwidth;
    if (!rate || *rate <= kSameRate * *most) continue;
    element(root, "levels", i)
        .fault("carries " + to_text(*rate) + " a device, more than its NICs do, " + to_text(*most),
               "bandwidth is of one device in one direction: NICs x their rate / devices");
  }
}

bool connected(const std::vector<Site>& sites, const std::vector<WanLink>& links) {
  std::vector<std::string> reached{sites.front().name};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const WanLink& link : links) {
      for (const auto& [a, b] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
        if (a == reached[i] && std::find(reached.begin(), reached.end(), b) == reached.end()) {
          reached.push_back(b);
        }
      }
    }
  }
  return std::all_of(sites.begin(), sites.end(), [&](const Site& s) {
    return std::find(reached.begin(), reached.end(), s.name) != reached.end();
  });
}

void check_sites(const Platform& platform, const std::vector<Site>& sites, const JsonReader& root) {
  std::vector<std::string> names;
  for (const Site& site : sites) names.push_back(site.name);
  for (std::size_t i = 0; i < platform.wan.size(); ++i) {
    const JsonReader place = element(root.at("links"), "wan", i);
    const WanLink& link = platform.wan[i];
    for (const std::string& end : {link.from, link.to}) {
      if (std::find(names.begin(), names.end(), end) != names.end()) continue;
      const auto near = nearest(end, names);
      place.fault(in_quotes(end) + " is not a site of \"nodes\"", "",
                  near ? "Did you mean " + in_quotes(*near) + "?" : "");
    }
    if (link.from == link.to) {
      place.fault("joins " + in_quotes(link.from) + " to itself");
    }
  }
  if (sites.size() < 2) return;
  bool named = true;
  for (std::size_t i = 0; i < platform.nodes.size(); ++i) {
    if (!platform.nodes[i].site.empty()) continue;
    element(root, "nodes", i).fault("has no \"site\"", "other nodes of this platform have one");
    named = false;
  }
  if (!named) return;
  if (!connected(sites, platform.wan)) {
    root.fault("has sites that no link joins: " + join_and(names), "",
               R"(Add "links": {"wan": [{"from": ..., "to": ..., "bandwidth": ..., ...}]}.)");
  }
}

}  // namespace

void check_platform(const Platform& platform, const JsonReader& root) {
  check_devices(platform, root);
  check_node_order(platform, root);
  const std::vector<Site> sites = sites_of(platform);
  if (sites.empty()) return;
  check_levels(platform, sites, root);
  check_level_rates(platform, root);
  check_sites(platform, sites, root);
}

}  // namespace towtank
