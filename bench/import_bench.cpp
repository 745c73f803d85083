// SPDX-License-Identifier: Apache-2.0
/// Reading traces: bytes of JSON a second, as text and from gzip data. The file is a real trace
/// repeated (a trace of an example where the real ones are not beside the checkout).
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <filesystem>

#include "profiler/analysis/job_trace.h"
#include "profiler/import/trace_reader.h"

namespace towtank {
namespace {

constexpr std::size_t kLeast = 64U << 20U;

/// Events of a file, so many times that it has 64 MiB and more.
const std::string& big_trace() {
  static const std::string text = [] {
    const std::filesystem::path root(TOWTANK_SOURCE_DIR);
    const auto real = root / ".." / "shared" / "data" / "traces" / "hta" / "ns_resolution_trace" /
                      "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz";
    ByteSource source = ByteSource::open(
        (std::filesystem::exists(real) ? real : root / "examples" / "traces" / "rank0.json")
            .string());
    const std::string one = read_rest(source, 1U << 30U);
    const std::size_t first = one.find('[', one.find("\"traceEvents\"")) + 1;
    const std::size_t last = one.rfind('}', one.rfind(']'));
    const std::string events = one.substr(first, last + 1 - first);
    std::string out = one.substr(0, first);
    while (out.size() < kLeast) {
      if (out.size() > first) out += ",\n";
      out += events;
    }
    return out + "]}";
  }();
  return text;
}

const std::string& big_gzip() {
  static const std::string data = [] {
    z_stream z{};
    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string in = big_trace();
    std::string out(deflateBound(&z, in.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(in.data());
    z.avail_in = static_cast<uInt>(in.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
  }();
  return data;
}

void read(benchmark::State& state, const std::string& data) {
  for (auto _ : state) {
    state.PauseTiming();
    ByteSource source = ByteSource::of_text("big.json", data);
    state.ResumeTiming();
    const Trace trace = reader_of(source.peek(1 << 16))->read(source);
    benchmark::DoNotOptimize(trace.events.data());
    state.counters["events"] = static_cast<double>(trace.events.size());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(big_trace().size()));
}

void bm_kineto_text(benchmark::State& state) { read(state, big_trace()); }
BENCHMARK(bm_kineto_text)->Unit(benchmark::kMillisecond);

void bm_kineto_gzip(benchmark::State& state) { read(state, big_gzip()); }
BENCHMARK(bm_kineto_gzip)->Unit(benchmark::kMillisecond);

void bm_trace_analysis(benchmark::State& state) {
  ByteSource source = ByteSource::of_text("big.json", big_trace());
  const Trace trace = reader_of(source.peek(1 << 16))->read(source);
  for (auto _ : state) {
    const JobTrace job = analyse_traces({trace});
    benchmark::DoNotOptimize(job.ranks.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.events.size()));
}
BENCHMARK(bm_trace_analysis)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace towtank
