// SPDX-License-Identifier: Apache-2.0
/// The measured tables beside the checkout, where there are any: every row is accounted for, counts
/// are those that the tables' own descriptions state, and rates are ones that the machines can
/// have.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "profiler/import/import_profile.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace shared_data_test {

namespace fs = std::filesystem;
using Severity = ImportStats::Severity;

class ImportSharedData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (fs::exists(root())) return;
    std::cerr << "SKIPPED: no measured tables at " << root()
              << "; the importers are tested on synthetic text only\n";
    GTEST_SKIP() << "no " << root();
  }
  static fs::path root() { return fs::path(TOWTANK_SOURCE_DIR) / ".." / "shared" / "data"; }

  static std::vector<SourceText> sources(const std::vector<std::string>& names) {
    std::vector<SourceText> out;
    for (const std::string& name : names) out.push_back(read_source((root() / name).string()));
    return out;
  }
  static std::vector<SourceText> folder(const std::string& name) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(root() / name)) {
      files.push_back(name + "/" + entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return sources(files);
  }
  static Profile imported(const std::vector<SourceText>& files, const std::string& mapping,
                          std::vector<std::pair<std::string, std::string>> select = {}) {
    ImportOptions options;
    options.select = std::move(select);
    return import_profile(files, mapping, options);
  }
  static long rows(const Profile& p, std::string_view what) {
    for (const auto& count : p.stats.counts) {
      if (count.what == what) return count.rows;
    }
    return 0;
  }
  static long errors(const Profile& p) {
    long sum = 0;
    for (const auto& count : p.stats.counts) {
      if (count.severity == Severity::kError) sum += count.rows;
    }
    return sum;
  }
  /// Largest FLOP/s of the products of a dtype.
  static double best_rate(const Profile& p, DType dtype) {
    double best = 0;
    for (const OpMeasurement& op : p.ops) {
      const OpSignature& s = op.signature;
      if (s.kind != OpKind::kMatmul || s.dtype != dtype) continue;
      best = std::max(best, (s.work / op.time.median).value);
    }
    return best;
  }
  static double best_bandwidth(const Profile& p, OpKind kind) {
    double best = 0;
    for (const OpMeasurement& op : p.ops) {
      if (op.signature.kind != kind) continue;
      best = std::max(best, (op.signature.traffic / op.time.median).value);
    }
    return best;
  }
  static double bus(const CollectiveMeasurement& c) {
    return 2.0 * (c.ranks - 1) / c.ranks * (c.payload / c.time.median).value;
  }
};

constexpr double kTera = 1e12, kGiga = 1e9;

TEST_F(ImportSharedData, VtrainHas14TablesOf1024Rows) {
  for (const std::string gpu : {"a100", "v100"}) {
    const Profile p = imported(folder("vtrain/allreduce_lut/" + gpu), "vtrain_all_reduce");
    EXPECT_EQ(p.stats.rows_read, 7 * 1024);
    EXPECT_EQ(p.stats.rows_kept, 7 * 1024);
    EXPECT_EQ(p.collectives.size(), 7U * 1024U);
    EXPECT_TRUE(p.stats.counts.empty());
  }
  // Its description: 8 x A100 at 1 GiB is 229.35 GB/s.
  const Profile p =
      imported(sources({"vtrain/allreduce_lut/a100/AR_GPU8_1M_1024M_LUT"}), "vtrain_all_reduce");
  const CollectiveMeasurement& last = p.collectives.back();
  EXPECT_EQ(last.payload.value, 1LL << 30);
  EXPECT_EQ(last.ranks, 8);
  EXPECT_NEAR(bus(last) / kGiga, 229.35, 0.01 * 229.35);
}

TEST_F(ImportSharedData, VidurHas24376NetworkRows) {
  const std::vector<std::pair<std::string, long>> files{{"a100_dgx/all_reduce", 6958},
                                                        {"h100_dgx/all_reduce", 2982},
                                                        {"a100_pairwise_nvlink/all_reduce", 4496},
                                                        {"h100_pairwise_nvlink/all_reduce", 1988},
                                                        {"a100_dgx/send_recv", 1988},
                                                        {"h100_dgx/send_recv", 1988},
                                                        {"a100_pairwise_nvlink/send_recv", 1988},
                                                        {"a40_pairwise_nvlink/send_recv", 1988}};
  long sum = 0;
  for (const auto& [name, count] : files) {
    const Profile p = imported(sources({"vidur/network/" + name + ".csv"}), "vidur_network");
    EXPECT_EQ(p.stats.rows_kept, count) << name;
    EXPECT_EQ(p.stats.rows_read, count) << name;
    sum += p.stats.rows_kept;
  }
  EXPECT_EQ(sum, 24376);
}

TEST_F(ImportSharedData, VidurHas8088OperatorRowsOfTenOps) {
  long rows = 0;
  for (const std::string gpu : {"a100", "a40", "h100"}) {
    std::vector<SourceText> files;
    for (const SourceText& file : folder("vidur/compute")) {
      if (base_name(file.name).starts_with(gpu)) files.push_back(file);
    }
    const Profile p = imported(files, "vidur_mlp");
    EXPECT_EQ(p.ops.size(), 10U * static_cast<std::size_t>(p.stats.rows_read));
    EXPECT_EQ(p.stats.rows_read, p.stats.rows_kept);
    rows += p.stats.rows_kept;
    if (gpu == "a100") {
      // An A100's fp16 peak is 312 TFLOP/s; a shape read wrongly by 2 would exceed it or stay low.
      EXPECT_LT(best_rate(p, DType::kFp16), 312 * kTera);
      EXPECT_GT(best_rate(p, DType::kFp16), 0.75 * 312 * kTera);
    }
    if (gpu == "h100") {
      EXPECT_LT(best_rate(p, DType::kFp16), 989 * kTera);
      EXPECT_GT(best_rate(p, DType::kFp16), 0.6 * 989 * kTera);
    }
  }
  EXPECT_EQ(rows, 8088);
}

TEST_F(ImportSharedData, SailorHas16128OperatorRows) {
  const std::vector<SourceText> file = sources({"sailor/op_profiles_by_gpu.csv"});
  const std::vector<std::pair<std::string, double>> tf32_or_fp32_peaks{
      {"A100-40", 156}, {"GH-96", 495}, {"V100-16", 15.7}, {"RTX-3090", 45}, {"Titan-RTX", 18}};
  for (const auto& [gpu, peak] : tf32_or_fp32_peaks) {
    const Profile p = imported(file, "sailor_ops", {{"gpu", gpu}});
    EXPECT_EQ(p.stats.rows_read, 16128);
    EXPECT_EQ(errors(p), 0);
    // Each row gives a forward and a backward measurement, or a reason for each that it does not.
    const long selected = p.stats.rows_read - rows(p, "rows that are not selected");
    const long whole = rows(p, "rows that repeat the measurement of algo 0") +
                       rows(p, "runs that failed (time 10 s)");
    const long halves =
        rows(p, "times that contain an all-reduce of the tensor ranks") +
        rows(p,
             "backward passes of final-layernorm, which run through the transposes of all "
             "repeats") +
        rows(p,
             "backward passes of encoder-embedding, which add all tokens to one row of the "
             "table");
    EXPECT_EQ(static_cast<long>(p.ops.size()), 2 * (selected - whole) - halves) << gpu;
    const DType single = best_rate(p, DType::kTf32) > 0 ? DType::kTf32 : DType::kFp32;
    EXPECT_LT(best_rate(p, single), peak * kTera) << gpu;
    EXPECT_GT(best_rate(p, single), 0.75 * peak * kTera) << gpu;
    EXPECT_LT(best_bandwidth(p, OpKind::kElementwise), 4.0e12) << gpu;
  }
}

TEST_F(ImportSharedData, SailorBackwardIsOneProductForALinearLayer) {
  // As large products of forward and backward run at nearly one rate, the backward time covers as
  // much work: the gradient of the input alone.
  const Profile p = imported(sources({"sailor/op_profiles_by_gpu.csv"}), "sailor_ops",
                             {{"gpu", "A100-40"}, {"precision", "fp16"}, {"model", "OPT-30"}});
  double forward = 0, backward = 0;
  for (const OpMeasurement& op : p.ops) {
    if (op.label != "enc-MLP-GEMM-1") continue;
    double& best = op.signature.pass == Pass::kForward ? forward : backward;
    best = std::max(best, (op.signature.work / op.time.median).value);
  }
  EXPECT_NEAR(backward / forward, 1.0, 0.15);
}

TEST_F(ImportSharedData, SailorHas17520CollectivesAnd154Sends) {
  long collectives = 0, sends = 0;
  for (const std::string gpu :
       {"A100-40", "GH-96", "V100-16", "RTX-3090", "RTX-2080", "Titan-RTX"}) {
    const Profile p =
        imported(sources({"sailor/collectives_by_gpu.csv"}), "sailor_collectives", {{"gpu", gpu}});
    EXPECT_EQ(p.stats.rows_read, 17520);
    EXPECT_FALSE(p.device_kind.empty());
    collectives += p.stats.rows_kept;
    sends += imported(sources({"sailor/p2p_bandwidth_by_gpu.csv"}), "sailor_p2p", {{"gpu", gpu}})
                 .stats.rows_kept;
    if (gpu != "RTX-3090") continue;
    // Its description: all-reduce peaks at 43.7 GB/s of payload on 2 devices (MiB), 1.7 on 8.
    double two = 0;
    for (const CollectiveMeasurement& c : p.collectives) {
      if (c.op == Collective::kAllReduce && c.ranks == 2) two = std::max(two, bus(c));
    }
    EXPECT_NEAR(two / (1 << 30), 43.7, 0.03 * 43.7);
  }
  EXPECT_EQ(collectives, 17520);
  EXPECT_EQ(sends, 154);
}

TEST_F(ImportSharedData, NeusightHas26763Kernels) {
  const std::vector<SourceText> files =
      sources({"neusight/test_linear.csv", "neusight/test_bmm.csv", "neusight/test_elem.csv",
               "neusight/train_elem.csv", "neusight/test_ln.csv", "neusight/train_ln.csv",
               "neusight/test_softmax.csv", "neusight/train_softmax.csv"});
  long kept = 0;
  for (const std::string gpu : {"NVIDIA A100-PCIE-40GB", "Tesla V100-PCIE-32GB", "Tesla T4",
                                "Tesla P100-PCIE-16GB", "Tesla P4"}) {
    const Profile p = imported(files, "neusight", {{"Device", gpu}});
    EXPECT_EQ(p.stats.rows_read, 26763);
    kept += p.stats.rows_kept;
    EXPECT_EQ(errors(p), 0);
    if (gpu == "Tesla V100-PCIE-32GB") {
      EXPECT_LT(best_bandwidth(p, OpKind::kElementwise), 900 * kGiga);
      EXPECT_GT(best_bandwidth(p, OpKind::kElementwise), 0.85 * 900 * kGiga);
      EXPECT_LT(best_rate(p, DType::kFp32), 14.1 * kTera);
    }
  }
  EXPECT_EQ(kept, 26763);
}

TEST_F(ImportSharedData, DeepbenchHas2240ProductsAnd320OfTheV100) {
  const Profile p = imported(sources({"deepbench/gemm_train.csv"}), "deepbench_gemm",
                             {{"file", "DeepBench_NV_V100.xlsx"}});
  EXPECT_EQ(p.stats.rows_read, 2240);
  EXPECT_EQ(p.stats.rows_kept, 320);
  EXPECT_EQ(p.device_kind, "v100-sxm2-16g");
  EXPECT_LT(best_rate(p, DType::kFp16), 125 * kTera);
  EXPECT_GT(best_rate(p, DType::kFp16), 0.75 * 125 * kTera);
}

TEST_F(ImportSharedData, XlaHas3750ProductsAnd660Collectives) {
  const auto products = sources({"xla_gpu_tables/matmul.csv"});
  const Profile h100 = imported(products, "xla_matmul", {{"arch", "sm_90"}});
  const Profile b200 = imported(products, "xla_matmul", {{"arch", "sm_100"}});
  const long fp8 = rows(h100, "fp8 rows of sm_90, faster than the chip's peak");
  EXPECT_EQ(h100.stats.rows_read, 3750);
  EXPECT_EQ(h100.stats.rows_kept + fp8 + b200.stats.rows_kept, 3750);
  EXPECT_LT(best_rate(h100, DType::kBf16), 989 * kTera);
  EXPECT_LT(best_rate(h100, DType::kTf32), 495 * kTera);
  EXPECT_LT(best_rate(b200, DType::kFp8), 4500 * kTera);

  const auto collectives = sources({"xla_gpu_tables/collectives.csv"});
  const Profile sm90 = imported(collectives, "xla_collectives", {{"arch", "sm_90"}});
  const Profile sm100 = imported(collectives, "xla_collectives", {{"arch", "sm_100"}});
  EXPECT_EQ(sm90.stats.rows_kept + sm100.stats.rows_kept, 660);
  // The largest reduce-scatter and all-gather of one group are of one payload, and move alike.
  Seconds scatter, gather;
  Bytes scattered, gathered;
  for (const CollectiveMeasurement& c : sm90.collectives) {
    if (c.ranks != 8) continue;
    if (c.op == Collective::kReduceScatter && c.payload > scattered) {
      scattered = c.payload;
      scatter = c.time.median;
    }
    if (c.op == Collective::kAllGather && c.payload > gathered) {
      gathered = c.payload;
      gather = c.time.median;
    }
  }
  EXPECT_EQ(scattered, gathered);
  EXPECT_NEAR(scatter / gather, 1.0, 0.2);
}

TEST_F(ImportSharedData, BigscienceHasFourLogs) {
  const Profile p = imported(sources({"bigscience_bandwidth/all_reduce_bench-32gb-n4.txt",
                                      "bigscience_bandwidth/all_reduce_bench-a100-n4.txt",
                                      "bigscience_bandwidth/n16_32gb_all_reduce_bench.txt",
                                      "bigscience_bandwidth/n1_32gb_all_reduce_bench.txt"}),
                             "");
  ASSERT_EQ(p.collectives.size(), 4U);
  const std::vector<std::pair<int, int>> groups{{16, 4}, {32, 8}, {64, 4}, {4, 4}};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(p.collectives[i].ranks, groups[i].first);
    EXPECT_EQ(p.collectives[i].ranks_per_node, groups[i].second);
    EXPECT_EQ(p.collectives[i].payload.value, 4'000'000'000);
  }
}

TEST_F(ImportSharedData, NcclTestsTablesNeedTheirRanks) {
  const auto results = sources({"nccl_tests/raw/gb200_8rank_results.txt"});
  const std::string said = testing::fault_of([&] { static_cast<void>(imported(results, "")); });
  EXPECT_NE(said.find("nothing says how many ranks"), std::string::npos) << said;
  ImportOptions options;
  options.ranks = 8;
  const Profile p = import_profile(results, "", options);
  EXPECT_EQ(p.stats.rows_kept, 33);
  EXPECT_EQ(p.collectives.size(), 33U);
  EXPECT_EQ(errors(p), 0);
  EXPECT_NEAR(bus(p.collectives.back()) / kGiga, (847.12 + 847.42) / 2, 1);
}

}  // namespace shared_data_test
}  // namespace towtank
