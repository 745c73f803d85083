// SPDX-License-Identifier: Apache-2.0
#include "model/cost/choose_costs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/file.h"
#include "model/cost/calibration_json.h"
#include "platforms/catalogue.h"
#include "tests/support/expect_fault.h"
#include "tests/support/near.h"

namespace towtank::choose_costs_test {

using testing::kSameArithmetic;

/// 8 devices of a machine of the catalogue.
struct Machine {
  Platform platform;
  NetworkView view;
  DeviceKind device;
};
Machine machine(const std::string& name) {
  Machine m{load_platform(name), {}, {}};
  m.view = network_view(m.platform, std::get<Allocation>(allocate(m.platform, 8)));
  m.device = m.platform.device_kinds[m.view.device];
  return m;
}
std::unique_ptr<CostModel> model_of(const Machine& m, const std::vector<Calibration>& user = {}) {
  return load_cost_model(m.platform, m.device, m.view, user);
}

/// Products of a device at a share of the peak at every depth and number of tiles.
Calibration products(const std::string& device_kind, double share, const std::string& name) {
  const DeviceKind device = load_device_kind(device_kind);
  OpRecord r;
  r.device_kind = device.name;
  r.generation = device.generation;
  r.memory_bandwidth = device.memory_bandwidth;
  r.peak = product_peak(device, DType::kBf16);
  r.dtypes = {DType::kFp16, DType::kBf16};
  for (const OpTerm term : terms_of(OpKind::kMatmul, true))
    r.terms[static_cast<std::size_t>(term)] = Estimate{0.0, 0.0, true};
  r.terms[static_cast<std::size_t>(OpTerm::kShare)]->value = share;
  r.terms[static_cast<std::size_t>(OpTerm::kStreamShare)]->value = 1.0;
  r.m = r.n = r.k = {1, 1e6};
  r.traffic = {1, 1e12};
  r.evidence.rows = 10;
  Calibration c;
  c.name = name;
  c.ops = {r};
  return c;
}
/// The share of the peak that a large product of 2 * 8192^3 FLOP reaches.
double share_of(const CostModel& model, const DeviceKind& device) {
  const OpSignature op = matmul(DType::kBf16, 1, 8192, 8192, 8192);
  return op.work.value / model.op(op).time.value / product_peak(device, DType::kBf16).value;
}

/// A calibration on disk; gone when it leaves its scope.
class TemporaryFile {
 public:
  TemporaryFile(const Calibration& c, const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              (name + "-" + std::to_string(::getpid()) + ".json")) {
    write_file(path_.string(), calibration_text(c));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(UnitChooseCosts, UsersBeforeThePlatformsBeforeShippedOnes) {
  Machine m = machine("dgx-a100-80g");
  const std::unique_ptr<CostModel> shipped = model_of(m);
  EXPECT_NE(shipped->description().find("ops-a100-80g"), std::string::npos);
  EXPECT_GT(share_of(*shipped, m.device), 0.7);  // 271 of 312 TFLOP/s is its best
  const TemporaryFile file(products("a100-sxm-80g", 0.5, "of the platform"), "of-the-platform");
  m.platform.calibrations = {file.path()};
  const std::unique_ptr<CostModel> named = model_of(m);
  EXPECT_CLOSE(share_of(*named, m.device), 0.5, kSameArithmetic);
  EXPECT_NE(named->description().find("of the platform"), std::string::npos);
  EXPECT_EQ(named->description().find("ops-a100-80g"), std::string::npos);
  const std::unique_ptr<CostModel> user = model_of(
      m, {products("a100-sxm-80g", 0.25, "the user's"), products("a100-sxm-80g", 0.3, "a second")});
  EXPECT_CLOSE(share_of(*user, m.device), 0.25, kSameArithmetic);
  EXPECT_NE(user->description().find("the user's"), std::string::npos);
}

// Its own kind is taken before another of its generation, whatever the place.
TEST(UnitChooseCosts, AShippedRecordOfTheKindComesBeforeAUsersOfAnother) {
  const Machine m = machine("dgx-a100-80g");
  const std::unique_ptr<CostModel> model =
      model_of(m, {products("a100-pcie-40g", 0.25, "the user's")});
  EXPECT_GT(share_of(*model, m.device), 0.7);
  EXPECT_NE(model->description().find("ops-a100-80g"), std::string::npos);
}

TEST(UnitChooseCosts, ThePlatformNamesShippedOnesByName) {
  Machine m = machine("dgx-a100-80g");
  const double before = share_of(*model_of(m), m.device);
  m.platform.calibrations = {"ops-a100-80g"};
  EXPECT_EQ(share_of(*model_of(m), m.device), before);
}

TEST(FaultChooseCosts, WhatThePlatformNamesMustBeThere) {
  Machine m = machine("dgx-a100-80g");
  m.platform.calibrations = {"/no/such/calibration.json"};
  EXPECT_FAULT(model_of(m), "/no/such/calibration.json: no such file");
  m.platform.calibrations = {"ops-a100-80"};
  EXPECT_FAULT(model_of(m),
               "calibration: \"ops-a100-80\" is not shipped. Did you mean \"ops-a100-80g\"? A file "
               "is given by its path.");
}

// No record of cdna3, of its fabrics or of a framework on it.
TEST(UnitChooseCosts, WithoutAnyRecordTheModelIsAnalytic) {
  Machine m = machine("dgx-a100-80g");
  m.device.name = "of another maker";
  m.device.generation = "cdna3";
  for (auto& level : m.view.levels) level.fabric = "of another maker";
  const std::unique_ptr<CostModel> model = model_of(m);
  EXPECT_NE(model->description().find("no calibration"), std::string::npos) << model->description();
  EXPECT_EQ(model->op(matmul(DType::kBf16, 1, 8192, 8192, 8192)).basis, Basis::kAnalytic);
  EXPECT_EQ(model->runtime(Framework::kMegatron).basis, Basis::kAnalytic);
}

TEST(UnitChooseCosts, FrameworksFollowTheSameOrder) {
  const Machine m = machine("dgx-a100-80g");
  const auto rows = [&](const std::vector<Calibration>& user) {
    const std::string origin = model_of(m, user)->runtime(Framework::kFsdp).origin;
    const std::size_t at = origin.find("fitted on ");
    return at == std::string::npos ? 0 : std::stoi(origin.substr(at + 10));
  };
  EXPECT_GT(rows({}), 10);  // the shipped one
  Calibration user;
  user.name = "the user's";
  RuntimeRecord r;
  r.framework = Framework::kFsdp;
  r.generation = "ampere";
  r.rows = 7;
  user.frameworks = {r};
  EXPECT_EQ(rows({user}), 7);
  user.frameworks[0].generation = "volta";  // the shipped one is of the generation
  EXPECT_GT(rows({user}), 10);
}

}  // namespace towtank::choose_costs_test
