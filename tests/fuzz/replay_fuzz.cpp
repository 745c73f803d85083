// SPDX-License-Identifier: Apache-2.0
/// A step of any trace that can be read, made into tasks: the graph must finish.
#include <cstdlib>

#include "profiler/import/trace_reader.h"
#include "sim/longest_path.h"
#include "sim/replay.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    ByteSource source = ByteSource::of_text("fuzz.json", text);
    const auto reader = reader_of(source.peek(1 << 16));
    if (!reader) return;
    std::vector<Trace> traces{reader->read(source)};
    traces.push_back(traces.front());
    traces.front().rank = 0;
    traces.back().rank = 1;
    const JobTrace job = analyse_traces(std::move(traces));
    if (replayable_steps(job) == 0) return;
    if (!(longest_path(replay(job).step.tasks).makespan() >= 0)) std::abort();
  });
}
