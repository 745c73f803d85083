// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Devices by datasheet, and ops, for tests of op costs.
#include <cstdint>
#include <string>
#include <utility>

#include "model/cost/analytic.h"

namespace towtank::testing {

[[nodiscard]] inline DeviceKind device_of(std::string generation, double vector_peak,
                                          double memory_bandwidth, int multiprocessors) {
  DeviceKind d;
  d.name = generation + " device";
  d.generation = std::move(generation);
  d.vector_peak = {vector_peak};
  d.memory_bandwidth = {memory_bandwidth};
  d.multiprocessors = multiprocessors;
  return d;
}
inline void set_peak(DeviceKind& device, DType dtype, double peak) {
  device.peak[static_cast<std::size_t>(dtype)] = FlopPerSecond{peak};
}

[[nodiscard]] inline DeviceKind v100() {
  DeviceKind d = device_of("volta", 15.7e12, 0.9e12, 80);
  set_peak(d, DType::kFp16, 125e12);
  return d;
}
[[nodiscard]] inline DeviceKind a100() {
  DeviceKind d = device_of("ampere", 19.5e12, 2.039e12, 108);
  set_peak(d, DType::kFp16, 312e12);
  set_peak(d, DType::kBf16, 312e12);
  return d;
}
[[nodiscard]] inline DeviceKind h100() {
  DeviceKind d = device_of("hopper", 66.9e12, 3.35e12, 132);
  set_peak(d, DType::kFp16, 989.4e12);
  set_peak(d, DType::kBf16, 989.4e12);
  set_peak(d, DType::kFp8, 1978.9e12);
  return d;
}

/// A lone device.
[[nodiscard]] inline NetworkView lone_view() {
  NetworkView view;
  view.levels.resize(1);
  view.levels[0].bandwidth = {1e9};
  return view;
}

[[nodiscard]] inline double seconds_of(const OpSignature& op, const DeviceKind& device) {
  return AnalyticCostModel(device, lone_view()).op(op).time.value;
}
/// FLOP/s that an op reaches, launch included.
[[nodiscard]] inline double rate_of(const OpSignature& op, const DeviceKind& device) {
  return op.work.value / seconds_of(op, device);
}

struct CoreShape {
  std::int64_t batch_heads = 1, keys = 1, width = 128;
};
/// An attention core as many queries as keys: 4 q k d FLOP in full, half of them under a fused
/// causal mask; unfused, `passes` over its scores are in the traffic.
[[nodiscard]] inline OpSignature attention_core(const CoreShape& shape, bool causal, bool fused,
                                                Pass pass = Pass::kForward) {
  OpSignature s;
  s.kind = OpKind::kAttention;
  s.pass = pass;
  s.causal = causal;
  s.fused = fused;
  s.batch = shape.batch_heads;
  s.m = s.n = shape.keys;
  s.k = shape.width;
  const auto heads = static_cast<double>(shape.batch_heads);
  const auto keys = static_cast<double>(shape.keys);
  const auto width = static_cast<double>(shape.width);
  const double backward = fused ? 2.5 : 2.0;
  const double kept = causal && fused ? 0.5 : 1.0;
  s.work = {(pass == Pass::kForward ? 1.0 : backward) * kept * 4.0 * heads * keys * keys * width};
  const double passes = pass == Pass::kForward ? 4.0 : 7.0;
  const double tensors = pass == Pass::kForward ? 4.0 : 8.0;
  s.traffic = bytes_from(2.0 * heads * keys * (tensors * width + (fused ? 0.0 : passes * keys)));
  s.kernels = fused ? 1 : 4;
  return s;
}

}  // namespace towtank::testing
