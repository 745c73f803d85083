// SPDX-License-Identifier: Apache-2.0
// Lays out records as the headers at hand do, has libcupti walk them, and compares what is read:
// needs the library, but neither a driver nor a GPU. Exit: 0 as expected, 1 not, 77 no library.
#include <cupti.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "profiler/collect/cupti_library.h"

namespace {

#if CUPTI_API_VERSION >= 130000
using NewestKernel = CUpti_ActivityKernel10;
#else
using NewestKernel = CUpti_ActivityKernel9;
#endif

template <class Record>
void append(std::vector<std::uint64_t>& buffer, const Record& record) {
  const std::size_t at = buffer.size();
  buffer.resize(at + (sizeof(Record) + 7) / 8);
  std::memcpy(buffer.data() + at, &record, sizeof(Record));
}

bool same(const char* what, std::uint64_t expected, std::uint64_t got) {
  if (expected == got) return true;
  std::printf("%s: expected %llu, read %llu\n", what, static_cast<unsigned long long>(expected),
              static_cast<unsigned long long>(got));
  return false;
}

std::vector<std::uint64_t> records() {
  std::vector<std::uint64_t> buffer;
  NewestKernel kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = 100;
  kernel.end = 175;
  kernel.deviceId = 1;
  kernel.contextId = 2;
  kernel.streamId = 7;
  kernel.correlationId = 42;
  kernel.graphId = 5;
  kernel.graphNodeId = 6;
  kernel.name = "some_kernel";
  append(buffer, kernel);
  CUpti_ActivityExternalCorrelation mark{};
  mark.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  mark.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  mark.externalId = 1234;
  mark.correlationId = 42;
  append(buffer, mark);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 4096;
  set.start = 200;
  set.end = 210;
  set.correlationId = 43;
  append(buffer, set);
  return buffer;
}

}  // namespace

int main() {
  auto loaded = towtank::load_cupti();
  if (auto* why = std::get_if<std::string>(&loaded)) {
    std::puts(why->c_str());
    return 77;
  }
  std::vector<std::uint64_t> buffer = records();
  towtank::ActivitySink sink(100);
  std::get<towtank::CuptiLibrary>(loaded).read(std::as_writable_bytes(std::span(buffer)), sink);
  const towtank::ActivityRecording& r = sink.recording();
  bool good = same("activities", 2, r.activities.size()) && same("marks", 1, r.links.size()) &&
              same("unreadable", 0, static_cast<std::uint64_t>(r.unreadable));
  if (!good) return 1;
  const towtank::Activity& k = r.activities[0];
  good = same("start", 100, static_cast<std::uint64_t>(k.start_ns)) &&
         same("end", 175, static_cast<std::uint64_t>(k.end_ns)) && same("device", 1, k.device) &&
         same("context", 2, k.context) && same("stream", 7, k.stream) &&
         same("correlation", 42, k.correlation) && same("graph", 5, k.graph) &&
         same("graph node", 6, k.graph_node) &&
         same("name", 0, static_cast<std::uint64_t>(r.names[k.name] != "some_kernel")) &&
         same("mark", 1234, r.links[0].mark) && same("link", 42, r.links[0].correlation) &&
         same("set bytes", 4096, static_cast<std::uint64_t>(r.activities[1].bytes)) &&
         same("set end", 210, static_cast<std::uint64_t>(r.activities[1].end_ns));
  std::puts(good ? "records of this toolkit are read as its library walks them" : "FAILED");
  return good ? 0 : 1;
}
