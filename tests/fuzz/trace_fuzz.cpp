// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a trace of any format, alone or in an archive, read and analysed to the end: steps,
/// joins, collectives, ranks, a profile and its file.
#include "profiler/analysis/trace_profile.h"
#include "profiler/analysis/trace_summary.h"
#include "profiler/import/trace_reader.h"
#include "profiler/profile_json.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace towtank;
  return fuzzing::read_any(data, size, [](const std::string& text) {
    std::vector<Trace> traces;
    ByteSource source = ByteSource::of_text("fuzz.json", text);
    do {
      const auto reader = reader_of(source.peek(1 << 16));
      if (reader) traces.push_back(reader->read(source));
    } while (source.next_member() && traces.size() < 4);
    if (traces.empty()) return;
    const JobTrace job = analyse_traces(std::move(traces));
    static_cast<void>(summarise(job));
    ImportOptions options;
    options.ranks_per_node = 8;
    static_cast<void>(profile_text(trace_profile(job, options)));
  });
}
