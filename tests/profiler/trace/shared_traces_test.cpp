// SPDX-License-Identifier: Apache-2.0
/// The real traces beside the checkout, where there are any: every count and every sum of
/// durations is that of a second reading, which knows nothing of the first: whole files as
/// nlohmann/json values.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "profiler/analysis/trace_summary.h"
#include "tests/profiler/trace/one_trace.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace shared_traces_test {

namespace fs = std::filesystem;
using testing::counted;
using testing::shared_traces;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLargest = 12U << 20;  // a minute otherwise
#else
constexpr std::size_t kLargest = 1U << 30;
#endif

/// What both readings must agree on.
struct Count {
  long events = 0;
  double microseconds = 0;
};
using Counts = std::map<std::string, Count>;

std::string kind_of(const nlohmann::json& e) {
  const std::string category = e.value("cat", ""), name = e.value("name", "");
  static const std::map<std::string, std::string> kinds{
      {"cpu_op", "cpu op"},
      {"Operator", "cpu op"},
      {"user_annotation", "annotation"},
      {"python_function", "module"},
      {"cuda_runtime", "host call"},
      {"cuda_driver", "host call"},
      {"Runtime", "host call"},
      {"kernel", "kernel"},
      {"Kernel", "kernel"},
      {"gpu_memcpy", "copy"},
      {"Memcpy", "copy"},
      {"gpu_memset", "fill"},
      {"Memset", "fill"},
      {"cuda_sync", "device sync"},
      {"gpu_user_annotation", "device annotation"}};
  const auto kind = kinds.find(category);
  if (kind == kinds.end()) return "";
  if (category == "python_function" && name.rfind("nn.Module: ", 0) != 0) return "";
  // The oldest files have marks of the profiler among the operators.
  const bool mark = name.find('#') != std::string::npos && name.find("::") == std::string::npos;
  return kind->second == "cpu op" && mark ? "annotation" : kind->second;
}

Counts plain_counts(const nlohmann::json& file) {
  Counts out;
  for (const nlohmann::json& e : file.is_array() ? file : file.at("traceEvents")) {
    if (!e.is_object() || e.value("ph", "") != "X") continue;
    const std::string kind = kind_of(e);
    if (kind.empty()) continue;
    ++out[kind].events;
    out[kind].microseconds += e.at("dur").get<double>();
  }
  return out;
}

Counts counts_of(const Trace& trace) {
  Counts out;
  for (const TraceEvent& e : trace.events) {
    Count& count = out[std::string(kTraceCategoryNames[static_cast<std::size_t>(e.category)])];
    ++count.events;
    count.microseconds += static_cast<double>(e.duration_ns) / 1000;
  }
  return out;
}

class ImportSharedTraces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (fs::exists(shared_traces())) return;
    std::cerr << "SKIPPED: no real traces at " << shared_traces()
              << "; importers are tested on synthetic text only\n";
    GTEST_SKIP() << "no " << shared_traces();
  }

  /// Files whose names say that they are Kineto traces, archives included.
  static std::vector<fs::path> files() {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(shared_traces())) {
      const std::string name = entry.path().filename().string();
      const bool other = name.find("_et.") != std::string::npos ||
                         name == "memory_timeline.raw.gz" || name == "feeder_tests_trace.tar.gz";
      if (name.ends_with(".gz") && !other) out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(ImportSharedTraces, CountsAreThoseOfASecondReading) {
  long traces = 0;
  for (const fs::path& path : files()) {
    ByteSource source = ByteSource::open(path.string());
    do {
      const std::string text = read_rest(source, 1U << 30);
      if (text.size() > kLargest) continue;
      SCOPED_TRACE(source.name());
      const Trace trace = testing::trace_of(text, source.name());
      const Counts expected = plain_counts(nlohmann::json::parse(text)), found = counts_of(trace);
      ASSERT_EQ(found.size(), expected.size());
      for (const auto& [kind, count] : expected) {
        ASSERT_TRUE(found.count(kind)) << kind;
        EXPECT_EQ(found.at(kind).events, count.events) << kind;
        // Rounding to the nanosecond, of so many durations.
        EXPECT_NEAR(found.at(kind).microseconds, count.microseconds,
                    1e-3 * static_cast<double>(count.events) + 1e-9 * count.microseconds)
            << kind;
      }
      for (const ImportStats::Count& c : trace.stats.counts) {
        EXPECT_EQ(c.severity, ImportStats::Severity::kInfo) << c.what;
      }
      ++traces;
    } while (source.next_member());
  }
  EXPECT_GE(traces, kLargest > (100U << 20) ? 29 : 20);
}

/// 8 ranks, each with 5 all-to-all and 3 all-reduce kernels, 261 to 337 device events: SOURCE.md.
TEST_F(ImportSharedTraces, DlrmHasItsRanksAndCollectives) {
  const std::vector<Trace> traces =
      read_traces((shared_traces() / "param" / "dlrm_kineto.tar.gz").string());
  ASSERT_EQ(traces.size(), 8U);
  std::set<int> ranks;
  for (const Trace& trace : traces) {
    ranks.insert(trace.rank.value_or(-1));
    EXPECT_EQ(trace.world_size, 8);
    long device = 0, exchange = 0, reduce = 0;
    for (const TraceEvent& e : trace.events) {
      device += on_device(e.category) ? 1 : 0;
      exchange += trace.name_of(e).find("ncclKernel_SendRecv") == 0 ? 1 : 0;
      reduce += trace.name_of(e).find("ncclKernel_AllReduce") == 0 ? 1 : 0;
    }
    EXPECT_GE(device, 261);
    EXPECT_LE(device, 337);
    EXPECT_EQ(exchange, 5);
    EXPECT_EQ(reduce, 3);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

/// Device events of one rank of the DLRM step as its file has them: whole microseconds.
struct PlainEvent {
  long begin = 0, end = 0;
  bool collective = false, kernel = false;
};

/// From the first one whose launch the file has.
std::vector<PlainEvent> plain_device_events(const nlohmann::json& file) {
  std::set<long> launched;
  for (const nlohmann::json& e : file.at("traceEvents")) {
    if (e.value("cat", "") == "cuda_runtime") launched.insert(e["args"].value("correlation", -1L));
  }
  std::map<long, std::vector<PlainEvent>> by_start;
  long first = -1;
  for (const nlohmann::json& e : file.at("traceEvents")) {
    const std::string category = e.value("cat", "");
    const bool kernel = category == "kernel";
    if (e.value("ph", "") != "X" || (!kernel && category.rfind("gpu_mem", 0) != 0)) continue;
    const long begin = e.at("ts").get<long>();
    const bool collective = e.at("name").get<std::string>().rfind("nccl", 0) == 0;
    by_start[begin].push_back({begin, begin + e.at("dur").get<long>(), collective, kernel});
    if (launched.count(e["args"].value("correlation", -1L)) > 0 && (first < 0 || begin < first)) {
      first = begin;
    }
  }
  std::vector<PlainEvent> out;
  for (const auto& [begin, events] : by_start) {
    if (begin >= first) out.insert(out.end(), events.begin(), events.end());
  }
  return out;
}

/// What each microsecond of a step is spent on, one at a time.
TEST_F(ImportSharedTraces, DlrmOverlapAndStragglerAreThoseOfASecondReading) {
  ByteSource source = ByteSource::open((shared_traces() / "param" / "dlrm_kineto.tar.gz").string());
  std::map<int, std::vector<PlainEvent>> ranks;
  do {
    const auto file = nlohmann::json::parse(read_rest(source, 1U << 30));
    ranks[file["distributedInfo"]["rank"].get<int>()] = plain_device_events(file);
  } while (source.next_member());
  const JobTrace job =
      analyse_traces(read_traces((shared_traces() / "param" / "dlrm_kineto.tar.gz").string()));
  ASSERT_EQ(job.ranks.size(), ranks.size());
  std::vector<std::vector<long>> durations;  // of each rank's collectives, in their order
  for (const auto& [rank, events] : ranks) {
    long end = 0;
    for (const PlainEvent& e : events) end = std::max(end, e.end);
    const long begin = events.front().begin;
    std::vector<char> what(static_cast<std::size_t>(end - begin), 0);
    durations.emplace_back();
    for (const PlainEvent& e : events) {
      if (e.collective) durations.back().push_back(e.end - e.begin);
      const char bit = e.collective ? 2 : e.kernel ? 1 : 4;
      for (long t = e.begin; t < e.end; ++t) what[static_cast<std::size_t>(t - begin)] |= bit;
    }
    std::array<long, 4> spent{};  // idle, compute, exposed communication, exposed copies
    for (const char w : what) ++spent[(w & 1) ? 1 : (w & 2) ? 2 : (w & 4) ? 3 : 0];
    const auto& steps = job.ranks[static_cast<std::size_t>(rank)].steps.steps;
    ASSERT_EQ(steps.size(), 1U);
    EXPECT_EQ(steps[0].times.idle_ns, 1000 * spent[0]) << rank;
    EXPECT_EQ(steps[0].times.compute_ns, 1000 * spent[1]) << rank;
    EXPECT_EQ(steps[0].times.exposed_comm_ns, 1000 * spent[2]) << rank;
    EXPECT_EQ(steps[0].times.exposed_copy_ns, 1000 * spent[3]) << rank;
  }
  std::vector<double> held_up(8, 0);
  for (std::size_t c = 0; c < 8; ++c) {
    std::size_t last = 0;
    double sum = 0;
    for (std::size_t r = 0; r < 8; ++r) {
      ASSERT_EQ(durations[r].size(), 8U);
      if (durations[r][c] < durations[last][c]) last = r;
      sum += static_cast<double>(durations[r][c]);
    }
    held_up[last] += (sum - 8.0 * static_cast<double>(durations[last][c])) / 7;
  }
  EXPECT_EQ(job.skew.collectives.size(), 8U);
  EXPECT_EQ(job.skew.straggler(), 7);
  EXPECT_EQ(job.skew.straggler(),
            std::max_element(held_up.begin(), held_up.end()) - held_up.begin());
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_NEAR(static_cast<double>(job.skew.ranks[r].held_up_ns), 1000 * held_up[r], 8) << r;
  }
}

TEST_F(ImportSharedTraces, AMemoryTimelineIsNoTrace) {
  const std::string path =
      (shared_traces() / "hta" / "memory_analysis" / "memory_timeline.raw.gz").string();
  EXPECT_NE(testing::fault_of([&] {
              static_cast<void>(read_traces(path));
            }).find("is no trace that is known"),
            std::string::npos);
}

}  // namespace shared_traces_test
}  // namespace towtank
