// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/nsys/nsys_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "profiler/analysis/job_trace.h"
#include "tests/profiler/trace/one_trace.h"
#include "tests/support/expect_fault.h"

#ifdef TOWTANK_TEST_SQLITE
#include <sqlite3.h>

namespace towtank {
namespace nsys_reader_test {

using testing::counted;

/// An SQLite file made of statements, as bytes.
std::string database(const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error == nullptr ? "" : error);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return out;
}

// Process 3: 3 * 0x1000000 = 50331648.
const std::string kExport = R"(
  CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
  INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'ProfilerStep#4'),
    (4, 'ncclDevKernel_AllReduce_Sum');
  CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT, totalMemory INT);
  INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85018279936);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT,
    correlationId INT, globalPid INT, shortName INT, demangledName INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 5000, 0, 7, 11, 50331648, 1, 1),
    (5500, 5400, 0, 7, 12, 50331648, 1, 1), (6000, 9000, 0, 20, 13, 50331648, 4, 4);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT,
    correlationId INT, bytes INT, copyKind INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (9000, 9500, 0, 7, 14, 4096, 1);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT,
    nameId INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, 50331653, 11, 2),
    (700, 800, 50331653, 13, 2);
  CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
  INSERT INTO NVTX_EVENTS VALUES (100, 20000, 59, NULL, 3, 50331653),
    (450, 650, 59, 'aten::mm, op_id = 3', NULL, 50331653), (1, NULL, 34, 'mark', NULL, 50331653);
)";

TEST(ImportNsys, ReadsKernelsCallsCopiesAndRanges) {
  const Trace t = testing::trace_of(database(kExport), "run.sqlite");
  EXPECT_EQ(t.format, "Nsight Systems");
  EXPECT_EQ(t.clock, TraceClock::kCapture);
  ASSERT_EQ(t.devices.size(), 1U);
  EXPECT_EQ(t.devices[0].memory_bytes, 85018279936);
  ASSERT_EQ(t.events.size(), 7U);
  EXPECT_EQ(counted(t.stats, "durations under 0"), 1);
  EXPECT_EQ(counted(t.stats, "marks and ranges without an end"), 1);
  const JobTrace job = analyse_traces({t});
  const RankTrace& rank = job.ranks[0];
  EXPECT_EQ(rank.steps.source, StepSource::kAnnotations);
  ASSERT_EQ(rank.steps.steps.size(), 1U);
  EXPECT_EQ(rank.steps.steps[0].length_ns(), 8500);
  EXPECT_EQ(rank.steps.steps[0].times.compute_ns, 4000);
  EXPECT_EQ(rank.steps.steps[0].times.exposed_comm_ns, 3000);
  EXPECT_EQ(rank.steps.steps[0].times.exposed_copy_ns, 500);
  EXPECT_EQ(rank.joins.without_launch, 1);  // the copy
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    if (t.name_of(rank.trace.events[i]) != "gemm") continue;
    ASSERT_GE(rank.joins.op[i], 0);
    EXPECT_EQ(t.name_of(rank.trace.events[static_cast<std::size_t>(rank.joins.op[i])]), "aten::mm");
  }
}

/// From a file SQLite reads it in place, from a pipe or archive out of memory: the same.
TEST(DifferNsys, FilesAndMemoryAreReadAlike) {
  const auto path = std::filesystem::temp_directory_path() / "towtank_nsys_test.sqlite";
  std::ofstream(path, std::ios::binary) << database(kExport);
  const std::vector<Trace> traces = read_traces(path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].events.size(), 7U);
}

TEST(FaultNsys, OtherDatabasesAreRefused) {
  EXPECT_FAULT(testing::trace_of(database("CREATE TABLE a(b);"), "x.db"),
               "x.db: has no table of Nsight Systems (it is an SQLite file of something else)");
  EXPECT_FAULT(
      testing::trace_of(database("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(_id_ INT);"), "x"),
      "x: has the tables of nvprof, not of Nsight Systems (those are not read). Record it "
      "with nsys and export it again.");
  std::string broken = database(kExport);
  std::fill(broken.begin() + 100, broken.begin() + 1000, '\x7f');
  EXPECT_NE(testing::fault_of([&] {
              static_cast<void>(testing::trace_of(broken, "x"));
            }).find("cannot be read as SQLite"),
            std::string::npos);
}

}  // namespace nsys_reader_test
}  // namespace towtank
#endif
