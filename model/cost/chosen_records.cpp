// SPDX-License-Identifier: Apache-2.0
#include "model/cost/chosen_records.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"
#include "model/cost/fit/collective_fit.h"
#include "model/cost/op_parameters.h"

namespace towtank {
namespace {

using Calibrations = std::span<const Calibration* const>;
constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

struct Found {
  const OpRecord* record = nullptr;
  bool same_device = false;
};

bool serves(const OpRecord& r, OpKind kind, bool fused, DType d) {
  const bool core = kind != OpKind::kAttention || r.fused == fused;
  return r.kind == kind && core && std::find(r.dtypes.begin(), r.dtypes.end(), d) != r.dtypes.end();
}

/// Kinds that differ in their memory's size alone.
bool same_rates(const DeviceKind& device, const OpRecord& r) {
  return r.generation == device.generation && r.memory_bandwidth == device.memory_bandwidth &&
         r.peak == product_peak(device, DType::kBf16);
}

/// How unlike two devices are for a kind of op: the factor in what bounds it.
double unlikeness(const DeviceKind& device, const OpRecord& record) {
  const auto factor = [](double a, double b) { return std::abs(std::log(a / b)); };
  return record.kind == OpKind::kMatmul
             ? factor(product_peak(device, DType::kBf16).value, record.peak.value)
             : factor(device.memory_bandwidth.value, record.memory_bandwidth.value);
}

Found find_op(const DeviceKind& device, Calibrations calibrations, OpKind kind, bool fused,
              DType d) {
  Found kin;
  const auto nearer = [&](const OpRecord& a, const OpRecord& b) {
    const double x = unlikeness(device, a);
    const double y = unlikeness(device, b);
    return x != y ? x < y : a.evidence.rows > b.evidence.rows;
  };
  for (const Calibration* calibration : calibrations) {
    for (const OpRecord& r : calibration->ops) {
      if (!serves(r, kind, fused, d)) continue;
      if (r.device_kind == device.name) return {&r, true};
      if (r.generation != device.generation) continue;
      if (kin.record == nullptr || (!kin.same_device && nearer(r, *kin.record))) {
        kin = {&r, same_rates(device, r)};
      }
    }
  }
  return kin;
}

void take_terms(OpParameters& to, const OpRecord& record, OpKind kind, bool fused, DType d) {
  for (const OpTerm term : terms_of(record.kind, record.fused)) {
    if (const auto& e = record.terms[index_of(term)]) set_term(to, kind, fused, d, term, e->value);
  }
}

/// Eight- and four-bit products reach of their documented share what two-byte ones reach of theirs.
void carry_to_narrow_products(ChosenOps& out, const OpParameters& documented) {
  const auto bf16 = index_of(DType::kBf16);
  const OpBasis& from = out.basis[index_of(OpKind::kMatmul)][bf16];
  if (from.record == nullptr) return;
  const double gain = out.parameters.product[bf16].share / documented.product[bf16].share;
  for (const DType d : {DType::kFp8, DType::kFp4, DType::kInt8}) {
    OpBasis& basis = out.basis[index_of(OpKind::kMatmul)][index_of(d)];
    if (basis.record != nullptr) continue;
    const double share = documented.product[index_of(d)].share;
    out.parameters.product[index_of(d)] = out.parameters.product[bf16];
    out.parameters.product[index_of(d)].share = std::min(1.0, share * gain);
    basis = {Basis::kExtrapolated, from.record};
  }
}

/// Optimizers stream as element-wise ops do.
void carry_to_optimizers(ChosenOps& out) {
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    OpBasis& basis = out.basis[index_of(OpKind::kOptimizer)][d];
    const OpBasis& from = out.basis[index_of(OpKind::kElementwise)][d];
    if (basis.record != nullptr || from.record == nullptr) continue;
    const auto width = index_of(element_width(static_cast<DType>(d)));
    out.parameters.stream[index_of(OpKind::kOptimizer)][width] =
        out.parameters.stream[index_of(OpKind::kElementwise)][width];
    basis = {Basis::kExtrapolated, from.record};
  }
}

struct FoundLink {
  const CollectiveRecord* record = nullptr;
  bool same_place = false;  ///< topology and devices a node
};

FoundLink find_link(const NetworkView& view, std::size_t level, Calibrations calibrations,
                    Collective op) {
  FoundLink other;
  for (const Calibration* calibration : calibrations) {
    for (const CollectiveRecord& r : calibration->collectives) {
      const bool intranode = r.level == FabricLevel::kIntranode;
      if (r.op != op || r.fabric != view.levels[level].fabric || intranode != (level == 0)) {
        continue;
      }
      const bool same = !intranode || (r.topology == view.topology &&
                                       (r.node_devices == 0 || r.node_devices == view.node_slots));
      if (same) return {&r, true};
      if (other.record == nullptr) other = {&r, false};
    }
  }
  return other;
}

/// The record's own collective or, for those that go round as it does, all-reduces.
FoundLink find_link_or_kin(const NetworkView& view, std::size_t level, Calibrations calibrations,
                           Collective op, bool& kin) {
  const FoundLink own = find_link(view, level, calibrations, op);
  const FoundLink reduce = find_link(view, level, calibrations, Collective::kAllReduce);
  const bool goes_round = op == Collective::kAllGather || op == Collective::kReduceScatter ||
                          op == Collective::kBroadcast;
  kin = goes_round && reduce.record != nullptr &&
        (own.record == nullptr || (!own.same_place && reduce.same_place));
  return kin ? reduce : own;
}

}  // namespace

std::size_t basis_row(OpKind kind, bool fused) {
  return kind == OpKind::kAttention && !fused ? kOpKindCount : index_of(kind);
}

ChosenOps choose_ops(const DeviceKind& device, Calibrations calibrations) {
  const OpParameters documented = documented_op_parameters(device);
  ChosenOps out;
  out.parameters = documented;
  out.parameters.host = {0.0};
  for (std::size_t row = 0; row <= kOpKindCount; ++row) {
    const bool unfused = row == kOpKindCount;
    const OpKind kind = unfused ? OpKind::kAttention : static_cast<OpKind>(row);
    if (kind == OpKind::kConvolution) continue;  // products of its dtype, times a documented share
    std::vector<std::string> from_kin;
    std::string kin;
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      const Found found = find_op(device, calibrations, kind, !unfused, dtype);
      if (found.record == nullptr) continue;
      take_terms(out.parameters, *found.record, kind, !unfused, dtype);
      const Basis best = found.same_device ? Basis::kInterpolated : Basis::kExtrapolated;
      out.basis[row][d] = {best, found.record};
      if (!found.same_device) {
        from_kin.emplace_back(to_text(dtype));
        kin = found.record->device_kind;
      }
    }
    if (!from_kin.empty()) {
      out.notes.push_back(std::string(to_text(kind)) + (unfused ? " (unfused)" : "") + " of " +
                          join_and(from_kin) + " from " + kin);
    }
  }
  carry_to_narrow_products(out, documented);
  carry_to_optimizers(out);
  return out;
}

ChosenLinks choose_links(const NetworkView& view, Calibrations calibrations) {
  ChosenLinks out;
  out.parameters = documented_collective_parameters(view);
  for (std::size_t level = 0; level < view.levels.size(); ++level) {
    for (std::size_t c = 0; c < kCollectiveCount; ++c) {
      bool kin = false;
      const FoundLink found =
          find_link_or_kin(view, level, calibrations, static_cast<Collective>(c), kin);
      if (found.record == nullptr) continue;
      LinkParameters link = link_of(*found.record);
      if (!found.same_place) link.share.fill(link.share.back());
      out.parameters.level[level][c] = link;
      const bool exact = found.same_place && !kin;
      out.basis[level][c] = {exact ? Basis::kInterpolated : Basis::kExtrapolated,
                             found.record->payload};
    }
  }
  return out;
}

}  // namespace towtank
