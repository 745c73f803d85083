// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a set of cases means beyond its keys, as one table: which row of the framework table its
/// runs follow, how its memory was read, which matrix units an fp32 run used. Each line has its
/// reason, which a prediction lists under its assumptions. The rule is the set's name (its first
/// letters), so that a user's own set gets none of it: his cases say what they mean.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.h"
#include "model/frameworks/rules.h"
#include "model/memory/memory.h"

namespace towtank {

/// What a peak_memory_bytes counts.
enum class MemoryKind {
  kDeviceTotal,  ///< what nvidia-smi shows: reserved by the allocator, plus the runtime context
  kReserved,     ///< what the allocator holds
  kAllocated     ///< what tensors occupy
};
inline constexpr std::array<std::string_view, 3> kMemoryKindNames{"device total", "reserved",
                                                                  "allocated"};

struct CaseRule {
  std::string_view prefix{};                 ///< of the set's name
  Framework stated = Framework::kMegatron;   ///< a case that states this framework
  Framework follows = Framework::kMegatron;  ///< follows the rules of this one
  std::optional<Framework> states{};         ///< bytes a parameter, if not those of `follows`
  bool tf32 = false;  ///< fp32 products run on TF32 units where the device has them
  MemoryKind memory = MemoryKind::kDeviceTotal;
  Bytes memory_constant{};  ///< stated by the source, in the place of our buffers
  std::string_view reason{};
};

/// The rule with the longest prefix of the set's name; a rule without a change if there is none.
[[nodiscard]] const CaseRule& rule_of_set(std::string_view set);

/// A model's dict (config.json) with the fields that a set's dicts leave out and that change bytes:
/// dropout of attention probabilities, ReLU. The dict itself where the set leaves out nothing.
[[nodiscard]] std::string completed_model(std::string_view set, const std::string& model_json);

/// Whose rules a plan that states a framework follows: the set's, and for FSDP with a pipeline
/// torchtitan's, since Composer (the row "fsdp") has none and torchtitan is FSDP2 with one.
[[nodiscard]] Framework framework_followed(const CaseRule&, Framework stated, int pipeline);

/// The peak as a set of that kind would have read it.
[[nodiscard]] Bytes memory_of_kind(const MemoryBreakdown&, MemoryKind);
/// The same by the set's rule, its constant in the place of buffers.
[[nodiscard]] Bytes memory_by_rule(const MemoryBreakdown&, const CaseRule&);

}  // namespace towtank
