// SPDX-License-Identifier: Apache-2.0
#include "validate/run/run_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/expect_fault.h"

namespace towtank {
namespace run_record_test {

Span span(SpanKind kind, double begin, double end) {
  Span s;
  s.kind = kind;
  s.begin = begin;
  s.end = end;
  s.cpu = (end - begin) / 2;
  return s;
}

Span message(SpanKind kind, int peer, int tag, double begin, double end) {
  Span s = span(kind, begin, end);
  s.peer = peer;
  s.tag = tag;
  return s;
}

/// Rank 0 sends at 3; rank 1 has waited since 1 and has the message at 3.5.
RunRecord two_ranks() {
  RunRecord run;
  run.backend = "gloo";
  run.torch = "1.13.0";
  run.ranks.resize(2);
  run.ranks[0] = {0,
                  "a",
                  {{0.0,
                    {span(SpanKind::kStep, 0, 10), span(SpanKind::kForward, 0, 3),
                     message(SpanKind::kSend, 1, 4, 3, 3), span(SpanKind::kBackward, 4, 8),
                     span(SpanKind::kRecompute, 4, 5), span(SpanKind::kWaitTensor, 4.5, 4.75),
                     span(SpanKind::kOptimizer, 8, 10), span(SpanKind::kWaitData, 8, 9)}}},
                  {{"parameters", 100}}};
  run.ranks[1] = {1,
                  "a",
                  {{2.5,
                    {span(SpanKind::kStep, 0, 8), span(SpanKind::kForward, 1, 6),
                     message(SpanKind::kWaitPipeline, 0, 4, 1, 3.5)}}},
                  {{"parameters", 50}}};
  return run;
}

TEST(UnitRunRecord, PartsAreWhatIsNotNestedDeeper) {
  const MeasuredStep m = measure(two_ranks(), 0)[0];
  EXPECT_DOUBLE_EQ(m.step.value, 10);
  EXPECT_DOUBLE_EQ(m.compute.value, 3 + (4 - 1));  // forward, backward less recomputation
  EXPECT_DOUBLE_EQ(m.recompute.value, 1 - 0.25);   // less the wait in it
  EXPECT_DOUBLE_EQ(m.exposed_tensor.value, 0.25);
  EXPECT_DOUBLE_EQ(m.optimizer.value, 2 - 1);
  EXPECT_DOUBLE_EQ(m.exposed_data.value, 1);
  EXPECT_DOUBLE_EQ(m.other.value, 10 - 3 - 4 - 2);
  EXPECT_DOUBLE_EQ(m.total().value, 10);
}

TEST(UnitRunRecord, APipelineWaitIsBubbleUntilTheMessageIsSent) {
  RunRecord run = two_ranks();
  MeasuredStep m = measure(run, 0)[1];
  EXPECT_DOUBLE_EQ(m.bubble.value, 3 - 1);
  EXPECT_DOUBLE_EQ(m.exposed_pipeline.value, 3.5 - 3);
  EXPECT_DOUBLE_EQ(m.compute.value, 5 - 2.5);
  // Two machines have two clocks.
  run.ranks[0].host = "b";
  m = measure(run, 0)[1];
  EXPECT_DOUBLE_EQ(m.bubble.value, 2.5);
  EXPECT_DOUBLE_EQ(m.exposed_pipeline.value, 0);
}

TEST(UnitRunRecord, StepTimeIsTheLongestRanks) {
  RunRecord run = two_ranks();
  EXPECT_DOUBLE_EQ(median_step_time(run).value, 10);
  EXPECT_EQ(losses(run), std::vector<double>{2.5});
  // A second step of 20: the median of 10 and 20.
  for (RankRecord& rank : run.ranks) rank.steps.push_back({1.0, {span(SpanKind::kStep, 20, 40)}});
  EXPECT_DOUBLE_EQ(median_step_time(run).value, 15);
  EXPECT_DOUBLE_EQ(median_steps(run)[1].step.value, 14);
  EXPECT_EQ(losses(run), (std::vector<double>{2.5, 2.0}));
}

TEST(LawRunRecord, RoundTrip) {
  const std::string text = to_text(to_json(two_ranks()));
  const RunRecord read = parse_run_record(JsonFile::parse(text, "run.json"));
  EXPECT_EQ(to_text(to_json(read)), text);
}

TEST(FaultRunRecord, DamagedFiles) {
  const auto parse = [](const std::string& from, const std::string& to) {
    std::string text = to_json(two_ranks()).dump();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return parse_run_record(JsonFile::parse(text, "run.json"));
  };
  EXPECT_THROW(static_cast<void>(parse("\"forward\"", "\"foreward\"")), InputError);
  EXPECT_THROW(static_cast<void>(parse("\"towtank-run\"", "\"towtank-plan\"")), InputError);
  EXPECT_THROW(static_cast<void>(parse("\"step\"", "\"forward\"")), InputError);
  EXPECT_THROW(static_cast<void>(parse("\"host\"", "\"hots\"")), InputError);
}

TEST(UnitRunTrace, ASliceForEachSpan) {
  const auto events = nlohmann::json::parse(run_trace(two_ranks(), 0));
  ASSERT_EQ(events.size(), 2U + 7U + 3U);  // two names; all spans but the send
  EXPECT_EQ(events[2]["name"], "forward");
  EXPECT_DOUBLE_EQ(events[2]["dur"], 3e6);
}

}  // namespace run_record_test
}  // namespace towtank
