// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bytes that tensors hold on this process, by what they are for. Counted in torch's own allocator
/// hook: exact, with nothing that a library allocates elsewhere.
///
/// A tensor belongs to the category that is current on its thread when it is made; threads start
/// with kBuffers, since Gloo's own are the only others.
#include <array>
#include <cstdint>
#include <string_view>

namespace towtank {

enum class MemoryKind { kBuffers, kParameters, kGradients, kOptimizer, kActivations, kWorking };
inline constexpr std::size_t kMemoryKinds = 6;
inline constexpr std::array<std::string_view, kMemoryKinds> kMemoryNames{
    "buffers", "parameters", "gradients", "optimizer", "activations", "working"};

/// By category at the moment when the total was largest.
struct MemoryPeak {
  std::array<std::int64_t, kMemoryKinds> bytes{};
  std::int64_t total = 0;
};

/// Replaces torch's CPU allocator for the rest of the process. Call before the first tensor.
void install_memory_meter();
/// Forgets the peak: the next one is at least what is held now.
void reset_memory_peak();
[[nodiscard]] MemoryPeak memory_peak();

class MemoryScope {
 public:
  explicit MemoryScope(MemoryKind);
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
  ~MemoryScope();

 private:
  MemoryKind before_;
};

}  // namespace towtank
