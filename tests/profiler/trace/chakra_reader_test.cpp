// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/chakra/chakra_reader.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "profiler/analysis/job_trace.h"
#include "profiler/import/chakra/node_builder.h"
#include "tests/profiler/trace/one_trace.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace chakra_reader_test {

using testing::counted;
using testing::shared_traces;
using testing::trace_of;

// Messages of protobuf, written by hand.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7FU) | 0x80U);
  return out + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
std::string bytes(unsigned field, const std::string& value) {
  return varint((field << 3U) | 2U) + varint(value.size()) + value;
}
std::string message(const std::string& text) { return varint(text.size()) + text; }
std::string attribute(const std::string& name, const std::string& value) {
  return bytes(10, bytes(1, name) + value);
}

std::string example() {
  const std::string op =
      number(1, 5) + bytes(2, "aten::mm") + number(3, 4) + number(7, 30) +
      bytes(8, bytes(2, "[[64, 32], [32, 16]]") + bytes(3, "['Tensor(float)', 'Tensor(float)']")) +
      attribute("is_cpu_op", number(27, 1));
  const std::string kernel = number(1, 6) + bytes(2, "gemm") + number(3, 4) + bytes(4, varint(5)) +
                             number(7, 12) + attribute("is_cpu_op", number(27, 0)) +
                             attribute("tid", number(9, 7));
  const std::string reduce =
      number(1, 7) + bytes(2, "ncclKernel_AllReduce") + number(3, 7) + number(7, 40) +
      attribute("is_cpu_op", number(27, 0)) + attribute("comm_type", number(9, 0)) +
      attribute("comm_size", number(9, 4096)) + attribute("pg_name", bytes(29, "dp"));
  return message(bytes(2, bytes(1, "schema") + bytes(29, "1.0.1"))) + message(op) +
         message(kernel) + message(reduce);
}

TEST(UnitChakra, RanksStandInNames) {
  EXPECT_EQ(chakra::rank_of_name("a/dlrm_eg_3.json"), 3);
  EXPECT_EQ(chakra::rank_of_name("chakra.12.et"), 12);
  EXPECT_EQ(chakra::rank_of_name("trace.json.gz"), -1);
  EXPECT_EQ(chakra::rank_of_name("model7.json"), -1);
}

TEST(ImportChakra, ReadsNodesWithTheirOpsAndCollectives) {
  if (!reads_chakra()) GTEST_SKIP() << "built without protobuf";
  const Trace t = trace_of(example(), "run.3.et");
  EXPECT_FALSE(t.timed);
  EXPECT_EQ(t.rank, 3);
  ASSERT_EQ(t.events.size(), 3U);
  const JobTrace job = analyse_traces({t});
  const RankTrace& rank = job.ranks[0];
  for (std::size_t i = 0; i < 3; ++i) {
    if (t.name_of(rank.trace.events[i]) != "gemm") continue;
    EXPECT_EQ(rank.trace.events[i].duration_ns, 12'000);
    ASSERT_GE(rank.joins.op[i], 0);
    const TraceEvent& op = rank.trace.events[static_cast<std::size_t>(rank.joins.op[i])];
    EXPECT_EQ(t.name_of(op), "aten::mm");
    EXPECT_EQ(t.inputs[static_cast<std::size_t>(op.inputs)][1].shape,
              (std::vector<std::int64_t>{32, 16}));
    EXPECT_EQ(t.inputs[static_cast<std::size_t>(op.inputs)][1].type, "float");
  }
  ASSERT_EQ(rank.calls.size(), 1U);
  EXPECT_EQ(rank.calls[0].op, Collective::kAllReduce);
  EXPECT_EQ(rank.calls[0].payload, Bytes{4096});
  EXPECT_EQ(rank.calls[0].group, "dp");
}

TEST(ImportChakra, AFileThatEndsEarlyKeepsWhatItHas) {
  if (!reads_chakra()) GTEST_SKIP() << "built without protobuf";
  const std::string whole = example();
  const Trace t = trace_of(whole.substr(0, whole.size() - 10), "a.et");
  EXPECT_EQ(t.events.size(), 2U);
  EXPECT_EQ(counted(t.stats, "files that end inside of a message"), 1);
}

TEST(ImportExecutionTrace, ReadsOpsAndCollectives) {
  const Trace t = trace_of(
      R"json({"schema": "1.0.1", "pid": 1, "nodes": [
        {"name": "aten::mm", "id": 3, "parent": 2, "tid": 1, "inputs": [],
         "input_shapes": [[64, 32], [32, 16]], "input_types": ["Tensor(float)", "Tensor(float)"]},
        {"name": "record_param_comms", "id": 4, "parent": 2, "tid": 1,
         "inputs": [[320, 713, 0, 6144, 4, "cuda:2"], 147, "all_to_allv"],
         "input_shapes": [[6144], [], []], "input_types": ["Tensor(float)", "Int", "String"]},
        {"id": 9}]})json",
      "eg_5.json");
  EXPECT_EQ(t.rank, 5);
  ASSERT_EQ(t.events.size(), 2U);
  ASSERT_EQ(t.collectives.size(), 1U);
  EXPECT_EQ(t.collectives[0].name, "all_to_allv");
  EXPECT_EQ(t.collectives[0].in_elements, 6144 * 4);
  EXPECT_EQ(counted(t.stats, "nodes without a name"), 1);
  EXPECT_FAULT(trace_of(R"({"schema": "1", "nodes": 3})"),
               "t.json: is no execution trace (it is no JSON with an array of nodes)");
}

/// The real ones: 8 x 1,675 nodes by SOURCE.md, counted again from JSON; 3,664 nodes of Chakra by
/// the lengths in front of its messages.
TEST(ImportExecutionTrace, RealOnesHaveTheirNodes) {
  if (!std::filesystem::exists(shared_traces())) GTEST_SKIP() << "no " << shared_traces();
  const std::string archive = (shared_traces() / "param" / "dlrm_pytorch_et.tar.gz").string();
  ByteSource source = ByteSource::open(archive);
  std::map<std::string, long> expected;
  do {
    const auto file = nlohmann::json::parse(read_rest(source, 1U << 28U));
    expected[source.name()] = static_cast<long>(file["nodes"].size());
  } while (source.next_member());
  const std::vector<Trace> traces = read_traces(archive);
  ASSERT_EQ(traces.size(), 8U);
  for (const Trace& t : traces) {
    EXPECT_EQ(static_cast<long>(t.events.size()), expected[t.name]);
    EXPECT_EQ(t.events.size(), 1675U);
  }
  if (!reads_chakra()) return;
  ByteSource et =
      ByteSource::open((shared_traces() / "chakra" / "feeder_tests_trace.tar.gz").string());
  const std::string text = read_rest(et, 1U << 28U);
  long messages = 0;
  for (std::size_t at = 0; at < text.size(); ++messages) {
    std::size_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(text[at++]);
      length |= static_cast<std::size_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) break;
    }
    at += length;
  }
  EXPECT_EQ(static_cast<long>(trace_of(text, "chakra.0.et").events.size()), messages - 1);
}

}  // namespace chakra_reader_test
}  // namespace towtank
