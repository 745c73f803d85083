// SPDX-License-Identifier: Apache-2.0
/// The real traces beside the checkout, where there are any: every count and every sum of
/// durations is that of a second reading, which knows nothing of the first: whole files as
/// nlohmann/json values.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

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
