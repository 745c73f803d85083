// SPDX-License-Identifier: Apache-2.0
#include <torch/version.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/file.h"
#include "profiler/collect/torch_compat.h"
#include "validate/run/launch.h"
#include "validate/run/run_record.h"
#include "validate/run/runnable.h"
#include "validate/runtime/commands.h"
#include "validate/runtime/memory_meter.h"
#include "validate/runtime/process_groups.h"
#include "validate/runtime/this_process.h"
#include "validate/runtime/trainer.h"

namespace towtank {
namespace {

struct RunWords {
  std::string plan, record, gradients;
  int steps = 3, warm_up = 1;
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  double timeout_s = 300;
  bool fp64 = false;
};

template <class T>
T number_of(const std::string& option, const std::string& text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= low && value <= high)) {
    throw InputError({option,
                      "\"" + text + "\" is not a number from " + std::to_string(low) + " to " +
                          std::to_string(high),
                      "", ""});
  }
  return value;
}

RunWords read_words(const RuntimeWords& words) {
  RunWords out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      if (!out.plan.empty()) throw InputError({word, "is one plan too many", "", ""});
      out.plan = word;
      continue;
    }
    if (word == "--fp64") {
      out.fp64 = true;
      continue;
    }
    if (i + 1 == words.size()) throw InputError({word, "needs a value", "", ""});
    const std::string& value = words[++i];
    if (word == "--record") {
      out.record = value;
    } else if (word == "--gradients") {
      out.gradients = value;
    } else if (word == "--steps") {
      out.steps = number_of(word, value, 1, 1'000'000);
    } else if (word == "--warm-up") {
      out.warm_up = number_of(word, value, 0, 1'000'000);
    } else if (word == "--seed") {
      out.seed = number_of<std::uint64_t>(word, value, 0, 1'000'000'000);
    } else if (word == "--learning-rate") {
      out.learning_rate = number_of(word, value, 0.0, 10.0);
    } else if (word == "--timeout") {
      out.timeout_s = number_of(word, value, 1.0, 86400.0);
    } else {
      throw InputError({word, "is not an option of run", "", ""});
    }
  }
  if (out.plan.empty()) throw InputError({"run", "needs a plan file", "", ""});
  return out;
}

/// torchrun's names; else those of Slurm's srun.
RankPlace place_of(const RuntimeWorld& world, const RunWords& words) {
  const auto text = [&](const char* name, const char* other) {
    const char* value = world.environment(name);
    if (value == nullptr) value = world.environment(other);
    return value == nullptr ? std::string() : std::string(value);
  };
  RankPlace place;
  const std::string rank = text("RANK", "SLURM_PROCID");
  const std::string size = text("WORLD_SIZE", "SLURM_NTASKS");
  if (rank.empty() != size.empty()) {
    throw InputError({rank.empty() ? "WORLD_SIZE" : "RANK", "is set without the other", "",
                      "Start ranks with towtank run, torchrun or srun"});
  }
  place.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(words.timeout_s * 1000));
  if (rank.empty()) return place;
  constexpr int kMostRanks = 1 << 20, kMostPorts = 65535;
  place.world = number_of("WORLD_SIZE", size, 1, kMostRanks);
  place.rank = number_of("RANK", rank, 0, place.world - 1);
  if (const std::string address = text("MASTER_ADDR", ""); !address.empty()) {
    place.address = address;
  } else if (place.world > 1) {
    throw InputError({"MASTER_ADDR", "is not set", "ranks meet at rank 0's address", ""});
  }
  if (const std::string port = text("MASTER_PORT", ""); !port.empty()) {
    place.port = number_of("MASTER_PORT", port, 1, kMostPorts);
  }
  place.interface = text("GLOO_SOCKET_IFNAME", "");
  return place;
}

RankRecord run_steps(Trainer& trainer, Recorder& recorder, const RunWords& words, int rank) {
  RankRecord record;
  record.rank = rank;
  record.host = host_name();
  for (int i = 1; i <= words.warm_up + words.steps; ++i) {
    recorder.clear();
    if (i == words.warm_up + 1) reset_memory_peak();
    const double loss = trainer.step(i);
    if (i > words.warm_up) record.steps.push_back({loss, recorder.spans()});
  }
  const MemoryPeak peak = memory_peak();
  for (std::size_t k = 0; k < kMemoryKinds; ++k) {
    record.memory.emplace_back(kMemoryNames[k], peak.bytes[k]);
  }
  return record;
}

RunRecord gather_records(Rendezvous& rendezvous, const RankRecord& own) {
  RunRecord run;
  const RankPlace& place = rendezvous.place();
  if (place.world == 1) {
    run.ranks.push_back(own);
    return run;
  }
  const auto key = [](int rank) { return "record/" + std::to_string(rank); };
  if (place.rank != 0) {
    rendezvous.set(key(place.rank), to_json(own).dump());
    return run;
  }
  run.ranks.push_back(own);
  for (int rank = 1; rank < place.world; ++rank) {
    const JsonFile file =
        JsonFile::parse(rendezvous.get(key(rank)), "rank " + std::to_string(rank));
    run.ranks.push_back(read_rank_record(file.root()));
    file.finish();
  }
  return run;
}

void write_gradients(const Trainer& trainer, const std::string& stem, int rank) {
  write_file(stem + "." + std::to_string(rank), encode(trainer.gradients()));
}

int run_rank(const RunWords& words, const RankPlace& place, const RuntimeWorld& world) {
  RunnablePlan runnable = load_runnable(words.plan, words.fp64);
  if (runnable.plan.devices() != place.world) {
    throw InputError({words.plan + ": /devices",
                      "the plan has " + std::to_string(runnable.plan.devices()) + " ranks",
                      "WORLD_SIZE is " + std::to_string(place.world), ""});
  }
  Recorder recorder;
  Rendezvous rendezvous(place);
  TrainOptions options;
  options.global_batch = runnable.file.workload.global_batch;
  options.seed = words.seed;
  options.adam.learning_rate = words.learning_rate;
  options.dtype = words.fp64 ? at::kDouble : at::kFloat;
  Trainer trainer(rendezvous, runnable.plan, std::move(runnable.shape), options, recorder);
  const RankRecord own = run_steps(trainer, recorder, words, place.rank);
  if (!words.gradients.empty()) write_gradients(trainer, words.gradients, place.rank);
  RunRecord run = gather_records(rendezvous, own);
  // Nobody leaves before all have come: a closed connection looks like a dead rank.
  rendezvous.barrier("end");
  if (place.rank != 0) return 0;
  run.backend = place.world > 1 ? "gloo" : "none";
  run.torch = TORCH_VERSION;
  run.adam_learning_rate = words.learning_rate;
  run.seed = words.seed;
  const std::string text = to_text(to_json(run));
  if (words.record.empty()) {
    world.out(text);
  } else {
    write_file(words.record, text);
  }
  return 0;
}

}  // namespace

int run_run_command(const RuntimeWords& words, const RuntimeWorld& world) {
  const RunWords read = read_words(words);
  const RankPlace place = place_of(world, read);
  // What the launcher of one machine says beside torchrun's names.
  const auto integer = [&](const char* name) {
    const char* value = world.environment(name);
    return value == nullptr ? -1 : number_of(name, value, 0, 1 << 30);
  };
  end_with_parent(integer("TOWTANK_PARENT"));
  stay_on_core(integer("TOWTANK_CORE"));
  use_one_thread();
  install_memory_meter();
  try {
    return run_rank(read, place, world);
  } catch (const c10::Error& error) {
    throw std::runtime_error("rank " + std::to_string(place.rank) + ": " +
                             error.what_without_backtrace());
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_lost_peer(error.what())) throw;
    world.notice("rank " + std::to_string(place.rank) + " lost another rank: " + error.what());
    return kLostPeerExit;
  }
}

}  // namespace towtank
