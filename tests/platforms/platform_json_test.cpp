// SPDX-License-Identifier: Apache-2.0
#include "platforms/platform_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/platforms/small_platform.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace {

using testing::read_platform;
using testing::small_platform;

TEST(UnitPlatform, ReadsEveryPart) {
  const Platform p = read_platform(small_platform());
  EXPECT_EQ(p.name, "small");
  ASSERT_EQ(p.device_kinds.size(), 1U);
  const DeviceKind& device = p.device_kinds[DeviceKindId{0}];
  EXPECT_EQ(device.name, "d");
  EXPECT_EQ(device.peak_of(DType::kBf16), FlopPerSecond{100e12});
  EXPECT_EQ(device.peak_of(DType::kFp8), std::nullopt);
  EXPECT_EQ(device.memory.value, 80LL << 30);
  EXPECT_EQ(device.multiprocessors, std::nullopt);
  ASSERT_EQ(p.node_kinds.size(), 1U);
  const NodeKind& node = p.node_kinds[NodeKindId{0}];
  EXPECT_EQ(node.devices, 8);
  EXPECT_EQ(node.topology, IntranodeTopology::kSwitch);
  EXPECT_EQ(node.intranode.bandwidth, BytesPerSecond{100e9});
  // 8 ports x 400e9 bit/s / 8 bit / 8 devices
  EXPECT_EQ(node.nic_bandwidth_per_device(), BytesPerSecond{50e9});
  ASSERT_EQ(p.levels.size(), 2U);
  EXPECT_EQ(p.levels[0].group_nodes, 2);
  EXPECT_EQ(p.levels[0].oversubscription, 2.0);
  EXPECT_EQ(p.levels[1].group_nodes, std::nullopt);
  EXPECT_EQ(p.levels[1].oversubscription, 1.0);
  ASSERT_EQ(p.nodes.size(), 1U);
  EXPECT_EQ(p.nodes[0].count, 4);
}

TEST(UnitPlatform, SharedKindsAreFoundByName) {
  const Platform p = read_platform(R"({
    "format": "towtank-platform", "version": 1, "name": "mine", "description": "two DGX",
    "nodes": [ { "kind": "dgx-h100", "count": 1, "source": "mine" } ] })");
  ASSERT_EQ(p.device_kinds.size(), 1U);
  EXPECT_EQ(p.device_kinds[DeviceKindId{0}].name, "h100-sxm-80g");
  EXPECT_EQ(p.node_kinds[p.nodes[0].kind].devices, 8);
}

TEST(UnitPlatform, UseTakesASharedKindAndChangesIt) {
  const Platform p = read_platform(R"({
    "format": "towtank-platform", "version": 1, "name": "mine", "description": "capped",
    "device_kinds": { "capped": { "use": "h100-sxm-80g", "power": "500 W", "source": "nvidia-smi" } },
    "node_kinds": { "box": { "use": "dgx-h100", "device": "capped", "nics": null, "power": null,
                             "source": "mine" } },
    "nodes": [ { "kind": "box", "count": 1, "source": "mine" } ] })");
  ASSERT_EQ(p.device_kinds.size(), 1U);
  const DeviceKind& device = p.device_kinds[DeviceKindId{0}];
  EXPECT_EQ(device.power, Watts{500.0});
  EXPECT_EQ(device.peak_of(DType::kBf16), FlopPerSecond{989.4e12});
  EXPECT_TRUE(device.source.starts_with("nvidia-smi; the rest: NVIDIA H100")) << device.source;
  const NodeKind& box = p.node_kinds[NodeKindId{0}];
  EXPECT_EQ(box.nics, 0);
  EXPECT_EQ(box.nic_bandwidth_per_device(), std::nullopt);
  EXPECT_EQ(box.power, std::nullopt);
  EXPECT_EQ(box.intranode.bandwidth, BytesPerSecond{450e9});
}

TEST(UnitPlatform, HashIsOfWhatTheFileSays) {
  const Platform p = read_platform(small_platform());
  EXPECT_EQ(read_platform(small_platform("\n", "\n\n")).hash, p.hash);
  EXPECT_EQ(read_platform(small_platform(R"("2 TB/s")", R"("2000 GB/s")")).hash, p.hash);
  EXPECT_NE(read_platform(small_platform(R"("2 TB/s")", R"("2001 GB/s")")).hash, p.hash);
}

TEST(UnitPlatform, WritesWhatItReads) {
  std::string text = small_platform();
  text.insert(text.rfind('}'), R"(,
    "storage": { "bandwidth": null, "source": "not stated" },
    "price": { "device_hour": "$2.745", "source": "2026-01" },
    "aliases": ["klein"], "calibrations": ["h100.json"])");
  const Platform p = read_platform(text);
  EXPECT_EQ(p.storage_bandwidth, std::nullopt);
  EXPECT_EQ(p.price, (Price{.device_hour = Usd{2.745}, .source = "2026-01"}));
  const std::string written = to_text(to_json(p));
  const Platform back = read_platform(written);
  EXPECT_EQ(to_text(to_json(back)), written);
  EXPECT_EQ(back.hash, p.hash);
  EXPECT_EQ(back.aliases, p.aliases);
  EXPECT_EQ(back.calibrations, p.calibrations);
}

TEST(UnitPlatform, OneInsideAnotherFile) {
  const JsonFile file =
      JsonFile::parse(R"({"platform": )" + small_platform("2 TB/s", "2") + "}", "plan.json");
  static_cast<void>(parse_platform(file, file.root().at("platform")));
  EXPECT_FAULT(
      file.finish(),
      "plan.json: /platform/device_kinds/d/memory_bandwidth: \"2\" has no unit (rates need "
      "one). Write \"2 GB/s\" or \"2 Gbit/s\".");
}

// --- what bad files are told ---

TEST(FaultPlatform, Units) {
  EXPECT_FAULT(
      read_platform(small_platform("400 Gbit/s", "400 Gb/s")),
      "p.json: /node_kinds/n/nics/bandwidth: \"400 Gb/s\" is ambiguous (b has been read as "
      "bit and as byte). Write \"400 Gbit/s\" or \"400 GB/s\".");
  EXPECT_FAULT(read_platform(small_platform("80 GiB", "-80 GiB")),
               "p.json: /device_kinds/d/memory: \"-80 GiB\" is negative (must be >= 0)");
  EXPECT_FAULT(read_platform(small_platform("80 GiB", "0 GiB")),
               "p.json: /device_kinds/d/memory: \"0 GiB\" is zero (must be > 0)");
  EXPECT_FAULT(read_platform(small_platform("\"80 GiB\"", "80")),
               "p.json: /device_kinds/d/memory: 80 has no unit (bytes need one). Write \"80 GiB\" "
               "or \"80 GB\".");
}

TEST(FaultPlatform, ANumberWithoutItsSource) {
  EXPECT_FAULT(read_platform(small_platform(R"("count": 4, "source": "made up")", R"("count": 4)")),
               "p.json: /nodes/0: has no \"source\" (each number of a platform says where it comes "
               "from). Add \"source\": \"<data sheet, page or measurement>\".");
  EXPECT_FAULT(read_platform(small_platform(R"("memory_bandwidth": "2 TB/s",
           "source": "made up")",
                                            R"("memory_bandwidth": "2 TB/s", "source": "")")),
               "p.json: /device_kinds/d/source: is empty (each number of a platform says where it "
               "comes from)");
  EXPECT_FAULT(
      read_platform(R"({
    "format": "towtank-platform", "version": 1, "name": "mine", "description": "capped",
    "node_kinds": { "box": { "use": "dgx-h100", "cores": 64 } },
    "nodes": [ { "kind": "box", "count": 1, "source": "mine" } ] })"),
      "p.json: /node_kinds/box: has no \"source\" (each number of a platform says where it comes "
      "from). Add \"source\": \"<data sheet, page or measurement>\".");
}

TEST(FaultPlatform, KeysAndNames) {
  EXPECT_FAULT(read_platform(small_platform("vector_peak", "vectorpeak")),
               "p.json: /device_kinds/d/vector_peak: missing key (it is required)\n"
               "p.json: /device_kinds/d/vectorpeak: unknown key. Did you mean \"vector_peak\"?");
  EXPECT_FAULT(read_platform(small_platform("\"bf16\"", "\"bf61\"")),
               "p.json: /device_kinds/d/peak/bf61: unknown key. Did you mean \"bf16\"?");
  EXPECT_FAULT(read_platform(small_platform("\"switch\"", "\"swich\"")),
               "p.json: /node_kinds/n/topology: \"swich\" is not one of the known values (known: "
               "switch, mesh, pcie). Did you mean \"switch\"?");
  EXPECT_FAULT(
      read_platform(small_platform(R"("kind": "n")", R"("kind": "dgx-h10")")),
      "p.json: /nodes/0/kind: \"dgx-h10\" is not a node kind of this file or a shared one. "
      "Did you mean \"dgx-h100\"?");
  EXPECT_FAULT(
      read_platform(small_platform(R"("device": "d")", R"("device": "h100-smx-80g")")),
      "p.json: /node_kinds/n/device: \"h100-smx-80g\" is not a device kind of this file or "
      "a shared one. Did you mean \"h100-sxm-80g\"?");
  EXPECT_FAULT(read_platform(small_platform(R"("generation": "g")", R"("use": "h100")")),
               "p.json: /device_kinds/d/use: \"h100\" is not a shared device kind. Did you mean "
               "\"h100-sxm-80g\"?");
  EXPECT_FAULT(read_platform(small_platform(R"("bandwidth": "100 GB/s", )", "")),
               "p.json: /node_kinds/n/intranode: has no \"bandwidth\" (null where no source gives "
               "it). Write a rate, for example \"50 GB/s\", or null.");
}

TEST(FaultPlatform, OtherFormats) {
  EXPECT_FAULT(
      read_platform(small_platform("towtank-platform", "towtank-plan")),
      "p.json: /format: \"towtank-plan\" is another format (must be \"towtank-platform\")");
  EXPECT_FAULT(read_platform(small_platform("\"version\": 1", "\"version\": 2")),
               "p.json: /version: 2 is newer than this program (it reads versions up to 1). Update "
               "towtank.");
}

TEST(FaultPlatform, AllFaultsAreTold) {
  EXPECT_FAULT(
      read_platform(small_platform("\"made up\"", "\"\"")),
      "p.json: /device_kinds/d/source: is empty (each number of a platform says where it "
      "comes from)\n"
      "p.json: /node_kinds/n/intranode/source: is empty (each number of a platform says "
      "where it comes from)\n"
      "p.json: /node_kinds/n/nics/source: is empty (each number of a platform says where it "
      "comes from)\n"
      "p.json: /node_kinds/n/source: is empty (each number of a platform says where it "
      "comes from)\n"
      "p.json: /levels/0/source: is empty (each number of a platform says where it comes "
      "from)\n"
      "p.json: /levels/1/source: is empty (each number of a platform says where it comes "
      "from)\n"
      "p.json: /nodes/0/source: is empty (each number of a platform says where it comes "
      "from)");
}

TEST(FaultPlatform, Levels) {
  EXPECT_FAULT(read_platform(small_platform(R"("levels")", R"("calibrations": [], "levls")")),
               "p.json: /levls: unknown key. Did you mean \"levels\"?");
  EXPECT_FAULT(
      read_platform(small_platform(R"("oversubscription": 2)", R"("oversubscription": 0.5)")),
      "p.json: /levels/0/oversubscription: 0.5 is too small (must be in 1 to 1000)");
  EXPECT_FAULT(read_platform(small_platform(R"("bandwidth": "50 GB/s", "latency": "2 us")",
                                            R"("bandwidth": "400 GB/s", "latency": "2 us")")),
               "p.json: /levels/0: carries 400 GB/s a device, more than its NICs do, 50 GB/s "
               "(bandwidth is of one device in one direction: NICs x their rate / devices)");
  EXPECT_FAULT(read_platform(small_platform(R"("group_nodes": 2,)", "")),
               "p.json: /levels/0: joins all nodes, but a level follows (only the last level joins "
               "all). Give it \"group_nodes\".");
  EXPECT_FAULT(
      read_platform(
          small_platform(R"("latency": "3 us")", R"("latency": "3 us", "group_nodes": 3)")),
      "p.json: /levels/1: group_nodes 3 is not a multiple of the level below, 2 (a group is "
      "made of whole groups of the level below)\n"
      "p.json: /levels/1: joins 3 nodes, but a job may use more (the last level joins all "
      "nodes of a site). Leave out \"group_nodes\", or add a level above.");
  EXPECT_FAULT(read_platform(small_platform("\"spine\"", "\"leaf\"")),
               "p.json: /levels/1: \"leaf\" is there twice");
  EXPECT_FAULT(read_platform(R"({
    "format": "towtank-platform", "version": 1, "name": "mine", "description": "two DGX",
    "nodes": [ { "kind": "dgx-h100" } ] })"),
               "p.json: has no \"levels\" (more than one node needs a network). Add \"levels\": "
               "[{\"name\": \"leaf\", \"fabric\": ..., \"bandwidth\": ..., ...}].");
}

TEST(FaultPlatform, NodesAndSites) {
  EXPECT_FAULT(
      read_platform(small_platform(R"("nodes": [)", R"("nodes": [ { "kind": "n" },)")),
      "p.json: /nodes/0: has no count (it is as many as asked, and the nodes after it are never "
      "taken). Give it a count with its source, or move it to the end.");
  EXPECT_FAULT(
      read_platform(small_platform(R"({ "kind": "n", "count": 4, "source": "made up" })", "")),
      "p.json: /nodes: is empty (a platform has at least one node)");
  const std::string two = R"("nodes": [
    { "kind": "n", "count": 2, "site": "north", "source": "s" },
    { "kind": "n", "count": 2, "site": "south", "source": "s" } ])";
  const std::string one = R"("nodes": [ { "kind": "n", "count": 4, "source": "made up" } ])";
  EXPECT_FAULT(read_platform(small_platform(one, two)),
               "p.json: has sites that no link joins: north and south. Add \"links\": {\"wan\": "
               "[{\"from\": ..., \"to\": ..., \"bandwidth\": ..., ...}]}.");
  EXPECT_FAULT(
      read_platform(small_platform(one, two + R"(, "links": { "wan": [
    { "from": "nort", "to": "south", "bandwidth": "1 GB/s", "latency": "1 ms", "source": "s" }]})")),
      "p.json: /links/wan/0: \"nort\" is not a site of \"nodes\". Did you mean \"north\"?\n"
      "p.json: has sites that no link joins: north and south. Add \"links\": {\"wan\": "
      "[{\"from\": ..., \"to\": ..., \"bandwidth\": ..., ...}]}.");
}

}  // namespace
}  // namespace towtank
