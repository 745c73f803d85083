// SPDX-License-Identifier: Apache-2.0
#include "profiler/analysis/op_class.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace towtank {
namespace {

using Shape = std::vector<std::int64_t>;
using Inputs = std::span<const TraceInput>;
using Signature = std::optional<OpSignature>;

struct ElementType {
  std::string_view name;
  int bytes;
  std::optional<DType> dtype;
};
/// c10/core/ScalarType.h, and the C++ names that traces before 2.0 have.
constexpr std::array kTypes{
    ElementType{"float", 4, DType::kFp32},  ElementType{"Float", 4, DType::kFp32},
    ElementType{"double", 8, DType::kFp64}, ElementType{"Double", 8, DType::kFp64},
    ElementType{"Half", 2, DType::kFp16},   ElementType{"BFloat16", 2, DType::kBf16},
    ElementType{"Float8", 1, DType::kFp8},  ElementType{"int", 4, std::nullopt},
    ElementType{"Int", 4, std::nullopt},    ElementType{"long int", 8, std::nullopt},
    ElementType{"long", 8, std::nullopt},   ElementType{"Long", 8, std::nullopt},
    ElementType{"short", 2, std::nullopt},  ElementType{"Short", 2, std::nullopt},
    ElementType{"bool", 1, std::nullopt},   ElementType{"Bool", 1, std::nullopt},
    ElementType{"Byte", 1, std::nullopt},   ElementType{"unsigned char", 1, std::nullopt},
    ElementType{"Char", 1, DType::kInt8},   ElementType{"signed char", 1, DType::kInt8},
};

const ElementType* element_type(std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  if (type.starts_with("Float8_")) type = "Float8";
  const auto at = std::find_if(kTypes.begin(), kTypes.end(),
                               [&](const ElementType& t) { return t.name == type; });
  return at == kTypes.end() ? nullptr : &*at;
}

/// Sizes beyond this are mistakes; so many bytes are nobody's tensor.
constexpr double kMostElements = 1e15;

double elements(const Shape& shape) {
  double out = 1;
  for (const std::int64_t d : shape) out *= static_cast<double>(std::max<std::int64_t>(d, 0));
  return out <= kMostElements ? out : 0;
}

/// Bytes of a tensor, or of all tensors of a list whose shapes are recorded.
double tensor_bytes(const TraceInput& input, int list_element_bytes) {
  if (!input.list.empty()) {
    double out = 0;
    for (const Shape& shape : input.list) out += elements(shape) * list_element_bytes;
    return out;
  }
  const auto size = tensor_element_bytes(input.type);
  return size && !input.shape.empty() ? elements(input.shape) * *size : 0;
}

Bytes bytes(double value) { return Bytes{static_cast<std::int64_t>(std::min(value, 4e18))}; }

/// Number format of the first floating tensor.
std::optional<DType> floating(Inputs inputs) {
  for (const TraceInput& input : inputs) {
    if (input.shape.empty()) continue;
    if (const auto dtype = tensor_dtype(input.type)) return dtype;
  }
  return std::nullopt;
}

Signature product(DType dtype, double batch, double m, double n, double k, bool backward) {
  if (!(batch * m * n > 0) || !(k > 0) || batch * m * n > kMostElements) return std::nullopt;
  const auto whole = [](double v) { return static_cast<std::int64_t>(v); };
  OpSignature out = matmul(dtype, whole(batch), whole(m), whole(n), whole(k));
  if (backward) out.pass = Pass::kInputGrad;
  return out;
}

/// (... x k)(k x n), or batches of both; `first` is the left operand.
Signature matrix_product(Inputs inputs, std::size_t first, bool backward) {
  if (inputs.size() < first + 2) return std::nullopt;
  const Shape& a = inputs[first].shape;
  const Shape& b = inputs[first + 1].shape;
  const auto dtype = tensor_dtype(inputs[first].type);
  if (!dtype || a.size() < 2 || b.size() < 2) return std::nullopt;
  const auto k = static_cast<double>(a.back()), n = static_cast<double>(b.back());
  if (b[b.size() - 2] != a.back()) return std::nullopt;
  if (b.size() == 2) return product(*dtype, 1, elements(a) / std::max(k, 1.0), n, k, backward);
  const auto m = static_cast<double>(a[a.size() - 2]);
  return product(*dtype, elements(b) / std::max(n * k, 1.0), m, n, k, backward);
}

/// Strides, paddings and dilations beyond this are mistakes.
constexpr std::int64_t kMostOfWindow = 1000;

/// "[2, 2]" -> {2, 2}
std::vector<std::int64_t> integers(std::string_view text) {
  std::vector<std::int64_t> out;
  while (true) {
    const std::size_t first = text.find_first_of("0123456789");
    if (first == std::string_view::npos) return out;
    text.remove_prefix(first);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return out;
    out.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

/// The product that computes a convolution: weight is [out, in / groups, window...].
Signature convolution(DType dtype, const Shape& weight, double input, double output, double points,
                      double groups, bool backward) {
  if (weight.size() < 3 || !(groups >= 1)) return std::nullopt;
  double window = 1;
  for (std::size_t i = 1; i < weight.size(); ++i) window *= static_cast<double>(weight[i]);
  Signature out =
      product(dtype, groups, points, static_cast<double>(weight[0]) / groups, window, backward);
  if (!out) return out;
  out->kind = OpKind::kConvolution;
  out->traffic = bytes((input + output + elements(weight)) * bytes_per_element(dtype));
  return out;
}

/// Where the backends have the lists of strides, paddings and dilations, and the groups.
struct ConvolutionForm {
  std::string_view name;
  std::size_t stride, padding, dilation, groups;
};
/// aten/src/ATen/native/native_functions.yaml
constexpr std::array kConvolutions{
    ConvolutionForm{"aten::convolution", 3, 4, 5, 8},
    ConvolutionForm{"aten::_convolution", 3, 4, 5, 8},
    ConvolutionForm{"aten::convolution_overrideable", 3, 4, 5, 8},
    ConvolutionForm{"aten::cudnn_convolution", 3, 2, 4, 5},
    ConvolutionForm{"aten::miopen_convolution", 4, 3, 5, 6},
    ConvolutionForm{"aten::mkldnn_convolution", 4, 3, 5, 6},
};

Signature convolution_forward(std::string_view name, Inputs inputs) {
  const auto form = std::find_if(kConvolutions.begin(), kConvolutions.end(),
                                 [&](const ConvolutionForm& f) { return f.name == name; });
  if (form == kConvolutions.end() || inputs.size() <= form->groups) return std::nullopt;
  const Shape& in = inputs[0].shape;
  const Shape& weight = inputs[1].shape;
  const auto dtype = tensor_dtype(inputs[0].type);
  const auto stride = integers(inputs[form->stride].value);
  const auto padding = integers(inputs[form->padding].value);
  const auto dilation = integers(inputs[form->dilation].value);
  const auto groups = integers(inputs[form->groups].value);
  const std::size_t spatial = in.size() < 2 ? 0 : in.size() - 2;
  if (!dtype || spatial == 0 || weight.size() != in.size() || stride.size() != spatial ||
      padding.size() != spatial || dilation.size() != spatial || groups.size() != 1) {
    return std::nullopt;
  }
  if (!(elements(in) > 0) || !(elements(weight) > 0)) return std::nullopt;
  auto points = static_cast<double>(in[0]);
  for (std::size_t i = 0; i < spatial; ++i) {
    if (std::max({stride[i], padding[i], dilation[i]}) > kMostOfWindow) return std::nullopt;
    const std::int64_t reach = dilation[i] * (weight[i + 2] - 1);
    if (stride[i] < 1) return std::nullopt;
    const std::int64_t places = (in[i + 2] + 2 * padding[i] - reach - 1) / stride[i] + 1;
    points *= static_cast<double>(places);
  }
  return convolution(*dtype, weight, elements(in), points * static_cast<double>(weight[0]), points,
                     static_cast<double>(groups[0]), false);
}

/// (gradient of the output, input, weight, ..., which gradients are wanted)
Signature convolution_backward(Inputs inputs) {
  if (inputs.size() < 3) return std::nullopt;
  const Shape& out = inputs[0].shape;
  const auto dtype = tensor_dtype(inputs[0].type);
  if (!dtype || out.size() < 3 || out[1] < 1 || inputs[2].shape.empty()) return std::nullopt;
  const std::string_view mask = inputs.back().value;
  const bool both = !mask.starts_with("[False") && mask.find(", False,") == std::string_view::npos;
  double groups = 1;
  if (inputs.size() > 9) {
    const auto stated = integers(inputs[9].value);
    if (stated.size() == 1) groups = static_cast<double>(stated[0]);
  }
  Signature sum = convolution(*dtype, inputs[2].shape, elements(inputs[1].shape), elements(out),
                              elements(out) / static_cast<double>(out[1]), groups, true);
  if (sum && both) {
    sum->batch *= 2;
    sum->work = 2.0 * sum->work;
    sum->traffic = 2 * sum->traffic;
  }
  return sum;
}

/// Query, key and value at `first`: [batch, heads, length, width], or [batch, length, heads, width]
/// where `heads_last`.
Signature attention(Inputs inputs, std::size_t first, bool heads_last, bool causal, bool backward) {
  if (inputs.size() < first + 3) return std::nullopt;
  const Shape& q = inputs[first].shape;
  const Shape& k = inputs[first + 1].shape;
  const Shape& v = inputs[first + 2].shape;
  const auto dtype = tensor_dtype(inputs[first].type);
  if (!dtype || q.size() != 4 || k.size() != 4 || v.size() != 4) return std::nullopt;
  if (!(elements(q) > 0) || !(elements(k) > 0) || !(elements(v) > 0)) return std::nullopt;
  const std::size_t length = heads_last ? 1 : 2, heads = heads_last ? 2 : 1;
  OpSignature s;
  s.kind = OpKind::kAttention;
  s.dtype = *dtype;
  s.causal = causal;
  s.batch = q[0] * q[heads];
  s.m = q[length];
  s.n = k[length];
  s.k = q[3];
  const double scores = static_cast<double>(s.batch) * static_cast<double>(s.m) *
                        static_cast<double>(s.n) * static_cast<double>(s.k);
  if (!(scores > 0) || scores > kMostElements) return std::nullopt;
  s.work = Flop{4 * scores * (causal ? 0.5 : 1.0)};
  s.traffic = bytes((2 * elements(q) + elements(k) + elements(v)) * bytes_per_element(*dtype));
  if (backward) {
    s.pass = Pass::kInputGrad;
    s.work = 2.5 * s.work;  // five products for two
    s.traffic = 2 * s.traffic;
  }
  return s;
}

bool is_true(Inputs inputs, std::size_t at) {
  return at < inputs.size() && inputs[at].value == "True";
}

Signature any_attention(std::string_view name, Inputs inputs) {
  if (name == "aten::_flash_attention_forward") {
    return attention(inputs, 0, true, is_true(inputs, 8), false);
  }
  if (name == "aten::_flash_attention_backward") {
    return attention(inputs, 1, true, is_true(inputs, 11), true);
  }
  if (name == "aten::_efficient_attention_forward") {
    return attention(inputs, 0, true,
                     !inputs.empty() && inputs.size() > 9 && inputs[9].value == "1", false);
  }
  if (name == "aten::_scaled_dot_product_flash_attention") {
    return attention(inputs, 0, false, is_true(inputs, 4), false);
  }
  if (name == "aten::_scaled_dot_product_efficient_attention" ||
      name == "aten::_scaled_dot_product_cudnn_attention") {
    return attention(inputs, 0, false, is_true(inputs, 6), false);
  }
  if (name == "aten::_scaled_dot_product_flash_attention_backward") {
    return attention(inputs, 1, false, is_true(inputs, 11), true);
  }
  return std::nullopt;
}

Signature moving(OpKind kind, Inputs inputs, double traffic, bool backward) {
  const auto dtype = floating(inputs);
  if (!dtype || !(traffic > 0)) return std::nullopt;
  OpSignature out = memory_op(kind, *dtype, bytes(traffic));
  if (backward) out.pass = Pass::kInputGrad;
  return out;
}

/// `passes` over the widest input.
Signature passes_over(OpKind kind, Inputs inputs, double passes, bool backward) {
  double widest = 0;
  for (const TraceInput& input : inputs) widest = std::max(widest, tensor_bytes(input, 0));
  return moving(kind, inputs, passes * widest, backward);
}

Signature norm(std::string_view name, Inputs inputs) {
  const bool backward = name.ends_with("_backward");
  // Forward: reads once, writes once. Backward: reads input and gradient, writes a gradient.
  return passes_over(OpKind::kNorm, inputs, backward ? 3 : 2, backward);
}

/// Rows of a table [rows, width] by indices.
Signature embedding(Inputs inputs, std::size_t indices, bool backward) {
  if (inputs.size() <= indices || inputs[0].shape.size() != 2) return std::nullopt;
  const auto size = tensor_element_bytes(inputs[0].type);
  if (!size) return std::nullopt;
  const double rows = elements(inputs[indices].shape);
  return moving(OpKind::kEmbedding, inputs,
                2 * rows * static_cast<double>(inputs[0].shape[1]) * *size, backward);
}

constexpr std::array<std::string_view, 54> kElementwise{"add",
                                                        "sub",
                                                        "mul",
                                                        "div",
                                                        "relu",
                                                        "clamp_min",
                                                        "clamp",
                                                        "gelu",
                                                        "silu",
                                                        "sigmoid",
                                                        "tanh",
                                                        "exp",
                                                        "log",
                                                        "pow",
                                                        "sqrt",
                                                        "rsqrt",
                                                        "neg",
                                                        "cos",
                                                        "sin",
                                                        "abs",
                                                        "where",
                                                        "masked_fill",
                                                        "native_dropout",
                                                        "bernoulli",
                                                        "copy",
                                                        "fill",
                                                        "zero",
                                                        "cat",
                                                        "eq",
                                                        "ne",
                                                        "lt",
                                                        "gt",
                                                        "le",
                                                        "ge",
                                                        "addcmul",
                                                        "addcdiv",
                                                        "lerp",
                                                        "sum",
                                                        "mean",
                                                        "hardtanh",
                                                        "leaky_relu",
                                                        "elu",
                                                        "maximum",
                                                        "minimum",
                                                        "logical_and",
                                                        "logical_or",
                                                        "logical_not",
                                                        "bitwise_not",
                                                        "bitwise_and",
                                                        "threshold_backward",
                                                        "square",
                                                        "reciprocal",
                                                        "floor_divide",
                                                        "rsub"};

/// Reads each tensor, writes one as wide as the widest.
Signature elementwise(std::string_view name, Inputs inputs, bool backward) {
  if (!name.starts_with("aten::")) return std::nullopt;
  name.remove_prefix(6);
  if (name.ends_with("_backward") && name != "threshold_backward") {
    name.remove_suffix(9);
    backward = true;
  }
  if (name.ends_with("_")) name.remove_suffix(1);
  if (std::find(kElementwise.begin(), kElementwise.end(), name) == kElementwise.end()) {
    return std::nullopt;
  }
  const auto dtype = floating(inputs);
  const int list_bytes = dtype ? static_cast<int>(bytes_per_element(*dtype)) : 0;
  double read = 0, widest = 0;
  for (const TraceInput& input : inputs) {
    const double size = tensor_bytes(input, list_bytes);
    read += size;
    widest = std::max(widest, size);
  }
  const bool reads_nothing = name == "fill" || name == "zero" || name == "bernoulli";
  const bool writes_little = name == "sum" || name == "mean";
  // The target of a copy stands among its inputs.
  const double traffic = reads_nothing                     ? widest
                         : writes_little || name == "copy" ? read
                                                           : read + widest;
  return moving(OpKind::kElementwise, inputs, traffic, backward);
}

bool is_norm(std::string_view name) {
  if (name.ends_with("_backward")) name.remove_suffix(9);
  return name.ends_with("layer_norm") || name.ends_with("batch_norm") ||
         name.ends_with("group_norm") || name.ends_with("rms_norm");
}

Signature loss_or_softmax(std::string_view name, Inputs inputs) {
  const bool backward = name.find("_backward") != std::string_view::npos;
  if (name.starts_with("aten::_log_softmax") || name.starts_with("aten::nll_loss")) {
    return passes_over(OpKind::kCrossEntropy, inputs, backward ? 3 : 2, backward);
  }
  if (!name.starts_with("aten::_softmax")) return std::nullopt;
  const bool scores = !inputs.empty() && inputs[0].shape.size() == 4;
  Signature out = passes_over(scores ? OpKind::kAttention : OpKind::kElementwise, inputs,
                              backward ? 3 : 2, backward);
  if (out && scores) out->fused = false;
  return out;
}

}  // namespace

std::optional<DType> tensor_dtype(std::string_view type) {
  const ElementType* known = element_type(type);
  return known == nullptr ? std::nullopt : known->dtype;
}

std::optional<int> tensor_element_bytes(std::string_view type) {
  const ElementType* known = element_type(type);
  if (known == nullptr) return std::nullopt;
  return known->bytes;
}

std::optional<OpSignature> op_signature(std::string_view name, Inputs inputs, bool backward) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::matmul") {
    return matrix_product(inputs, 0, backward);
  }
  if (name == "aten::addmm" || name == "aten::baddbmm") return matrix_product(inputs, 1, backward);
  if (name == "aten::convolution_backward" || name == "aten::cudnn_convolution_backward" ||
      name == "aten::miopen_convolution_backward") {
    return convolution_backward(inputs);
  }
  if (name.find("convolution") != std::string_view::npos) return convolution_forward(name, inputs);
  if (Signature s = any_attention(name, inputs)) return s;
  if (is_norm(name)) return norm(name, inputs);
  if (name == "aten::embedding") return embedding(inputs, 1, false);
  if (name == "aten::index_select") return embedding(inputs, 2, backward);
  if (Signature s = loss_or_softmax(name, inputs)) return s;
  return elementwise(name, inputs, backward);
}

}  // namespace towtank
