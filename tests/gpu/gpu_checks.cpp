// SPDX-License-Identifier: Apache-2.0
// Checks the CUPTI collector on a GPU against work whose number, size and time are known. Prints
// one table. Exit: 0 every check holds, 1 one does not, 77 there is no GPU or driver here.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels.h"
#include "profiler/collect/cupti_collector.h"
#include "profiler/collect/join_activities.h"

namespace {

using towtank::Activity;
using towtank::ActivityKind;
using towtank::CuptiCollector;
using towtank::CuptiLibrary;
using towtank::CuptiOptions;
using towtank::JoinedActivities;
using towtank::LayerMark;
using towtank::MarkedTime;

int failures = 0;

void row(const std::string& check, const std::string& expected, const std::string& got, bool ok) {
  std::printf("%-34s  %-26s  %-26s  %s\n", check.c_str(), expected.c_str(), got.c_str(),
              ok ? "ok" : "FAILED");
  if (!ok) ++failures;
}

void count_row(const std::string& check, long expected, long got) {
  row(check, std::to_string(expected), std::to_string(got), expected == got);
}

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

std::string number(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit);
  return text;
}

struct Recorded {
  towtank::ActivityRecording raw;
  JoinedActivities joined;
};

Recorded record(const CuptiLibrary& library, const std::function<void(CuptiCollector&)>& work,
                const CuptiOptions& options = {}) {
  auto started = towtank::start_cupti(library, options);
  if (auto* why = std::get_if<std::string>(&started)) {
    std::printf("recording does not start: %s\n", why->c_str());
    std::exit(1);
  }
  auto collector = std::get<std::unique_ptr<CuptiCollector>>(std::move(started));
  work(*collector);
  must(cudaDeviceSynchronize(), "synchronise");
  Recorded out;
  out.raw = collector->finish();
  out.joined = towtank::join_activities(out.raw);
  return out;
}

const MarkedTime* time_of(const JoinedActivities& joined, std::uint64_t mark) {
  for (const MarkedTime& m : joined.marks) {
    if (m.mark == mark) return &m;
  }
  return nullptr;
}

void check_marks(const CuptiLibrary& library) {
  const Recorded r = record(library, [](CuptiCollector& c) {
    for (std::uint64_t layer = 1; layer <= 10; ++layer) {
      const LayerMark mark(c, layer);
      for (int i = 0; i < 100; ++i) launch_empty(nullptr);
    }
  });
  long in_marks = 0, of_100 = 0;
  for (const MarkedTime& m : r.joined.marks) {
    in_marks += m.kernels;
    of_100 += m.kernels == 100 ? 1 : 0;
  }
  count_row("kernels under 10 marks", 1000, in_marks);
  count_row("marks with 100 kernels each", 10, of_100);
  const bool named =
      r.raw.names.size() > 1 && r.raw.names[1].find("empty_kernel") != std::string::npos;
  row("kernel name", "*empty_kernel*", r.raw.names.size() > 1 ? r.raw.names[1] : "none", named);
  count_row("records lost", 0, r.raw.lost + r.raw.refused + r.raw.unreadable);
}

void check_durations(const CuptiLibrary& library) {
  cudaEvent_t begin = nullptr, end = nullptr;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  launch_spin(nullptr, 1000);
  must(cudaDeviceSynchronize(), "warm-up");
  const Recorded r = record(library, [&](CuptiCollector& c) {
    const LayerMark mark(c, 1);
    must(cudaEventRecord(begin), "record");
    for (int i = 0; i < 20; ++i) launch_spin(nullptr, 1'000'000);
    must(cudaEventRecord(end), "record");
  });
  float by_events = 0;
  must(cudaEventElapsedTime(&by_events, begin, end), "elapsed");
  const MarkedTime* m = time_of(r.joined, 1);
  const double busy = m == nullptr ? 0 : m->busy.value * 1e3;
  row("20 kernels of 1 ms, by events", number(by_events, "ms") + " +- 3 %", number(busy, "ms"),
      std::abs(busy / by_events - 1) < 0.03);
}

void check_streams(const CuptiLibrary& library) {
  cudaStream_t a = nullptr, b = nullptr;
  must(cudaStreamCreate(&a), "stream");
  must(cudaStreamCreate(&b), "stream");
  const Recorded r = record(library, [&](CuptiCollector& c) {
    const LayerMark mark(c, 1);
    for (int i = 0; i < 10; ++i) {
      launch_spin(a, 500'000);
      launch_spin(b, 500'000);
    }
  });
  const MarkedTime* m = time_of(r.joined, 1);
  const double ratio = m == nullptr ? 0 : m->kernel.value / m->busy.value;
  row("two streams: sum over union", "1.8 .. 2", number(ratio, ""), ratio > 1.8 && ratio <= 2.0001);
  must(cudaStreamDestroy(a), "stream");
  must(cudaStreamDestroy(b), "stream");
}

void check_copies(const CuptiLibrary& library) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  void *device = nullptr, *host = nullptr;
  must(cudaMalloc(&device, kBytes), "malloc");
  must(cudaMallocHost(&host, kBytes), "malloc");
  const Recorded r = record(library, [&](CuptiCollector& c) {
    const LayerMark mark(c, 1);
    must(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice), "copy");
    must(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost), "copy");
    must(cudaMemsetAsync(device, 0, kBytes), "set");
  });
  const MarkedTime* m = time_of(r.joined, 1);
  count_row("copies", 2, m == nullptr ? 0 : m->copies);
  count_row("bytes copied", 2 * static_cast<long>(kBytes), m == nullptr ? 0 : m->copied.value);
  long set = 0, waits = 0;
  double rate = 0;
  for (const Activity& a : r.joined.activities) {
    if (a.kind == ActivityKind::kSet) set += a.bytes;
    if (a.kind == ActivityKind::kSynchronization) ++waits;
    if (a.kind == ActivityKind::kCopy) {
      rate = static_cast<double>(a.bytes) / static_cast<double>(a.end_ns - a.start_ns);
    }
  }
  count_row("bytes set", static_cast<long>(kBytes), set);
  row("copy rate", "1 .. 1000 GB/s", number(rate, "GB/s"), rate > 1 && rate < 1000);
  row("waits of the host", ">= 1", std::to_string(waits), waits >= 1);
  must(cudaFree(device), "free");
  must(cudaFreeHost(host), "free");
}

void check_graph(const CuptiLibrary& library) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  must(cudaStreamCreate(&stream), "stream");
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < 20; ++i) launch_spin(stream, 2000);
  must(cudaStreamEndCapture(stream, &graph), "capture");
  must(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  const Recorded r = record(library, [&](CuptiCollector& c) {
    for (std::uint64_t layer = 1; layer <= 5; ++layer) {
      const LayerMark mark(c, layer);
      must(cudaGraphLaunch(executable, stream), "launch");
    }
  });
  long kernels = 0, of_graph = 0;
  for (const MarkedTime& m : r.joined.marks) kernels += m.kernels == 20 ? m.kernels : 0;
  for (const Activity& a : r.joined.activities) {
    of_graph += a.kind == ActivityKind::kKernel && a.graph_node != 0 ? 1 : 0;
  }
  count_row("kernels of 5 graph launches", 100, kernels);
  count_row("kernels with a graph node", 100, of_graph);
  must(cudaGraphExecDestroy(executable), "graph");
  must(cudaGraphDestroy(graph), "graph");
  must(cudaStreamDestroy(stream), "stream");
}

void check_overflow(const CuptiLibrary& library) {
  constexpr long kLaunched = 20'000;
  CuptiOptions few;
  few.most_records = 5000;
  const Recorded r = record(
      library,
      [](CuptiCollector& c) {
        const LayerMark mark(c, 1);
        for (long i = 0; i < kLaunched; ++i) launch_empty(nullptr);
      },
      few);
  const long kept = static_cast<long>(r.raw.activities.size() + r.raw.links.size());
  count_row("records kept under a limit", 5000, kept);
  // Every launch has a kernel and a mark record.
  const long all = kept + r.raw.beyond + r.raw.lost;
  row("kept and counted", ">= " + std::to_string(2 * kLaunched), std::to_string(all),
      all >= 2 * kLaunched);
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  must(cudaDeviceSynchronize(), "synchronise");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check_overhead(const CuptiLibrary& library) {
  constexpr int kLaunches = 20'000;
  const auto step = [] {
    for (int i = 0; i < kLaunches; ++i) launch_empty(nullptr);
  };
  static_cast<void>(seconds_of(step));
  const double plain = seconds_of(step);
  double recorded = 0, reported = 0;
  const Recorded r = record(library, [&](CuptiCollector& c) {
    const LayerMark mark(c, 1);
    recorded = seconds_of(step);
  });
  reported = r.joined.overhead.value;
  const double each = (recorded - plain) / kLaunches * 1e6;
  row("overhead a kernel", "< 10 us", number(each, "us"), each < 10);
  row("overhead that CUPTI reports", "(told)", number(reported * 1e3, "ms"), true);
}

}  // namespace

int main() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    std::puts("no NVIDIA driver here: nothing was checked");
    return 77;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no NVIDIA GPU here: nothing was checked");
    return 77;
  }
  auto loaded = towtank::load_cupti();
  if (auto* why = std::get_if<std::string>(&loaded)) {
    std::printf("FAILED: %s\n", why->c_str());
    return 1;
  }
  const CuptiLibrary& library = std::get<CuptiLibrary>(loaded);
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0), "properties");
  must(cudaFree(nullptr), "context");
  std::printf("%s, driver %d, built with CUDA %d, %s\n\n", device.name, driver, CUDART_VERSION,
              library.version.c_str());
  std::printf("%-34s  %-26s  %-26s\n", "check", "expected", "got");
  check_marks(library);
  check_durations(library);
  check_streams(library);
  check_copies(library);
  check_graph(library);
  check_overflow(library);
  check_overhead(library);
  check_marks(library);  // starts again after it has ended
  std::printf("\n%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
