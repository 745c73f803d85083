// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/kineto/kineto_reader.h"

#include <gtest/gtest.h>

#include "profiler/import/kineto/raw_event.h"
#include "tests/profiler/trace/one_trace.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace kineto_reader_test {

using kineto::thousandths;
using kineto::whole_number;
using testing::counted;
using testing::trace_of;

std::string file_of(const std::string& events, const std::string& after = "") {
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]" + after + "}";
}
/// A complete event of category and name, at ts for dur, as they are written.
std::string event(const std::string& category, const std::string& name, const std::string& ts,
                  const std::string& dur, const std::string& args = "{}") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "pid": 1, "tid": 2, "ts": )" + ts + R"(, "dur": )" + dur + R"(, "args": )" + args +
         "}";
}

TEST(UnitKinetoTime, MicrosecondsAreExactToTheNanosecond) {
  EXPECT_EQ(thousandths("12"), 12'000);
  EXPECT_EQ(thousandths("12.5"), 12'500);
  EXPECT_EQ(thousandths("0.0004"), 0);
  EXPECT_EQ(thousandths("0.0005"), 1);
  EXPECT_EQ(thousandths("-3.25"), -3'250);
  // A double holds 1712195495519689.8 to 0.25 us only.
  EXPECT_EQ(thousandths("1712195495519689.123"), 1'712'195'495'519'689'123);
  EXPECT_EQ(thousandths("1.5e3"), 1'500'000);
}

TEST(UnitKinetoTime, WhatIsNoTimeIsNone) {
  for (const char* text : {"", "-", ".5", "abc", "1x", "1e30", "99999999999999999999"}) {
    EXPECT_EQ(thousandths(text), std::nullopt) << text;
  }
}

TEST(UnitKinetoId, ReadsNumbersAndNamesOfStreams) {
  EXPECT_EQ(whole_number("41")->value, 41);
  EXPECT_EQ(whole_number("stream 7")->value, 7);
  EXPECT_EQ(whole_number("-1")->value, -1);
  EXPECT_FALSE(whole_number("9223372036854775807")->wide);
  EXPECT_TRUE(whole_number("9223372036854775808")->wide);
  EXPECT_EQ(whole_number("Spans"), std::nullopt);
}

TEST(ImportKineto, ReadsAnOpItsLaunchAndItsKernel) {
  const Trace t = trace_of(file_of(
      event("cpu_op", "aten::mm", "5.000", "9.000",
            R"({"External id": 7, "Sequence number": 3, "Input Dims": [[64,32],[32,16]],
                "Input type": ["c10::BFloat16","c10::BFloat16"]})") +
          "," + event("cuda_runtime", "cudaLaunchKernel", "6", "2", R"({"correlation": 41})") +
          "," + event("kernel", "gemm", "12.5", "20", R"({"External id": 7, "correlation": 41,
                "device": 3, "stream": 20})"),
      R"(, "distributedInfo": {"rank": 3, "world_size": 8},
          "deviceProperties": [{"id": 3, "name": "SYNTH", "totalGlobalMem": 100}])"));
  ASSERT_EQ(t.events.size(), 3U);
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.world_size, 8);
  ASSERT_EQ(t.devices.size(), 1U);
  EXPECT_EQ(t.devices[0].name, "SYNTH");
  const TraceEvent& op = t.events[0];
  EXPECT_EQ(t.name_of(op), "aten::mm");
  EXPECT_EQ(op.category, TraceCategory::kCpuOp);
  EXPECT_EQ(op.start_ns, 5'000);
  EXPECT_EQ(op.sequence, 3);
  const auto& inputs = t.inputs[static_cast<std::size_t>(op.inputs)];
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[1].shape, (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ(inputs[0].type, "c10::BFloat16");
  const TraceEvent& kernel = t.events[2];
  EXPECT_EQ(kernel.correlation, t.events[1].correlation);
  EXPECT_EQ(kernel.external_id, op.external_id);
  EXPECT_EQ(kernel.end_ns(), 32'500);
  EXPECT_EQ(t.tracks[static_cast<std::size_t>(kernel.track)].device, 3);
  EXPECT_EQ(t.tracks[static_cast<std::size_t>(kernel.track)].stream, 20);
  EXPECT_TRUE(t.stats.counts.empty());
}

TEST(ImportKineto, ABareArrayIsATrace) {
  const Trace t = trace_of("[" + event("kernel", "k", "1", "2") + "]");
  EXPECT_EQ(t.events.size(), 1U);
  EXPECT_EQ(counted(t.stats, "files that are a bare array of events"), 1);
}

TEST(ImportKineto, BaseTimeMayStandBehindTheEvents) {
  const Trace t = trace_of(file_of(event("kernel", "k", "4458676522690.655", "1"),
                                   R"(, "baseTimeNanoseconds": 1711964646000000000)"));
  EXPECT_EQ(t.clock, TraceClock::kEpoch);
  EXPECT_EQ(t.events[0].start_ns, 1'711'964'646'000'000'000 + 4'458'676'522'690'655);
}

TEST(ImportKineto, OldFilesCountFromTheEpoch) {
  const Trace t = trace_of(file_of(event("Kernel", "k", "1623142623531625", "2")));
  EXPECT_EQ(t.clock, TraceClock::kEpoch);
  EXPECT_EQ(t.events[0].start_ns, 1'623'142'623'531'625'000);
  EXPECT_EQ(t.events[0].category, TraceCategory::kKernel);
}

TEST(ImportKineto, NanosecondsAreToldByTheirSize) {
  const Trace t = trace_of(file_of(event("kernel", "k", "1712195495519689123", "2500")));
  EXPECT_EQ(t.events[0].start_ns, 1'712'195'495'519'689'123);
  EXPECT_EQ(t.events[0].duration_ns, 2'500);
  EXPECT_EQ(counted(t.stats, "files whose times are nanoseconds"), 1);
}

TEST(ImportKineto, AbsurdDurationsAreLeftOutAndCounted) {
  const Trace t = trace_of(
      file_of(event("kernel", "k", "1", "-1") + "," + event("kernel", "k", "1", "7e12") + "," +
              event("kernel", "k", "1", "604800000000") + "," + event("kernel", "k", "1e40", "1")));
  EXPECT_EQ(t.events.size(), 1U);
  EXPECT_EQ(counted(t.stats, "durations under 0"), 1);
  EXPECT_EQ(counted(t.stats, "durations over 7 days"), 1);
  EXPECT_EQ(counted(t.stats, "events without a time"), 1);
  EXPECT_EQ(t.stats.rows_read, 4);
  EXPECT_EQ(t.stats.rows_kept, 1);
}

TEST(ImportKineto, WideIdsStillTellEventsApart) {
  const Trace t = trace_of(
      file_of(event("cuda_runtime", "a", "1", "1", R"({"correlation": 18446744073709551615})") +
              "," + event("kernel", "b", "2", "1", R"({"correlation": 18446744073709551614})")));
  ASSERT_EQ(t.events.size(), 2U);
  EXPECT_NE(t.events[0].correlation, t.events[1].correlation);
  EXPECT_EQ(counted(t.stats, "ids beyond int64"), 2);
}

TEST(ImportKineto, NamesAreUnescapedAndMended) {
  const Trace t = trace_of(file_of(event("kernel", R"(a\"b\u00e9\ud83d\ude00)", "1", "1") + "," +
                                   event("kernel", "bad\xFF!", "2", "1") + "," +
                                   event("kernel", "bad\xFF!", "3", "1")));
  ASSERT_EQ(t.events.size(), 3U);
  EXPECT_EQ(t.name_of(t.events[0]), "a\"b\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(t.name_of(t.events[1]), "bad\xEF\xBF\xBD!");
  EXPECT_EQ(t.events[1].name, t.events[2].name);
  EXPECT_EQ(counted(t.stats, "names that are not UTF-8"), 1);
}

TEST(ImportKineto, AnUnescapedQuoteLosesOneEventOnly) {
  const std::string text = file_of(event("kernel", "first", "1", "1") + ",\n " +
                                   event("kernel",
                                         "say "
                                         "\"no\"",
                                         "2", "1") +
                                   ",\n " + event("kernel", "last", "3", "1"));
  const Trace t = trace_of(text);
  ASSERT_EQ(t.events.size(), 2U);
  EXPECT_EQ(t.name_of(t.events[1]), "last");
  EXPECT_EQ(counted(t.stats, "events that are no JSON"), 1);
  // The name ends where the stray quote stands; there the text stops being JSON.
  const auto at = text.find("no\\\"") != std::string::npos ? 0 : text.find("no\"");
  EXPECT_EQ(t.stats.counts.front().first, "t.json: byte " + std::to_string(at));
}

TEST(ImportKineto, ATraceThatEndsEarlyKeepsWhatItHas) {
  const std::string whole =
      file_of(event("kernel", "a", "1", "1") + "," + event("kernel", "b", "2", "1"));
  const Trace t = trace_of(whole.substr(0, whole.size() - 20));
  EXPECT_EQ(t.events.size(), 1U);
  EXPECT_EQ(counted(t.stats, "files that end before their JSON does"), 1);
}

TEST(ImportKineto, PairsOfBeginAndEndAreEvents) {
  const Trace t = trace_of(file_of(
      R"({"ph":"B","cat":"cpu_op","name":"outer","pid":1,"tid":1,"ts":1},
         {"ph":"B","cat":"cpu_op","name":"inner","pid":1,"tid":1,"ts":2},
         {"ph":"E","pid":1,"tid":1,"ts":3}, {"ph":"E","pid":1,"tid":1,"ts":9},
         {"ph":"E","pid":1,"tid":1,"ts":10}, {"ph":"B","cat":"cpu_op","name":"open","pid":1,
         "tid":1,"ts":11})"));
  ASSERT_EQ(t.events.size(), 2U);
  EXPECT_EQ(t.name_of(t.events[0]), "outer");
  EXPECT_EQ(t.events[0].duration_ns, 8'000);
  EXPECT_EQ(t.events[1].duration_ns, 1'000);
  EXPECT_EQ(counted(t.stats, "ends without a begin"), 1);
  EXPECT_EQ(counted(t.stats, "begins without an end"), 1);
}

TEST(ImportKineto, WhatIsNotKeptIsCountedUnderItsKind) {
  const Trace t = trace_of(file_of(
      R"({"ph":"M","name":"process_name","pid":1}, {"ph":"s","id":1,"ts":1}, 7,
         {"ph":"X","cat":"python_function","name":"a.py(3): f","ts":1,"dur":1},
         {"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","ts":1,"dur":1},
         {"ph":"X","cat":"overhead","name":"x","ts":1,"dur":1},
         {"ph":"X","cat":"quantum","name":"x","ts":1,"dur":1})"));
  EXPECT_EQ(t.events.size(), 1U);
  EXPECT_EQ(counted(t.stats, "flows, instants, counters and metadata"), 2);
  EXPECT_EQ(counted(t.stats, "elements that are no events"), 1);
  EXPECT_EQ(counted(t.stats, "Python calls that are no modules"), 1);
  EXPECT_EQ(counted(t.stats, "markers of the profiler itself"), 1);
  EXPECT_EQ(counted(t.stats, "events of category \"quantum\""), 1);
  EXPECT_EQ(t.stats.rows_read, 7);
}

TEST(ImportKineto, CollectivesSayWhatTheyMove) {
  const Trace t = trace_of(file_of(
      event("kernel", "ncclDevKernel_AllReduce", "1", "50",
            R"({"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024,
          "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0",
          "Process Group Ranks": "[0, 1]", "Seq": 5})")));
  ASSERT_EQ(t.collectives.size(), 1U);
  const TraceCollective& c = t.collectives[0];
  EXPECT_EQ(c.name, "allreduce");
  EXPECT_EQ(c.in_elements, 1024);
  EXPECT_EQ(c.group_size, 2);
  EXPECT_EQ(c.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(c.sequence, 5);
}

TEST(FaultKineto, SaysWhatIsMissing) {
  EXPECT_FAULT(trace_of(R"({"schemaVersion": 1})"),
               "t.json: has no traceEvents (it is JSON, but no trace)");
}

/// Events of 1 MiB and more pass a buffer that starts smaller.
TEST(ImportKineto, ValuesMayBeLargerThanTheBuffer) {
  const std::string big(3 << 20, 'x');
  const Trace t = trace_of(file_of(event("kernel", "a", "1", "1", "{\"note\": \"" + big + "\"}") +
                                   "," + event("kernel", "b", "2", "1")));
  EXPECT_EQ(t.events.size(), 2U);
}

/// Wherever a chunk of the file ends, the events are the same.
TEST(LawKineto, DoesNotDependOnWhereChunksEnd) {
  std::string events;
  for (int i = 0; i < 4000; ++i) {
    if (i > 0) events += ",\n";
    events += event("kernel", "kernel \\\\ " + std::to_string(i % 7), std::to_string(i) + ".25",
                    "1." + std::to_string(i), "{\"correlation\": " + std::to_string(i) + "}");
  }
  for (const std::size_t shift : {0U, 1U, 2U, 3U, 5U, 8U, 13U, 21U}) {
    const Trace t = trace_of(std::string(shift, ' ') + file_of(events));
    ASSERT_EQ(t.events.size(), 4000U) << shift;
    EXPECT_TRUE(t.stats.counts.empty()) << shift;
    for (int i = 0; i < 4000; ++i) {
      ASSERT_EQ(t.events[static_cast<std::size_t>(i)].start_ns, i * 1000 + 250);
      ASSERT_EQ(t.events[static_cast<std::size_t>(i)].correlation, i);
    }
  }
}

}  // namespace kineto_reader_test
}  // namespace towtank
