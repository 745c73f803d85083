// SPDX-License-Identifier: Apache-2.0
// Op costs of uncalibrated devices against published measurements. The tables were looked at when
// the documented constants were chosen: these tests guard them, they are no measure of accuracy.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "model/cost/analytic.h"
#include "platforms/catalogue.h"
#include "tests/model/cost/data_rows.h"
#include "tests/model/cost/devices.h"

namespace towtank::analytic_oracles_test {

using testing::attention_core;
using testing::rate_of;

/// The first device kind of a catalogue platform.
DeviceKind device_on(const std::string& platform) {
  return load_platform(platform).device_kinds[DeviceKindId{0}];
}

// oracles.md, matmul ceilings (best shape): never above, and large products within 20 % below.
TEST(ValidateProducts, ReachTheirCeilings) {
  struct Row {
    const char* platform;
    std::int64_t m, n, k;
    double ceiling;
  };
  constexpr std::array rows{Row{"dgx-a100-80g", 1024, 10240, 5120, 271.2e12},
                            Row{"dgx-h100", 2048, 2048, 13312, 794.5e12},
                            Row{"gh200x4-slingshot", 1024, 15360, 4096, 828.6e12},
                            Row{"dgx-b200", 1792, 16128, 3072, 1745e12},
                            Row{"mi300x-8x400g", 10240, 15360, 8192, 668.4e12}};
  for (const Row& row : rows) {
    const double rate =
        rate_of(matmul(DType::kBf16, 1, row.m, row.n, row.k), device_on(row.platform));
    EXPECT_LT(rate, row.ceiling) << row.platform;
    EXPECT_GT(rate, 0.8 * row.ceiling) << row.platform;
  }
}

// DeepBench, V100, fp16 in and fp32 sums: 4096 x 7000 x 4096 at 112 TFLOP/s.
TEST(ValidateProducts, V100InHalfPrecision) {
  const double rate =
      rate_of(matmul(DType::kFp16, 1, 4096, 7000, 4096), device_on("jean-zay-v100"));
  EXPECT_NEAR(rate, 112e12, 0.15 * 112e12);
}

// FlashAttention-3 on H100, heads 128 wide, not causal (pytorch/benchmark pull 2391; backward:
// facebookexperimental/triton pull 3463). Lone kernels run at higher clocks than training: 25 %.
TEST(ValidateAttention, FusedOnH100) {
  struct Row {
    std::int64_t batch_heads, keys;
    Pass pass;
    double rate;
  };
  constexpr std::array rows{
      Row{512, 512, Pass::kForward, 430e12}, Row{128, 2048, Pass::kForward, 566e12},
      Row{16, 16384, Pass::kForward, 621e12}, Row{192, 1024, Pass::kInputGrad, 313e12},
      Row{192, 8192, Pass::kInputGrad, 561e12}};
  for (const Row& row : rows) {
    const OpSignature op = attention_core({row.batch_heads, row.keys, 128}, false, true, row.pass);
    EXPECT_NEAR(rate_of(op, device_on("dgx-h100")), row.rate, 0.25 * row.rate) << row.keys;
  }
}

// The same benchmark without a fused kernel, heads 64 wide: 50 TFLOP/s forward and 65 backward at
// 2k keys (flash-attention pull 2688, counted as 2.5 forwards). Its softmax is not fused either.
TEST(ValidateAttention, UnfusedIsBoundByItsScores) {
  const DeviceKind device = device_on("dgx-h100");
  const double forward = rate_of(attention_core({256, 2048, 64}, false, false), device);
  EXPECT_GT(forward, 50e12);
  EXPECT_LT(forward, 2 * 50e12);
  EXPECT_GT(rate_of(attention_core({256, 2048, 64}, false, true), device), 3 * forward);
}

struct LlamaShape {
  std::string file;
  std::int64_t hidden, width, heads, kv_heads;
};

// Vidur: the four products of a layer by tokens and tensor degree.
void expect_products(const LlamaShape& shape, const std::string& platform, double mean,
                     double bias) {
  const auto rows = testing::data_rows("vidur/compute/" + shape.file);
  SKIP_WITHOUT_ROWS(rows, shape.file);
  const AnalyticCostModel model(device_on(platform), testing::lone_view());
  testing::LogError error;
  for (const auto& row : rows) {
    const std::int64_t tokens = std::stoll(row.at("num_tokens"));
    const std::int64_t t = std::stoll(row.at("num_tensor_parallel_workers"));
    if (tokens < 128) continue;
    const std::int64_t qkv = shape.hidden + 2 * shape.kv_heads * (shape.hidden / shape.heads);
    struct Product {
      const char* name;
      std::int64_t n, k;
    };
    for (const Product& p : {Product{"attn_pre_proj", qkv / t, shape.hidden},
                             Product{"attn_post_proj", shape.hidden, shape.hidden / t},
                             Product{"mlp_up_proj", 2 * shape.width / t, shape.hidden},
                             Product{"mlp_down_proj", shape.hidden, shape.width / t}}) {
      const std::string cell = row.at("time_stats." + std::string(p.name) + ".median");
      if (cell.empty()) continue;
      error.add(model.op(matmul(DType::kBf16, 1, tokens, p.n, p.k)).time.value,
                std::stod(cell) * 1e-3);
    }
  }
  EXPECT_GT(error.count, 3000);
  EXPECT_LT(error.mean(), mean);
  EXPECT_NEAR(error.bias(), 0.0, bias);
}

TEST(ValidateProducts, VidurA100) {
  expect_products({"a100_Llama-2-7b-hf_mlp.csv", 4096, 11008, 32, 32}, "dgx-a100-80g", 0.12, 0.06);
  expect_products({"a100_Llama-2-70b-hf_mlp.csv", 8192, 28672, 64, 8}, "dgx-a100-80g", 0.12, 0.06);
}

TEST(ValidateProducts, VidurH100) {
  expect_products({"h100_Llama-2-7b-hf_mlp.csv", 4096, 11008, 32, 32}, "dgx-h100", 0.14, 0.08);
  expect_products({"h100_Llama-2-70b-hf_mlp.csv", 8192, 28672, 64, 8}, "dgx-h100", 0.14, 0.08);
}

// XLA's table of H100-class products of 1024 and more a side.
TEST(ValidateProducts, XlaH100) {
  const auto rows = testing::data_rows("xla_gpu_tables/matmul.csv");
  SKIP_WITHOUT_ROWS(rows, "xla_gpu_tables/matmul.csv");
  const AnalyticCostModel model(device_on("dgx-h100"), testing::lone_view());
  testing::LogError error;
  for (const auto& row : rows) {
    if (row.at("arch") != "sm_90" || row.at("dtypes") != "bf16xbf16->bf16") continue;
    const auto extent = [&](const char* name) { return std::stoll(row.at(name)); };
    const OpSignature op =
        matmul(DType::kBf16, extent("batch"), extent("m"), extent("n"), extent("k"));
    if (std::min({op.m, op.n, op.k}) < 1024) continue;
    error.add(model.op(op).time.value, op.work.value / std::stod(row.at("flop_per_s")));
  }
  EXPECT_GT(error.count, 50);
  EXPECT_LT(error.mean(), 0.2);
}

}  // namespace towtank::analytic_oracles_test
