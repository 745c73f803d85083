// SPDX-License-Identifier: Apache-2.0
#include "sim/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "core/file.h"
#include "profiler/import/trace_reader.h"
#include "sim/longest_path.h"
#include "sim/simulate.h"
#include "tests/support/mutated.h"

namespace towtank {
namespace replay_test {

constexpr double kExact = 1e-12;

/// Events of one rank as text; times in us.
class Rank {
 public:
  explicit Rank(int rank) : rank_(rank) {}

  void event(const std::string& category, const std::string& name, int thread, double ts,
             double dur, const std::string& args = "") {
    if (!events_.empty()) events_ += ",";
    events_ += R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" +
               std::to_string(category == "kernel" ? 0 : 9) + R"(,"tid":)" +
               std::to_string(thread) + R"(,"ts":)" + std::to_string(ts) + R"(,"dur":)" +
               std::to_string(dur) + R"(,"args":{)" + args + "}}";
  }
  void call(const std::string& name, double ts, double dur, int correlation = -1) {
    event("cuda_runtime", name, 1, ts, dur,
          correlation < 0 ? "" : R"("correlation":)" + std::to_string(correlation));
  }
  void kernel(const std::string& name, int stream, double ts, double dur, int correlation) {
    event("kernel", name, stream, ts, dur,
          R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
              std::to_string(correlation));
  }
  [[nodiscard]] Trace trace() const {
    ByteSource source =
        ByteSource::of_text("rank" + std::to_string(rank_) + ".json",
                            R"({"distributedInfo":{"rank":)" + std::to_string(rank_) +
                                R"(,"world_size":2},"traceEvents":[)" + events_ + "]}");
    return reader_of(source.peek(4096))->read(source);
  }

 private:
  int rank_;
  std::string events_;
};

double replayed(const std::vector<Trace>& traces, const ReplayOptions& options = {}) {
  return longest_path(replay(analyse_traces(traces), options).step.tasks).makespan();
}

/// Two kernels on a stream; the host waits for them, thinks for 5 us and launches a third.
Rank waiting_rank() {
  Rank r(0);
  r.event("user_annotation", "ProfilerStep#1", 1, 0, 100);
  r.call("cudaLaunchKernel", 1, 2, 1);
  r.call("cudaLaunchKernel", 4, 2, 2);
  r.kernel("a", 7, 6, 20, 1);
  r.kernel("b", 7, 26, 30, 2);
  r.call("cudaStreamSynchronize", 7, 51);  // until 58: b ends at 56
  r.call("cudaLaunchKernel", 63, 2, 3);
  r.kernel("c", 7, 68, 10, 3);
  return r;
}

TEST(UnitReplay, RunsAsRecorded) {
  const std::vector<Trace> traces{waiting_rank().trace()};
  const Replay made = replay(analyse_traces(traces));
  EXPECT_NEAR(made.recorded.value, 78e-6, kExact);
  EXPECT_NEAR(longest_path(made.step.tasks).makespan(), 78e-6, kExact);
  EXPECT_EQ(made.unexplained, 0);
}

/// All device work takes half as long: a 10, b 15 from 16, so it ends at 31; the call returns 2 us
/// later, c is launched 5 us after that, begins 5 us after its call and takes 5: 48.
TEST(UnitReplay, AWaitOfTheHostFollowsTheDevice) {
  ReplayOptions faster;
  faster.stragglers = {{0, 0.5}};
  EXPECT_NEAR(replayed({waiting_rank().trace()}, faster), (31 + 2 + 5 + 5 + 5) * 1e-6, kExact);
}

/// Each rank computes, reduces on a stream of its own, computes again upon the result.
std::vector<Trace> meeting_ranks() {
  std::vector<Trace> out;
  for (int r = 0; r < 2; ++r) {
    Rank rank(r);
    const double compute = r == 0 ? 20 : 50;
    rank.event("user_annotation", "ProfilerStep#1", 1, 0, 100);
    rank.call("cudaLaunchKernel", 1, 1, 1);
    rank.call("cudaLaunchKernel", 3, 1, 2);
    rank.call("cudaLaunchKernel", 5, 1, 3);
    rank.kernel("gemm", 7, 4, compute, 1);
    rank.kernel("ncclDevKernel_AllReduce_Sum", 20, 4 + compute, 64 - 4 - compute, 2);
    rank.kernel("gemm", 7, 64, compute, 3);
    out.push_back(rank.trace());
  }
  return out;
}

TEST(UnitReplay, ACollectiveBeginsWhenTheLastRankIsThere) {
  EXPECT_NEAR(replayed(meeting_ranks()), (64 + 50) * 1e-6, kExact);
  // The slow rank as fast as the other: 20, the wire's 10, 20 again, behind the first 4.
  ReplayOptions even;
  even.stragglers = {{1, 0.4}};
  EXPECT_NEAR(replayed(meeting_ranks(), even), (4 + 20 + 10 + 20) * 1e-6, kExact);
}

TEST(LawReplay, SlowerRanksNeverHelp) {
  double before = 0;
  for (const double slowdown : {0.25, 0.5, 1.0, 1.5, 3.0}) {
    ReplayOptions options;
    options.stragglers = {{0, slowdown}};
    const double now = replayed(meeting_ranks(), options);
    EXPECT_GE(now, before);
    before = now;
  }
}

/// Two ranks that run their collectives in opposite orders could not have done so as matched.
TEST(UnitReplay, CollectivesThatCannotMeetRunApart) {
  std::vector<Trace> traces;
  for (int r = 0; r < 2; ++r) {
    Rank rank(r);
    rank.call("cudaLaunchKernel", 1, 1, 1);
    rank.call("cudaLaunchKernel", 3, 1, 2);
    rank.kernel(r == 0 ? "ncclKernel_AllReduce_x" : "ncclKernel_AllGather_x", 20, 4, 10, 1);
    rank.kernel(r == 0 ? "ncclKernel_AllGather_x" : "ncclKernel_AllReduce_x", 20, 14, 10, 2);
    traces.push_back(rank.trace());
  }
  const Replay made = replay(analyse_traces(traces));
  EXPECT_TRUE(made.collectives_apart);
  EXPECT_GT(longest_path(made.step.tasks).makespan(), 0);
}

/// Traces with changed bytes make graphs that finish, or none.
TEST(LawReplay, AnyTraceMakesAGraphThatFinishes) {
  const std::string text = read_file(
      (std::filesystem::path(TOWTANK_SOURCE_DIR) / "examples" / "traces" / "rank0.json").string());
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<Trace> traces;
    for (int r = 0; r < 2; ++r) {
      try {
        ByteSource source = ByteSource::of_text("m", testing::mutated(text, rng));
        const auto reader = reader_of(source.peek(4096));
        if (reader) traces.push_back(reader->read(source));
      } catch (const InputError&) {
        continue;
      }
    }
    if (traces.size() < 2) continue;
    traces[0].rank = 0;
    traces[1].rank = 1;
    const JobTrace job = analyse_traces(std::move(traces));
    if (replayable_steps(job) == 0) continue;
    const Replay made = replay(job);
    EXPECT_GE(longest_path(made.step.tasks).makespan(), 0) << i;
  }
}

/// The engine and the longest path find the same, and what was recorded: within 5 % is asked.
TEST(ValidateReplay, TheDlrmStepOnEightRanks) {
  const auto file = std::filesystem::path(TOWTANK_SOURCE_DIR) / ".." / "shared" / "data" /
                    "traces" / "param" / "dlrm_kineto.tar.gz";
  if (!std::filesystem::exists(file)) {
    std::cerr << "SKIPPED: no " << file << "; replay is tested on synthetic traces only\n";
    GTEST_SKIP() << "no " << file;
  }
  const Replay made = replay(analyse_traces(read_traces(file.string())));
  const SimulationResult result = simulate(made.step.tasks, made.step.network);
  ASSERT_TRUE(std::holds_alternative<TaskTimes>(result));
  const double simulated = std::get<TaskTimes>(result).makespan();
  EXPECT_NEAR(simulated, made.recorded.value, 0.05 * made.recorded.value);
  EXPECT_NEAR(simulated, longest_path(made.step.tasks).makespan(), 1e-9 * simulated);
  EXPECT_EQ(made.step.tasks.actors.size(), 8U);
}

}  // namespace replay_test
}  // namespace towtank
