// SPDX-License-Identifier: Apache-2.0
/// Traces with changed bytes are read and analysed, or refused with an InputError: nothing else
/// may happen. Under sanitizers this is the fuzzer of every day; tests/fuzz goes on for longer.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "profiler/analysis/trace_profile.h"
#include "profiler/analysis/trace_summary.h"
#include "profiler/profile_json.h"
#include "tests/profiler/trace/one_trace.h"
#include "tests/support/mutated.h"

namespace towtank {
namespace mutated_traces_test {

/// True if a text was read; false if it was refused.
bool read_through(const std::string& text) {
  try {
    ByteSource source = ByteSource::of_text("m", text);
    const auto reader = reader_of(source.peek(1 << 16));
    if (!reader) return false;
    std::vector<Trace> traces{reader->read(source)};
    traces.push_back(traces.front());
    traces.front().rank = 0;
    traces.back().rank = 1;
    const JobTrace job = analyse_traces(std::move(traces));
    static_cast<void>(summarise(job));
    ImportOptions options;
    options.ranks_per_node = 8;
    const Profile profile = trace_profile(job, options);
    static_cast<void>(parse_profile(JsonFile::parse(profile_text(profile), "p.json")));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// How many of the texts made from one are still read.
long readable(const std::string& text, int tries, std::uint64_t seed) {
  Rng rng(seed);
  long out = 0;
  for (int i = 0; i < tries; ++i) out += read_through(testing::mutated(text, rng)) ? 1 : 0;
  return out;
}

TEST(LawMutatedTraces, KinetoIsReadOrRefused) {
  const std::string text = read_file(
      (std::filesystem::path(TOWTANK_SOURCE_DIR) / "examples" / "traces" / "rank0.json").string());
  EXPECT_GT(readable(text, 400, 1), 300);  // dirt loses events, hardly ever the trace
}

TEST(LawMutatedTraces, ExecutionTracesAreReadOrRefused) {
  const std::string json =
      R"json({"schema": "1.0.1", "nodes": [{"name": "record_param_comms", "id": 4, "parent": 2,
      "tid": 1, "inputs": [[320, 713, 0, 6144, 4, "cuda:2"], 147, "all_to_allv"],
      "input_shapes": [[6144], [], []], "input_types": ["Tensor(float)", "Int", "String"]},
      {"name": "aten::mm", "id": 3, "parent": 2, "tid": 1, "input_shapes": [[64, 32], [32, 16]],
      "input_types": ["Tensor(float)", "Tensor(float)"]}]})json";
  EXPECT_GT(readable(json, 300, 2), 0);
  std::string et = "\x0a\x12\x08\x0a\x06schema";
  et += std::string("\x1a\x08\x06\x12\x04gemm\x18\x04\x38\x0c", 12);
  EXPECT_GE(readable(et, 300, 3), 0);
}

}  // namespace mutated_traces_test
}  // namespace towtank
