// SPDX-License-Identifier: Apache-2.0
#include "platforms/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "platforms/allocate.h"
#include "platforms/embedded_library.h"
#include "platforms/platform_json.h"
#include "platforms/shared_kinds.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace {

template <class I, class T>
std::vector<T> items(const IdVector<I, T>& all) {
  return {all.begin(), all.end()};
}

TEST(UnitCatalogue, HasEveryMachineThatCasesName) {
  const std::vector<std::string> names = catalogue_names();
  for (const char* name :
       {"a100-80g-4xhdr", "dgx-a100-80g", "dgx-a100-40g", "oci-a100-40g", "oci-a100-80g",
        "oci-h100", "jean-zay-a100", "jean-zay-v100", "jean-zay-v100-16g",
        "h100-96g-cluster-torchtitan", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300",
        "gb200-nvl72", "gb300-nvl72", "gh200x4-slingshot", "mit-rtx", "aws-p3dn"}) {
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
  }
}

TEST(UnitCatalogue, AliasesAndPaths) {
  EXPECT_EQ(load_platform("p5.48xlarge").name, "aws-p5");
  EXPECT_EQ(load_platform(TOWTANK_SOURCE_DIR "/platforms/library/dgx-h100.json").hash,
            load_platform("dgx-h100").hash);
}

TEST(FaultCatalogue, UnknownNames) {
  EXPECT_FAULT(load_platform("dgx-h10"),
               "platform: \"dgx-h10\" is not in the catalogue. Did you mean \"dgx-h100\"? `towtank "
               "platforms` lists it; a file is given by its path.");
  EXPECT_FAULT(
      load_platform("device-kinds"),
      "platform: \"device-kinds\" is not in the catalogue. `towtank platforms` lists it; a "
      "file is given by its path.");
  EXPECT_FAULT(load_platform("./absent.json"), "./absent.json: no such file");
}

TEST(LawPlatform, NamesAreFileNamesAndUnique) {
  std::set<std::string> seen;
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    EXPECT_EQ(p.name, name);
    EXPECT_FALSE(p.description.empty()) << name;
    EXPECT_TRUE(seen.insert(name).second) << name;
    for (const std::string& alias : p.aliases) {
      EXPECT_TRUE(seen.insert(alias).second) << alias;
      EXPECT_EQ(load_platform(alias).name, name);
    }
  }
}

TEST(LawPlatform, RoundTrip) {
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    const Platform q = parse_platform(JsonFile::parse(to_text(to_json(p)), name));
    EXPECT_EQ(items(q.device_kinds), items(p.device_kinds)) << name;
    EXPECT_EQ(items(q.node_kinds), items(p.node_kinds)) << name;
    EXPECT_EQ(q.levels, p.levels) << name;
    EXPECT_EQ(q.nodes, p.nodes) << name;
    EXPECT_EQ(q.wan, p.wan) << name;
    EXPECT_EQ(q.price, p.price) << name;
    EXPECT_EQ(q.storage_bandwidth, p.storage_bandwidth) << name;
    EXPECT_EQ(q.hash, p.hash) << name;
  }
}

TEST(LawPlatform, SourcesSaySomething) {
  const auto told = [](const std::string& source) { return source.size() >= 10; };
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    for (const DeviceKind& d : p.device_kinds) EXPECT_TRUE(told(d.source)) << name;
    for (const NodeKind& n : p.node_kinds) {
      EXPECT_TRUE(told(n.source)) << name;
      EXPECT_TRUE(n.devices == 1 || told(n.intranode.source)) << name;
      EXPECT_TRUE(n.nics == 0 || told(n.nic_source)) << name;
    }
    for (const NetworkLevel& l : p.levels) EXPECT_TRUE(told(l.fabric.source)) << name;
    for (const NodeGroup& g : p.nodes) EXPECT_TRUE(!g.count || told(g.source)) << name;
    EXPECT_TRUE(!p.price || told(p.price->source)) << name;
  }
}

/// Rates that no device of any maker breaks: a wrong unit or a sparse rate would.
TEST(LawPlatform, DevicesArePlausible) {
  std::set<std::string> seen;
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    for (const DeviceKind& d : p.device_kinds) {
      if (!seen.insert(d.name).second) continue;
      const auto peak = [&](DType t) { return d.peak_of(t).value_or(FlopPerSecond{}).value; };
      EXPECT_GT(peak(DType::kFp32), 5e12) << d.name;
      EXPECT_GT(peak(DType::kFp16), 1.9 * peak(DType::kFp32)) << d.name;
      EXPECT_TRUE(!d.peak_of(DType::kBf16) || d.peak_of(DType::kBf16) == d.peak_of(DType::kFp16))
          << d.name;
      EXPECT_TRUE(peak(DType::kFp8) == 0.0 ||
                  std::abs(peak(DType::kFp8) / peak(DType::kFp16) - 2.0) < 0.01)
          << d.name;
      // Matrix units pay only above some intensity: 50 to 400 FLOP a byte on what is sold.
      const double intensity = peak(DType::kFp16) / d.memory_bandwidth.value;
      EXPECT_GT(intensity, 50.0) << d.name;
      EXPECT_LT(intensity, 450.0) << d.name;
      EXPECT_GT(d.memory.value, 7LL << 30) << d.name;
      EXPECT_LT(d.memory.value, 300LL << 30) << d.name;
    }
  }
  EXPECT_GE(seen.size(), 20U);
}

TEST(LawPlatform, BandwidthFallsOutwards) {
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    for (const int devices : {1, 4, 16, 48, 192, 1024}) {
      const auto taken = allocate(p, devices);
      if (!std::holds_alternative<Allocation>(taken)) continue;
      const NetworkView view = network_view(p, std::get<Allocation>(taken));
      EXPECT_EQ(view.levels.back().group, devices) << name;
      for (std::size_t i = 1; i < view.levels.size(); ++i) {
        EXPECT_LE(view.levels[i].bandwidth.value, view.levels[i - 1].bandwidth.value) << name;
        EXPECT_GT(view.levels[i].group, view.levels[i - 1].group) << name;
      }
    }
  }
}

TEST(LawPlatform, SharedKindsAreUsed) {
  std::set<std::string> devices;
  std::set<std::string> nodes;
  for (const std::string& name : catalogue_names()) {
    const Platform p = load_platform(name);
    for (const DeviceKind& d : p.device_kinds) devices.insert(d.name);
    for (const NodeKind& n : p.node_kinds) nodes.insert(n.name);
  }
  SharedKinds shared;  // each is read, and so checked, by some platform
  for (const std::string& name : shared.device_names()) EXPECT_TRUE(devices.count(name)) << name;
  for (const std::string& name : shared.node_names()) EXPECT_TRUE(nodes.count(name)) << name;
}

// --- spot checks by hand ---

TEST(UnitCatalogue, DgxH100) {
  const Platform p = load_platform("dgx-h100");
  const auto view = network_view(p, std::get<Allocation>(allocate(p, 512)));
  ASSERT_EQ(view.levels.size(), 3U);
  EXPECT_EQ(view.levels[0].bandwidth, BytesPerSecond{450e9});  // 900 GB/s / 2 directions
  EXPECT_EQ(view.levels[1].bandwidth, BytesPerSecond{50e9});   // 400 Gbit/s / 8
  EXPECT_EQ(view.levels[1].group, 256);                        // 32 nodes x 8
  EXPECT_EQ(view.levels[2].group, 512);
}

TEST(UnitCatalogue, NotStatedIsAssumedAndSaysSo) {
  const Platform p = load_platform("oci-h100");
  const auto view = network_view(p, std::get<Allocation>(allocate(p, 64)));
  EXPECT_FALSE(view.levels[0].assumed);
  EXPECT_TRUE(view.levels[1].assumed);
  EXPECT_EQ(view.levels[1].bandwidth, BytesPerSecond{12.5e9});
}

TEST(UnitCatalogue, MixedRtx) {
  const Platform p = load_platform("mit-rtx");
  const auto view = network_view(p, std::get<Allocation>(allocate(p, 48)));
  EXPECT_TRUE(view.mixed);
  EXPECT_EQ(p.device_kinds[view.device].name, "rtx-2080");
  EXPECT_TRUE(std::holds_alternative<TooManyDevices>(allocate(p, 49)));
}

}  // namespace
}  // namespace towtank
