// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Fits the parameters of one kind of op on one device to measured rows.
///
///     log(measured) ~ log(max(sum over parts of formula(part), host))
///
///   parts   what one time covers (parts.h)
///   host    of profiles whose times contain a launch: what one call of that profile takes at
///           least, forward and backward apart. Fitted beside, not part of the record: rows at this
///           floor tell of the launcher, not of the device
///
/// A row counts as its cell does (evidence.h), and less where a side of a product is narrower than
/// a tile: training seldom has such. Terms that the rows do not tell keep their documented value,
/// one after the other, the least told first.
#include <string>
#include <variant>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/fit/evidence.h"
#include "platforms/platform.h"
#include "profiler/profile.h"

namespace towtank {

struct OpRow {
  const OpMeasurement* measurement = nullptr;
  const Profile* profile = nullptr;
};

/// What a record is for.
struct OpKey {
  OpKind kind = OpKind::kMatmul;
  bool fused = true;          ///< kAttention only
  std::vector<DType> dtypes;  ///< dtypes_with(): all that the record serves
};
/// Dtypes of the same rate: fp16 and bf16 products, all two-byte streams.
[[nodiscard]] std::vector<DType> dtypes_with(OpKind, bool fused, DType);
/// "matmul, fp16 and bf16", "attention (unfused), fp32, ..."
[[nodiscard]] std::string to_text(const OpKey&);

struct OpFit {
  OpRecord record;
  RecordReport report;
};
/// Why nothing can be said, and which measurement would settle it.
struct Refusal {
  std::string title, why, measure;
};

/// `parameters`: documented ones with what was fitted before; the record's are set in it.
/// Pre: all rows are of the key and of the device.
[[nodiscard]] std::variant<OpFit, Refusal> fit_op(const DeviceKind& device, const OpKey& key,
                                                  const std::vector<OpRow>& rows,
                                                  OpParameters& parameters);

}  // namespace towtank
