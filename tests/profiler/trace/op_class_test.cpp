// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/op_class.h"

#include <gtest/gtest.h>

namespace towtank {
namespace op_class_test {

TraceInput tensor(std::vector<std::int64_t> shape, std::string type = "c10::BFloat16") {
  TraceInput out;
  out.shape = std::move(shape);
  out.type = std::move(type);
  return out;
}
TraceInput value(std::string text) {
  TraceInput out;
  out.type = "ScalarList";
  out.value = std::move(text);
  return out;
}
std::optional<OpSignature> of(std::string_view name, const std::vector<TraceInput>& inputs,
                              bool backward = false) {
  return op_signature(name, inputs, backward);
}

TEST(UnitOpClass, KnowsTypesInBothSpellings) {
  EXPECT_EQ(tensor_dtype("c10::BFloat16"), DType::kBf16);
  EXPECT_EQ(tensor_dtype("BFloat16"), DType::kBf16);
  EXPECT_EQ(tensor_dtype("c10::Float8_e4m3fn"), DType::kFp8);
  EXPECT_EQ(tensor_dtype("long int"), std::nullopt);
  EXPECT_EQ(tensor_element_bytes("long int"), 8);
  EXPECT_EQ(tensor_element_bytes("TensorList"), std::nullopt);
}

TEST(UnitOpClass, Products) {
  const auto mm = of("aten::mm", {tensor({64, 32}), tensor({32, 16})});
  ASSERT_TRUE(mm);
  EXPECT_EQ(mm->kind, OpKind::kMatmul);
  EXPECT_EQ(mm->m, 64);
  EXPECT_EQ(mm->n, 16);
  EXPECT_EQ(mm->k, 32);
  EXPECT_DOUBLE_EQ(mm->work.value, 2.0 * 64 * 16 * 32);
  EXPECT_EQ(mm->traffic, (Bytes{2 * (64 * 32 + 32 * 16 + 64 * 16)}));
  const auto addmm = of("aten::addmm", {tensor({16}), tensor({64, 32}), tensor({32, 16})}, true);
  ASSERT_TRUE(addmm);
  EXPECT_EQ(addmm->pass, Pass::kInputGrad);
  EXPECT_EQ(addmm->k, 32);
  const auto bmm = of("aten::bmm", {tensor({8, 64, 32}), tensor({8, 32, 16})});
  ASSERT_TRUE(bmm);
  EXPECT_EQ(bmm->batch, 8);
  EXPECT_EQ(bmm->m, 64);
  EXPECT_FALSE(of("aten::mm", {tensor({64, 32}), tensor({33, 16})}));
  EXPECT_FALSE(of("aten::mm", {tensor({64, 32}, "long int"), tensor({32, 16}, "long int")}));
  EXPECT_FALSE(of("aten::mm", {}));
}

/// 10 images of 256 x 14 x 14 by 512 filters of 3 x 3, stride 2, padding 1: 7 x 7 points each.
TEST(UnitOpClass, Convolutions) {
  const std::vector<TraceInput> inputs{tensor({10, 256, 14, 14}),
                                       tensor({512, 256, 3, 3}),
                                       value(""),
                                       value("[2, 2]"),
                                       value("[1, 1]"),
                                       value("[1, 1]"),
                                       value("False"),
                                       value("[0, 0]"),
                                       value("1")};
  const auto forward = of("aten::convolution", inputs);
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->kind, OpKind::kConvolution);
  EXPECT_EQ(forward->m, 10 * 7 * 7);
  EXPECT_EQ(forward->n, 512);
  EXPECT_EQ(forward->k, 256 * 3 * 3);
  EXPECT_DOUBLE_EQ(forward->work.value, 2.0 * 490 * 512 * 2304);
  const std::vector<TraceInput> gradients{tensor({10, 512, 7, 7}),
                                          tensor({10, 256, 14, 14}),
                                          tensor({512, 256, 3, 3}),
                                          value("[0]"),
                                          value("[2, 2]"),
                                          value("[1, 1]"),
                                          value("[1, 1]"),
                                          value("False"),
                                          value("[0, 0]"),
                                          value("1"),
                                          value("[True, True, False]")};
  const auto backward = of("aten::convolution_backward", gradients, true);
  ASSERT_TRUE(backward);
  EXPECT_EQ(backward->batch, 2);
  EXPECT_DOUBLE_EQ(backward->work.value, 2 * forward->work.value);
}

TEST(UnitOpClass, AttentionAndItsSoftmax) {
  const auto flash =
      of("aten::_flash_attention_forward",
         {tensor({2, 128, 16, 64}), tensor({2, 128, 16, 64}), tensor({2, 128, 16, 64}), value(""),
          value(""), value("128"), value("128"), value("0."), value("True")});
  ASSERT_TRUE(flash);
  EXPECT_EQ(flash->batch, 32);
  EXPECT_TRUE(flash->causal);
  EXPECT_DOUBLE_EQ(flash->work.value, 0.5 * 4 * 32 * 128 * 128 * 64);
  const auto softmax = of("aten::_softmax", {tensor({2, 16, 128, 128})});
  ASSERT_TRUE(softmax);
  EXPECT_EQ(softmax->kind, OpKind::kAttention);
  EXPECT_FALSE(softmax->fused);
}

TEST(UnitOpClass, MemoryBoundOps) {
  const auto add = of("aten::add_", {tensor({4, 8}), tensor({4, 8}), value("1")});
  ASSERT_TRUE(add);
  EXPECT_EQ(add->traffic, Bytes{3 * 64});
  const auto bias = of("aten::add", {tensor({4, 8}), tensor({8}), value("1")});
  EXPECT_EQ(bias->traffic, Bytes{64 + 16 + 64});
  const auto cast = of("aten::copy_", {tensor({4, 8}), tensor({4, 8}, "float")});
  EXPECT_EQ(cast->traffic, Bytes{64 + 128});
  const auto norm = of("aten::native_layer_norm_backward", {tensor({4, 8}), tensor({4, 8})}, true);
  EXPECT_EQ(norm->kind, OpKind::kNorm);
  EXPECT_EQ(norm->traffic, Bytes{3 * 64});
  const auto rows = of("aten::embedding", {tensor({1000, 64}), tensor({2, 10}, "long int")});
  EXPECT_EQ(rows->kind, OpKind::kEmbedding);
  EXPECT_EQ(rows->traffic, Bytes{2 * 20 * 64 * 2});
  EXPECT_FALSE(of("aten::topk", {tensor({4, 8})}));
  EXPECT_FALSE(of("triton_fused", {tensor({4, 8})}));
}

/// Shapes of a broken trace are no reason to overflow.
TEST(LawOpClass, AbsurdShapesHaveNoSignature) {
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_FALSE(of("aten::mm", {tensor({huge, huge}), tensor({huge, huge})}));
  EXPECT_FALSE(of("aten::add", {tensor({huge, huge}), tensor({huge, huge})}));
  EXPECT_FALSE(of("aten::mm", {tensor({-4, -4}), tensor({-4, -4})}));
  EXPECT_FALSE(
      of("aten::_flash_attention_forward", {tensor({huge, 2, huge, 2}), tensor({huge, 2, huge, 2}),
                                            tensor({huge, 2, huge, 2}), value("")}));
}

}  // namespace op_class_test
}  // namespace towtank
