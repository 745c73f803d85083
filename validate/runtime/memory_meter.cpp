// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/memory_meter.h"

#include "profiler/collect/torch_compat.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace towtank {
namespace {

thread_local MemoryKind current = MemoryKind::kBuffers;

struct Totals {
  std::mutex mutex;
  std::array<std::int64_t, kMemoryKinds> bytes{};
  std::int64_t total = 0;
  MemoryPeak peak;
};

/// Never destroyed: tensors of static objects are freed after everything else.
Totals& totals() {
  static Totals& all = *new Totals;
  return all;
}

void count(MemoryKind kind, std::int64_t bytes) {
  Totals& t = totals();
  const std::lock_guard<std::mutex> lock(t.mutex);
  t.bytes[static_cast<std::size_t>(kind)] += bytes;
  t.total += bytes;
  if (t.total > t.peak.total) t.peak = {t.bytes, t.total};
}

/// Stands before the tensor's bytes, as long as their alignment.
struct alignas(64) Header {
  std::int64_t bytes = 0;
  MemoryKind kind = MemoryKind::kBuffers;
};

void release(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  count(header->kind, -header->bytes);
  std::free(header);
}

class MeteredAllocator final : public c10::Allocator {
 public:
  // Allocation is const in torch 1.13 and not in a current one.
#if TOWTANK_ALLOCATE_IS_CONST
  c10::DataPtr allocate(std::size_t n) const override { return make(n); }
#else
  c10::DataPtr allocate(std::size_t n) override { return make(n); }
  void copy_data(void* to, const void* from, std::size_t n) const override {
    default_copy_data(to, from, n);
  }
#endif
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static c10::DataPtr make(std::size_t n) {
    if (n == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    const std::size_t whole = (n + 2 * sizeof(Header) - 1) / sizeof(Header) * sizeof(Header);
    void* raw = std::aligned_alloc(alignof(Header), whole);
    if (raw == nullptr) throw std::bad_alloc();
    auto* header = new (raw) Header{static_cast<std::int64_t>(n), current};
    count(header->kind, header->bytes);
    void* data = header + 1;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
};

}  // namespace

void install_memory_meter() {
  static MeteredAllocator& allocator = *new MeteredAllocator;
  constexpr std::uint8_t kAboveTorchs = 255;
  c10::SetAllocator(c10::DeviceType::CPU, &allocator, kAboveTorchs);
}

void reset_memory_peak() {
  Totals& t = totals();
  const std::lock_guard<std::mutex> lock(t.mutex);
  t.peak = {t.bytes, t.total};
}

MemoryPeak memory_peak() {
  Totals& t = totals();
  const std::lock_guard<std::mutex> lock(t.mutex);
  return t.peak;
}

MemoryScope::MemoryScope(MemoryKind kind) : before_(current) { current = kind; }
MemoryScope::~MemoryScope() { current = before_; }

}  // namespace towtank
