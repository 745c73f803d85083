// SPDX-License-Identifier: Apache-2.0
#pragma once
/// towtank-plan files: what is trained, on what, and how it is divided (docs/formats.md).
///
///   format, version   "towtank-plan", 1
///   workload          model (config.json or towtank-graph, embedded), sequence_length,
///                     global_batch, precision; optional: name, optimizer, train_tokens,
///                     input ("600 kB" a sample) or input_bytes, expert_load, task
///   platform          a catalogue name, or a whole towtank-platform object
///   platform_hash     optional: the platform's content when the file was written
///   devices           how many of it
///   plan              degrees, schedule, sharding, recompute, framework, stages, rank_map
///
/// The scalars of `plan` are shorthand; `stages` is what code uses. Writers emit both, and where a
/// file's scalars and stages disagree it is a fault. The keys above `plan` are those of a case
/// (towtank-case), so the parts are readers of their own.
///
/// Nulls: recompute = the framework's default, sharding_stage = 0, stages_per_rank = 1,
/// schedule = none on one pipeline rank, else 1f1b or interleaved, precision = bf16, microbatch =
/// 1, sequence_parallel = with tensor parallelism, global_batch = data * microbatch * pipeline.
/// Each is listed in `defaults_taken`. Not expressible yet, each one fault that names its key:
/// offload, unequal replicas, recompute options other than full and selective, a sample that is not
/// a sequence of tokens.
#include <string>
#include <vector>

#include "core/json.h"
#include "model/workload.h"
#include "placement/plan.h"

namespace towtank {

struct PlanFile {
  Workload workload;
  std::string platform_name;    ///< of the catalogue; empty if the platform is inline
  std::string platform_hash;    ///< empty: not stated
  std::string platform_inline;  ///< compact JSON of a towtank-platform; empty if it is named
  int devices = 0;
  Plan plan;                 ///< stages are empty unless the file lists them; see expand_stages
  std::string generated_by;  ///< the command that wrote the file; empty: not stated
  std::vector<std::string> defaults_taken;  ///< "recompute: none (megatron's default)"
};

/// Throws InputError with every fault. Whether the plan fits its model and devices is check_plan's
/// question (validity.h).
[[nodiscard]] PlanFile parse_plan_file(const JsonFile&);
/// Writes everything that a reader would otherwise have to assume.
[[nodiscard]] Json to_json(const PlanFile&);

// The parts, for case files too. Faults are collected in the reader's file.

/// workload, platform, platform_hash, devices and plan of a plan or case file.
[[nodiscard]] PlanFile read_plan_body(const JsonReader& root);
/// global_batch 0: null in the file.
[[nodiscard]] Workload read_workload(const JsonReader&, std::vector<std::string>& defaults_taken);
[[nodiscard]] Plan read_plan(const JsonReader&, std::vector<std::string>& defaults_taken);
[[nodiscard]] Json to_json(const Workload&);
[[nodiscard]] Json to_json(const Plan&);

}  // namespace towtank
