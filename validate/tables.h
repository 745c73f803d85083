// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Published tables beside ours: what their authors printed, what towtank says, and the error.
///
///   name             paper                                          columns
///   korthikanti      Korthikanti et al. 2022, Table 5               iteration times, MFU
///   megatron-sc21    Narayanan et al. SC'21, Table 1                TFLOP/s a device
///   bigscience-a100  BigScience, tr11-176B-ml/chronicles-prequel.md  seconds, GiB
///   torchtitan       torchtitan, llama3_h100_202412_torchtitan.md    tokens/s a device, GiB
///   llama3-405b      The Llama 3 Herd of Models, Table 4             plans: does each fit?
///
/// The paper's TFLOP/s of SC'21 are its own formula, 96 B s L h^2 (1 + s/6h + V/16Lh) / (T N).
#include <span>
#include <string>
#include <string_view>

#include "validate/validation.h"

namespace towtank {

/// Names that table_text takes, sorted. Each is the set of bundled cases that it shows.
[[nodiscard]] std::span<const std::string_view> table_names();
/// The stem of the bundled file with a table's cases. Pre: one of table_names.
[[nodiscard]] std::string_view table_file(std::string_view name);
/// Pre: name is one of table_names, and the validation is of its cases.
[[nodiscard]] std::string table_text(std::string_view name, const Validation&);

}  // namespace towtank
