// SPDX-License-Identifier: Apache-2.0
/// Joins, steps, collectives, skew and profiles of traces that are small enough to follow by hand.
#include <gtest/gtest.h>

#include "profiler/analysis/intervals.h"
#include "profiler/analysis/trace_profile.h"
#include "profiler/analysis/trace_summary.h"
#include "profiler/profile_json.h"
#include "tests/profiler/trace/one_trace.h"

namespace towtank {
namespace trace_analysis_test {

using testing::counted;
using testing::trace_of;

/// A trace under construction; times in us.
class Recorder {
 public:
  explicit Recorder(int rank = -1) : rank_(rank) {}

  void host(const std::string& category, const std::string& name, double ts, double dur,
            const std::string& args = "") {
    add(category, name, "1", "1", ts, dur, args);
  }
  void device(const std::string& category, const std::string& name, int stream, double ts,
              double dur, int correlation, const std::string& args = "") {
    add(category, name, "0", std::to_string(stream), ts, dur,
        R"("device": 0, "stream": )" + std::to_string(stream) + R"(, "correlation": )" +
            std::to_string(correlation) + (args.empty() ? "" : ", " + args));
  }
  /// An op, its launch and its kernel.
  void run(const std::string& op, const std::string& op_args, const std::string& kernel, int stream,
           double launch, double ts, double dur, const std::string& kernel_args = "") {
    const int id = next_++;
    host("cpu_op", op, launch, 3, op_args);
    host("cuda_runtime", "cudaLaunchKernel", launch + 1, 1,
         R"("correlation": )" + std::to_string(id));
    device("kernel", kernel, stream, ts, dur, id, kernel_args);
  }
  [[nodiscard]] Trace trace() const {
    std::string text = R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], )";
    if (rank_ >= 0) {
      text += R"("distributedInfo": {"rank": )" + std::to_string(rank_) + R"(, "world_size": 2}, )";
    }
    return trace_of(text + R"("traceEvents": [)" + events_ + "]}");
  }

 private:
  void add(const std::string& category, const std::string& name, const std::string& pid,
           const std::string& tid, double ts, double dur, const std::string& args) {
    if (!events_.empty()) events_ += ",\n";
    events_ += R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": )" +
               pid + R"(, "tid": )" + tid + R"(, "ts": )" + std::to_string(ts) + R"(, "dur": )" +
               std::to_string(dur) + R"(, "args": {)" + args + "}}";
  }
  int rank_;
  int next_ = 1;
  std::string events_;
};

const std::string kProduct =
    R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["c10::BFloat16", "c10::BFloat16"])";
std::string reduce(int sequence) {
  return R"("Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
            "Group size": 2, "dtype": "Float", "Process Group Name": "0", "Seq": )" +
         std::to_string(sequence);
}

JobTrace one(const Trace& trace, const std::string& marker = "") {
  return analyse_traces({trace}, {marker});
}

TEST(UnitTimeSet, CountsWhatIsCoveredOnce) {
  const TimeSet a({{0, 10}, {5, 15}, {20, 30}, {7, 7}});
  EXPECT_EQ(a.length(), 25);
  const TimeSet b({{12, 25}});
  EXPECT_EQ(a.common(b), 3 + 5);
  EXPECT_EQ(a.joined(b).length(), 30);
}

TEST(UnitTraceJoins, FindsLaunchesAndOps) {
  Recorder r;
  r.host("cpu_op", "aten::linear", 0, 20);
  r.run("aten::mm", kProduct, "gemm", 7, 5, 30, 10);
  r.device("kernel", "lost", 7, 50, 1, 99);
  const Trace t = r.trace();
  const TraceJoins joins = join_events(t);
  EXPECT_EQ(joins.device_events, 2);
  EXPECT_EQ(joins.without_launch, 1);
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const std::string& name = t.name_of(t.events[i]);
    if (name == "gemm") {
      ASSERT_GE(joins.op[i], 0);
      EXPECT_EQ(t.name_of(t.events[static_cast<std::size_t>(joins.op[i])]), "aten::mm");
    }
    if (name == "aten::mm") {
      EXPECT_EQ(t.name_of(t.events[static_cast<std::size_t>(joins.parent[i])]), "aten::linear");
    }
    if (name == "lost") {
      EXPECT_EQ(joins.launch[i], -1);
    }
  }
}

/// Files of 2021 to 2023 repeat the correlation as External id: it must not be taken for an op's.
TEST(UnitTraceJoins, ExternalIdsThatRepeatCorrelationsNameNoOp) {
  Recorder r;
  r.host("cpu_op", "aten::add", 0, 5, R"("External id": 2)");
  r.run("aten::mm", R"("External id": 1)", "gemm", 7, 10, 30, 10, R"("External id": 1)");
  r.run("aten::mul", R"("External id": 5)", "k", 7, 20, 50, 10, R"("External id": 2)");
  const Trace t = r.trace();
  const TraceJoins joins = join_events(t);
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    if (t.name_of(t.events[i]) != "k") continue;
    EXPECT_EQ(t.name_of(t.events[static_cast<std::size_t>(joins.op[i])]), "aten::mul");
  }
}

/// One step of 100 us: compute 0-40, a collective 30-70, a copy 65-80, then nothing until 100.
TEST(UnitTraceSteps, PartsOfAStepAreToldApart) {
  Recorder r;
  r.host("user_annotation", "ProfilerStep#1", 0, 90);
  r.run("aten::mm", kProduct, "gemm", 7, 1, 200, 40);
  r.run("c10d::allreduce_", "", "ncclDevKernel_AllReduce_Sum", 20, 10, 230, 40, reduce(1));
  r.host("cuda_runtime", "cudaMemcpyAsync", 20, 1, R"("correlation": 50)");
  r.device("gpu_memcpy", "Memcpy HtoD", 8, 265, 15, 50);
  r.host("user_annotation", "ProfilerStep#2", 90, 90);
  r.run("aten::mm", kProduct, "gemm", 7, 95, 300, 40);
  const JobTrace job = one(r.trace());
  const TraceSteps& steps = job.ranks[0].steps;
  EXPECT_EQ(steps.source, StepSource::kAnnotations);
  ASSERT_EQ(steps.steps.size(), 2U);
  const StepTimes& t = steps.steps[0].times;
  EXPECT_EQ(steps.steps[0].length_ns(), 100'000);
  EXPECT_EQ(t.compute_ns, 40'000);
  EXPECT_EQ(t.comm_ns, 40'000);
  EXPECT_EQ(t.exposed_comm_ns, 30'000);
  EXPECT_EQ(t.exposed_copy_ns, 10'000);
  EXPECT_EQ(t.idle_ns, 20'000);
  EXPECT_EQ(steps.steps[1].length_ns(), 40'000);
}

TEST(UnitTraceSteps, WorkOfBeforeTheCaptureIsLeftOut) {
  Recorder r;
  r.device("kernel", "old", 7, 1, 5, 99);
  r.host("user_annotation", "ProfilerStep#1", 0, 90);
  r.run("aten::mm", kProduct, "gemm", 7, 10, 20, 40);
  const JobTrace job = one(r.trace());
  EXPECT_EQ(job.ranks[0].steps.events_outside, 1);
  EXPECT_EQ(job.ranks[0].steps.steps[0].length_ns(), 40'000);
}

TEST(UnitTraceSteps, AMarkerOfTheUserCounts) {
  Recorder r;
  for (int i = 0; i < 3; ++i) {
    r.host("user_annotation", "iteration " + std::to_string(i), 100 * i, 100);
    r.run("aten::mm", kProduct, "gemm", 7, 100 * i + 5, 100 * i + 10, 40);
  }
  const JobTrace job = one(r.trace(), "iteration ");
  ASSERT_EQ(job.ranks[0].steps.steps.size(), 3U);
  EXPECT_EQ(job.ranks[0].steps.steps[0].length_ns(), 100'000);
}

TEST(UnitTraceSteps, RepetitionIsFoundAndStartsBehindThePause) {
  Recorder r;
  // Five rounds of a, b, b with a pause of 60 before each a; then one more kernel.
  for (int i = 0; i < 5; ++i) {
    const double t = 100.0 * i;
    r.run("x", "", "a", 7, t, t + 1, 10);
    r.run("x", "", "b", 7, t + 5, t + 11, 10);
    r.run("x", "", "b", 7, t + 9, t + 21, 10);
  }
  const JobTrace job = one(r.trace());
  const TraceSteps& steps = job.ranks[0].steps;
  EXPECT_EQ(steps.source, StepSource::kRepetition);
  ASSERT_EQ(steps.steps.size(), 5U);
  EXPECT_EQ(steps.steps[1].length_ns(), 100'000);
  EXPECT_EQ(steps.steps[1].times.idle_ns, 70'000);
}

TEST(LawPeriod, FindsThePeriodOfAnyRepeatedSequence) {
  for (std::size_t length = 1; length <= 12; ++length) {
    std::vector<std::int32_t> sequence;
    for (std::size_t i = 0; i < 5 * length + 2; ++i) {
      sequence.push_back(static_cast<std::int32_t>(i % length));
    }
    EXPECT_EQ(period_of(sequence).length, length);
  }
  EXPECT_EQ(period_of({1, 2, 3, 4, 5, 6, 7}).length, 0U);
  EXPECT_EQ(period_of({}).length, 0U);
}

TEST(UnitTraceCollectives, PayloadIsCountedAsNcclTestsDoes) {
  Recorder r(0);
  const auto collective = [](const std::string& name, int in, int out) {
    return R"("Collective name": ")" + name + R"(", "In msg nelems": )" + std::to_string(in) +
           R"(, "Out msg nelems": )" + std::to_string(out) +
           R"(, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "1")";
  };
  r.run("a", "", "ncclDevKernel_AllGather", 20, 1, 10, 5, collective("_allgather_base", 100, 800));
  r.run("b", "", "ncclDevKernel_ReduceScatter", 20, 5, 20, 5,
        collective("_reduce_scatter_base", 800, 100));
  r.run("c", "", "ncclKernel_SendRecv", 20, 9, 30, 5, collective("all_to_all", 64, 64));
  // An older file: the annotation says what it is, the op's input how much.
  r.host("cpu_op", "record_param_comms", 40, 10,
         R"("Input Dims": [[6144], []], "Input type": ["float", "Scalar"])");
  r.host("user_annotation", "nccl:all_to_all", 41, 8);
  r.host("cuda_runtime", "cudaLaunchKernel", 42, 1, R"("correlation": 77)");
  r.device("kernel", "ncclKernel_SendRecv_RING", 20, 60, 5, 77);
  r.run("e", "", "ncclDevKernel_Generic", 20, 70, 80, 5);
  const JobTrace job = one(r.trace());
  const auto& calls = job.ranks[0].calls;
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(calls[0].op, Collective::kAllGather);
  EXPECT_EQ(calls[0].payload, Bytes{800 * 2});
  EXPECT_EQ(calls[1].op, Collective::kReduceScatter);
  EXPECT_EQ(calls[1].payload, Bytes{800 * 2});
  EXPECT_EQ(calls[2].op, Collective::kAllToAll);
  EXPECT_EQ(calls[2].ranks, 8);
  EXPECT_EQ(calls[3].op, Collective::kAllToAll);
  EXPECT_EQ(calls[3].payload, Bytes{6144 * 4});
  EXPECT_TRUE(calls[3].ranks_assumed);
  EXPECT_EQ(calls[4].op, std::nullopt);
  EXPECT_EQ(calls[4].payload, std::nullopt);
}

/// Rank 1 comes 30 us late to the first collective and rank 0 10 us to the second; rank 1's clock
/// is 1000 us ahead. The wire takes 5 us.
std::vector<Trace> two_ranks() {
  Recorder a(0), b(1);
  a.run("x", "", "ncclDevKernel_AllReduce", 20, 1, 10, 35, reduce(1));
  b.run("x", "", "ncclDevKernel_AllReduce", 20, 1001, 1040, 5, reduce(1));
  a.run("x", "", "ncclDevKernel_AllReduce", 20, 50, 70, 5, reduce(2));
  b.run("x", "", "ncclDevKernel_AllReduce", 20, 1050, 1060, 15, reduce(2));
  return {b.trace(), a.trace()};
}

TEST(UnitRankSkew, TellsTheWireFromTheWaiting) {
  const JobTrace job = analyse_traces(two_ranks());
  ASSERT_EQ(job.ranks[0].trace.rank, 0);
  ASSERT_EQ(job.skew.collectives.size(), 2U);
  EXPECT_EQ(job.skew.collectives[0].wire_ns, 5'000);
  EXPECT_EQ(job.skew.collectives[0].parts[job.skew.collectives[0].last].rank, 1U);
  EXPECT_EQ(job.skew.ranks[0].waited_ns, 30'000);
  EXPECT_EQ(job.skew.ranks[1].waited_ns, 10'000);
  EXPECT_EQ(job.skew.ranks[1].held_up_ns, 30'000);
  EXPECT_EQ(job.skew.straggler(), 1);
  EXPECT_EQ(job.skew.offset_ns[1] - job.skew.offset_ns[0], 1'000'000);
}

TEST(UnitTraceSummary, CollectivesOfSeveralRanksTakeWhatTheWireTakes) {
  const TraceSummary s = summarise(analyse_traces(two_ranks()));
  ASSERT_EQ(s.collectives.size(), 1U);
  EXPECT_EQ(s.collectives[0].calls, 2);
  EXPECT_DOUBLE_EQ(s.collectives[0].wire.value, 5e-6);
  EXPECT_DOUBLE_EQ(s.collectives[0].in_kernel.value, (35 + 5 + 5 + 15) / 4.0 * 1e-6);
  // 4000 bytes in 5 us; 2 (n-1)/n = 1 for two ranks.
  EXPECT_DOUBLE_EQ(s.collectives[0].bus->value, 4000 / 5e-6);
  // From 10 us of rank 0 to 75 us of both, clocks aligned.
  ASSERT_TRUE(s.step.job);
  EXPECT_DOUBLE_EQ(s.step.job->value, 65e-6);
}

TEST(UnitTraceProfile, MeasuresOpsAndCollectivesForCalibration) {
  Recorder r(0);
  r.host("user_annotation", "ProfilerStep#1", 0, 200);
  r.run("aten::mm", kProduct, "gemm", 7, 1, 10, 40);
  r.run("aten::mm", kProduct, "gemm", 7, 5, 60, 44);
  r.run("aten::topk", "", "sort", 7, 9, 110, 5);
  r.run("c10d", "", "ncclDevKernel_AllReduce", 20, 13, 120, 30, reduce(1));
  r.run("c10d", "", "ncclDevKernel_AllReduce", 20, 17, 160, 20, reduce(2));
  ImportOptions options;
  options.fabric_intranode = "nvlink4";
  const Profile p = trace_profile(one(r.trace()), options);
  EXPECT_EQ(p.device_kind, "h100-sxm-80g");
  ASSERT_EQ(p.ops.size(), 1U);
  EXPECT_EQ(p.ops[0].signature.kind, OpKind::kMatmul);
  EXPECT_DOUBLE_EQ(p.ops[0].signature.work.value, 2.0 * 64 * 32 * 16);
  EXPECT_DOUBLE_EQ(p.ops[0].time.median.value, 42e-6);
  EXPECT_EQ(p.ops[0].time.repeats, 2);
  ASSERT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(p.collectives[0].payload, Bytes{4000});
  EXPECT_DOUBLE_EQ(p.collectives[0].time.median.value, 20e-6);  // of one rank: the least
  EXPECT_EQ(counted(p.stats, "kernels whose work is not known: shown, but not in the profile"), 1);
  const Profile again = parse_profile(JsonFile::parse(profile_text(p), "p.json"));
  EXPECT_EQ(again.ops.size(), 1U);
  EXPECT_EQ(again.stats, p.stats);
}

TEST(UnitTraceLayers, BackwardWorkIsThatOfTheForwardLayer) {
  Recorder r;
  r.host("user_annotation", "ProfilerStep#1", 0, 500);
  for (int i = 0; i < 2; ++i) {
    const double t = 50.0 * i;
    r.host("python_function", "nn.Module: Block_" + std::to_string(i), t, 20);
    r.run("aten::mm", R"("Sequence number": )" + std::to_string(7 + i) + ", " + kProduct, "gemm", 7,
          t + 1, t + 100, 10 + i);
  }
  for (int i = 1; i >= 0; --i) {
    const double t = 300 - 50.0 * i;
    r.host("cpu_op", "autograd::engine::evaluate_function: MmBackward0", t, 20,
           R"("Sequence number": )" + std::to_string(7 + i));
    r.run("aten::mm", kProduct, "gemm", 7, t + 1, t + 100, 20);
  }
  const JobTrace job = one(r.trace());
  const auto layers = layer_times(job.ranks[0].trace, job.ranks[0].joins, job.ranks[0].steps);
  ASSERT_TRUE(layers);
  EXPECT_EQ(layers->name, "Block");
  EXPECT_EQ(layers->instances, 2);
  EXPECT_EQ(layers->forward_ns, 21'000);
  EXPECT_EQ(layers->backward_ns, 40'000);
  EXPECT_EQ(layers->least_ns, 30'000);
}

/// Whatever the events, the parts of a step sum to its length.
TEST(LawTraceSteps, PartsSumToTheWindow) {
  std::uint32_t seed = 12345;
  const auto random = [&](std::uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return static_cast<double>((seed >> 8U) % below);
  };
  for (int round = 0; round < 50; ++round) {
    Recorder r;
    r.host("user_annotation", "ProfilerStep#1", 0, 1000);
    for (int i = 0; i < 30; ++i) {
      const bool comm = random(3) == 0;
      r.run("x", "", comm ? "ncclDevKernel_AllReduce" : "gemm", static_cast<int>(random(3)),
            5.0 * i, random(1000), random(60));
    }
    const JobTrace job = one(r.trace());
    for (const TraceStep& step : job.ranks[0].steps.steps) {
      const StepTimes& t = step.times;
      EXPECT_EQ(t.compute_ns + t.exposed_comm_ns + t.exposed_copy_ns + t.idle_ns, step.length_ns());
      EXPECT_GE(t.idle_ns, 0);
      EXPECT_LE(t.exposed_comm_ns, t.comm_ns);
    }
  }
}

}  // namespace trace_analysis_test
}  // namespace towtank
