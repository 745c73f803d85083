// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What really happened: a workload, a platform and a plan, and the step time, peak memory or
/// out-of-memory that somebody measured, with its source. A case is a plan file plus `measured`.
///
/// The set of a case is its id without the last "-number". Cases of one set share a source and a
/// kind of memory reading (case_rules.h).
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "placement/plan_json.h"

namespace towtank {

enum class CaseOutcome { kRan, kOom };
inline constexpr std::array<std::string_view, 2> kCaseOutcomeNames{"ran", "oom"};

enum class CaseConfidence { kHigh, kMedium, kLow };
inline constexpr std::array<std::string_view, 3> kCaseConfidenceNames{"high", "medium", "low"};

/// At least one of the times and bytes may be unknown; an out-of-memory run has no step time.
struct CaseMeasurement {
  std::optional<Seconds> step_time;  ///< of one optimizer step; > 0
  std::optional<Bytes> peak_memory;  ///< largest over ranks; what it counts depends on the set
  CaseOutcome outcome = CaseOutcome::kRan;
};

/// A stage as a mixed machine ran it: its layers and the device kind and tensor degree of each
/// replica (notes: stages=[...]).
struct CaseReplica {
  std::string device_kind;
  int tensor = 1;
  friend bool operator==(const CaseReplica&, const CaseReplica&) = default;
};
struct CaseStage {
  int layers = 0;  ///< embedding and head counted if CaseNotes::ends_count_as_layers
  std::vector<CaseReplica> replicas;
  friend bool operator==(const CaseStage&, const CaseStage&) = default;
};

/// What the normative tokens of `notes` say; all else in notes is commentary.
///
///   token                                              field
///   PURE                                               pure
///   stages=[{"layers":n,"replicas":[[kind, t],...]}]   stages
///   layers per stage [n, ...]                          layers_per_stage
///   L layers on p stages: a on the first k stages, b on the last    layers_per_stage
///   layer partition type:transformer|embedding         ends_count_as_layers
///   embedding and loss count as layers                 ends_count_as_layers
///   count embedding and head as one layer each         ends_count_as_layers
///   BF16 optimizer                                     bf16_optimizer
///   fp16 gradients                                     fp16_gradients
///   torch.compile                                      compile
///   packed samples, packed sequences                   packed_samples
///   gradient reduction X s of the step                 gradient_reduction (measured, not stated)
struct CaseNotes {
  bool pure = false;  ///< parameters and states in the low precision
  std::vector<CaseStage> stages;
  std::vector<int> layers_per_stage;
  bool ends_count_as_layers = false;  ///< the split counts embedding and head as one layer each
  bool bf16_optimizer = false;        ///< an fp32 gradient copy, 4 bytes a parameter, not sharded
  bool fp16_gradients = false;
  bool compile = false;
  bool packed_samples = false;                ///< attention spans are shorter than the sequence
  std::optional<Seconds> gradient_reduction;  ///< a measured part of the step
};

struct Case {
  std::string id;     ///< "<set>-<number>"
  std::string where;  ///< "file:line"
  std::string source;
  PlanFile body;  ///< as the keys say; the notes are not applied yet (predict_case.h)
  CaseMeasurement measured;
  CaseConfidence confidence = CaseConfidence::kHigh;
  std::vector<std::string> assumed;  ///< fields that were inferred, not read
  std::string notes;
  CaseNotes tokens;
  std::string group_key;  ///< workload, platform and devices in one canonical text
  std::string plan_key;   ///< the plan likewise

  [[nodiscard]] std::string set() const;  ///< id without its last "-number"
};

/// What is left of an id without its last "-..."; the id itself if it has none.
[[nodiscard]] std::string set_of_id(std::string_view id);

}  // namespace towtank
