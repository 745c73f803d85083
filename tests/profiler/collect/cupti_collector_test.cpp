// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_collector.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "profiler/collect/join_activities.h"
#include "tests/profiler/collect/fake_cupti.h"

namespace towtank {
namespace {

std::unique_ptr<CuptiCollector> started(FakeCupti& fake, const CuptiOptions& options = {}) {
  auto result = start_cupti(fake.library(), options);
  return std::get<std::unique_ptr<CuptiCollector>>(std::move(result));
}

constexpr std::size_t kRecord = sizeof(FakeCupti::Record);

TEST(UnitCuptiCollector, RecordsComeBackWithNamesAndInnermostMarks) {
  FakeCupti fake;
  auto collector = started(fake);
  {
    LayerMark layer(*collector, 1);
    fake.launch(kernel_at(10, 7, 1, 2), "gemm");
    {
      LayerMark op(*collector, 2);
      fake.launch(kernel_at(11, 7, 3, 4), "softmax");
    }
    fake.launch(kernel_at(12, 7, 5, 6), "gemm");
  }
  fake.launch(kernel_at(13, 7, 7, 8), "late");
  const ActivityRecording r = collector->finish();
  EXPECT_EQ(r.names, (std::vector<std::string>{"", "gemm", "softmax", "late"}));
  ASSERT_EQ(r.activities.size(), 4U);
  EXPECT_EQ(r.names[r.activities[2].name], "gemm");
  EXPECT_EQ(r.links, (std::vector<MarkLink>{{10, 1}, {11, 2}, {12, 1}}));
  const JoinedActivities joined = join_activities(r);
  EXPECT_EQ(joined.marks.at(0).kernels, 2);
  EXPECT_EQ(joined.marks.at(1).kernels, 1);
  EXPECT_TRUE(fake.enabled.empty()) << "recording was left on";
}

TEST(UnitCuptiCollector, ManySmallBuffersLoseNothingWhileTheReaderKeepsUp) {
  FakeCupti fake;
  auto collector = started(fake, {.buffer_bytes = 4 * kRecord, .buffers = 400});
  for (std::uint32_t i = 1; i <= 1000; ++i) fake.launch(kernel_at(i, 7, 1, 2), "k");
  const ActivityRecording r = collector->finish();
  EXPECT_EQ(r.activities.size(), 1000U);
  EXPECT_EQ(r.lost, 0);
  EXPECT_EQ(r.refused, 0);
}

TEST(UnitCuptiCollector, WhatIsBeyondTheLimitIsCounted) {
  FakeCupti fake;
  auto collector = started(fake, {.most_records = 10});
  for (std::uint32_t i = 1; i <= 25; ++i) fake.launch(kernel_at(i, 7, 1, 2), "k");
  const ActivityRecording r = collector->finish();
  EXPECT_EQ(r.activities.size(), 10U);
  EXPECT_EQ(r.beyond, 15);
}

TEST(UnitCuptiCollector, UnknownRecordsAreCountedAndTheOthersRead) {
  FakeCupti fake;
  auto collector = started(fake);
  fake.launch(kernel_at(1, 7, 1, 2), "k");
  fake.emit_garbage();
  fake.launch(kernel_at(2, 7, 3, 4), "k");
  const ActivityRecording r = collector->finish();
  EXPECT_EQ(r.activities.size(), 2U);
  EXPECT_EQ(r.unreadable, 1);
}

TEST(UnitActivityBuffers, ARequestWithoutAFreeBufferIsRefusedAndDoesNotWait) {
  ActivityBuffers buffers(64, 2);
  const auto a = buffers.request();
  const auto b = buffers.request();
  EXPECT_EQ(a.size(), 64U);
  EXPECT_TRUE(buffers.request().empty());
  EXPECT_EQ(buffers.refused(), 1);
  buffers.complete(b.data(), 10);
  EXPECT_TRUE(buffers.request().empty()) << "filled, not yet read";
  const auto filled = buffers.next();
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->size(), 10U);
  EXPECT_EQ(filled->data(), b.data());
  buffers.give_back(*filled);
  EXPECT_EQ(buffers.request().data(), b.data());
}

TEST(UnitActivityBuffers, ABufferThatIsNotOneOfThemIsForeign) {
  ActivityBuffers buffers(64, 1);
  std::byte other[64];
  buffers.complete(other, 8);
  const auto own = buffers.request();
  buffers.complete(own.data(), 65);
  EXPECT_EQ(buffers.foreign(), 2);
}

TEST(FaultCuptiCollector, WhatCannotBeRecordedIsSaidAndTheRestTurnedOff) {
  FakeCupti fake;
  fake.refuses = CuptiRecords::kSets;
  const auto result = start_cupti(fake.library());
  ASSERT_TRUE(std::holds_alternative<std::string>(result));
  EXPECT_EQ(std::get<std::string>(result),
            "CUPTI does not record: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
  EXPECT_TRUE(fake.enabled.empty());
}

TEST(UnitCuptiLoad, WithoutAGpuItSaysWhyInOneSentence) {
  const auto why = why_no_cupti();
  if (!why) GTEST_SKIP() << "kernels can be recorded here";
  EXPECT_FALSE(why->empty());
  EXPECT_EQ(why->find('\n'), std::string::npos);
}

/// Kernels, copies and sets of a recorded ResNet-50 step, with their correlations and the ops that
/// launched them as marks; shuffled as buffers of several threads would be.
TEST(ImportCuptiCollector, ARecordedStepIsJoinedAsItsFileSays) {
  const std::string path =
      TOWTANK_SOURCE_DIR "/../shared/data/traces/kineto_samples/resnet50_w0_a.pt.trace.json.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared data here: " << path;
  FILE* pipe = popen(("gzip -dc '" + path + "'").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  const nlohmann::json trace = nlohmann::json::parse(pipe);
  ASSERT_EQ(pclose(pipe), 0);

  FakeCupti fake;
  auto collector = started(fake, {.buffer_bytes = 100 * kRecord, .buffers = 300});
  std::map<std::uint64_t, int> kernels_of_op;  // the independent count
  int kernels = 0, copies = 0, sets = 0;
  std::vector<MarkLink> late;
  for (const auto& event : trace.at("traceEvents")) {
    const std::string kind = event.value("cat", "");
    if (kind != "Kernel" && kind != "Memcpy" && kind != "Memset") continue;
    const auto& args = event.at("args");
    Activity a;
    a.correlation = args.at("correlation").get<std::uint32_t>();
    a.stream = args.at("stream").get<std::uint32_t>();
    a.start_ns = event.at("ts").get<std::int64_t>() % 1'000'000'000'000 * 1000;
    a.end_ns = a.start_ns + event.at("dur").get<std::int64_t>() * 1000;
    if (kind == "Memcpy") a.kind = ActivityKind::kCopy;
    if (kind == "Memset") a.kind = ActivityKind::kSet;
    const auto op = args.at("external id").get<std::uint64_t>();
    if (kind == "Kernel") ++kernels_of_op[op];
    (kind == "Kernel" ? kernels : kind == "Memcpy" ? copies : sets)++;
    // Every other mark arrives after all activities.
    if (a.correlation % 2 == 0) {
      fake.emit(MarkLink{a.correlation, op});
    } else {
      late.push_back({a.correlation, op});
    }
    fake.emit(a, event.at("name").get_ref<const std::string&>().c_str());
  }
  for (const MarkLink& link : late) fake.emit(link);
  const JoinedActivities joined = join_activities(collector->finish());
  // Counted in the file by `grep -c`.
  EXPECT_EQ(kernels, 8772);
  EXPECT_EQ(copies, 12);
  EXPECT_EQ(sets, 312);
  EXPECT_EQ(joined.activities.size(), static_cast<std::size_t>(kernels + copies + sets));
  EXPECT_EQ(count_of(joined.stats, "kernels without a mark"), 0);
  int joined_kernels = 0;
  for (const MarkedTime& mark : joined.marks) {
    joined_kernels += mark.kernels;
    EXPECT_EQ(mark.kernels, kernels_of_op[mark.mark]) << mark.mark;
  }
  EXPECT_EQ(joined_kernels, kernels);
}

}  // namespace
}  // namespace towtank
