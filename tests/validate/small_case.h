// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A whole valid case in which tests change one thing, and faults of its reading and prediction.
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/json.h"
#include "tests/support/expect_fault.h"
#include "validate/case_json.h"
#include "validate/predict_case.h"

namespace towtank::validate_testing {

/// Eight layers on two stages of 8 A100.
inline Json small_case() {
  return Json::parse(R"({
    "format": "towtank-case", "version": 1, "id": "mine-0001", "source": "a log of ours",
    "workload": {"model": {"model_type": "gpt2", "n_embd": 256, "n_layer": 8, "n_head": 4,
                           "n_positions": 128, "vocab_size": 512},
                 "sequence_length": 128, "global_batch": 32, "precision": "bf16"},
    "platform": "dgx-a100-80g", "devices": 8,
    "plan": {"tensor": 2, "pipeline": 2, "data": 2, "context": 1, "expert": 1,
             "stages_per_rank": 1, "microbatch": 4, "schedule": "1f1b",
             "sequence_parallel": false, "sharding_stage": 0, "recompute": "full",
             "framework": "megatron"},
    "measured": {"step_time_s": 0.5, "peak_memory_bytes": 1000000000, "outcome": "ran"},
    "confidence": "high", "assumed": ["precision"], "notes": "plain"})");
}

inline Case case_of(const Json& json) { return parse_case(json.dump(), "cases.jsonl:7"); }

inline Case with_notes(const std::string& notes) {
  Json json = small_case();
  json["notes"] = notes;
  return case_of(json);
}

inline std::string fault_of_case(const Json& json) {
  return testing::fault_of([&] { static_cast<void>(case_of(json)); });
}

/// Tests stop at what predict() refuses.
inline std::string fault_of_prediction(const Json& json) {
  CasePredictor predictor;
  return testing::fault_of([&] { static_cast<void>(predictor.predict(case_of(json))); });
}

/// The measured cases that the project was given; they are not part of the repository.
inline std::filesystem::path open_cases() {
  return std::filesystem::path(TOWTANK_SOURCE_DIR) / ".." / "shared" / "data" / "cases";
}

}  // namespace towtank::validate_testing
