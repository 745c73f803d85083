// SPDX-License-Identifier: Apache-2.0
#include "model/cost/calibrated.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/text.h"

namespace towtank {
namespace {

constexpr std::size_t index_of(auto e) { return static_cast<std::size_t>(e); }

std::size_t hash_of(std::int64_t batch, std::int64_t n, std::int64_t k) {
  auto x = static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ static_cast<std::uint64_t>(k)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ static_cast<std::uint64_t>(batch)) * 0x94d049bb133111ebULL;
  return static_cast<std::size_t>(x >> 17U);
}

std::string describe(const DeviceKind& device, std::span<const Calibration* const> calibrations,
                     const ChosenOps& ops, const NetworkView& view, const ChosenLinks& links) {
  std::set<const OpRecord*> used;
  for (const auto& row : ops.basis) {
    for (const OpBasis& basis : row) {
      if (basis.record != nullptr) used.insert(basis.record);
    }
  }
  std::vector<std::string> names;
  for (const Calibration* calibration : calibrations) {
    const bool serves = std::any_of(calibration->ops.begin(), calibration->ops.end(),
                                    [&](const OpRecord& r) { return used.count(&r) > 0; });
    if (serves) names.push_back(calibration->name);
  }
  std::string text = names.empty() ? "documented efficiencies for " + device.name
                                   : "calibration " + join_and(names) + " for " + device.name;
  if (!ops.notes.empty()) text += " (" + join(ops.notes, "; ") + ": interval doubled)";
  std::vector<std::string> fabrics;
  for (std::size_t level = 0; level < view.levels.size(); ++level) {
    const bool any = std::any_of(links.basis[level].begin(), links.basis[level].end(),
                                 [](const auto& b) { return b.best != Basis::kAnalytic; });
    if (any) fabrics.push_back(view.levels[level].fabric);
  }
  text += fabrics.empty() ? ", no fabric calibrated" : ", fabric " + join_and(fabrics);
  return text;
}

Basis worse(Basis a, Basis b) { return std::max(a, b); }

}  // namespace

ShapeTable::ShapeTable(const std::vector<ShapeFamily>& families) {
  slots_.resize(std::bit_ceil(2 * families.size() + 1));
  for (const ShapeFamily& family : families) {
    Slot slot{family.batch, family.n, family.k, static_cast<std::uint32_t>(knots_.size()),
              static_cast<std::uint32_t>(family.knots.size())};
    for (const ShapeFamily::Knot& knot : family.knots) {
      knots_.push_back({knot.m, std::log(static_cast<double>(knot.m)), knot.log_ratio});
    }
    std::size_t at = hash_of(slot.batch, slot.n, slot.k) & (slots_.size() - 1);
    while (slots_[at].n != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

ShapeTable::Correction ShapeTable::find(const OpSignature& op) const {
  std::size_t at = hash_of(op.batch, op.n, op.k) & (slots_.size() - 1);
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.n == 0) return {};
    if (slot.n != op.n || slot.k != op.k || slot.batch != op.batch) continue;
    const auto begin = knots_.begin() + slot.first;
    const auto end = begin + slot.count;
    const auto above = std::lower_bound(
        begin, end, op.m, [](const Knot& knot, std::int64_t m) { return knot.m < m; });
    if (above == end) return {};
    if (above->m == op.m) return {std::exp(above->log_ratio), Basis::kMeasured, true};
    if (above == begin) return {};
    const Knot& below = *(above - 1);
    const double share =
        (std::log(static_cast<double>(op.m)) - below.log_m) / (above->log_m - below.log_m);
    const double ratio = below.log_ratio + share * (above->log_ratio - below.log_ratio);
    return {std::exp(ratio), Basis::kInterpolated, true};
  }
}

CalibratedCostModel::CalibratedCostModel(const DeviceKind& device, NetworkView view,
                                         std::span<const Calibration* const> calibrations,
                                         std::span<const RuntimeRecord> runtime_records)
    : formula_(device, documented_op_parameters(device)),
      view_(std::move(view)),
      links_(choose_links(view_, calibrations)) {
  const ChosenOps ops = choose_ops(device, calibrations);
  formula_ = OpFormula(device, ops.parameters);
  std::map<const OpRecord*, int> tables;
  for (std::size_t row = 0; row < places_.size(); ++row) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const OpBasis& basis = ops.basis[row][d];
      if (basis.record == nullptr) continue;
      const OpRecord& r = *basis.record;
      OpPlace& place = places_[row][d];
      place = {basis.best, r.m, r.n, r.k, r.traffic, -1};
      if (basis.best != Basis::kInterpolated || r.families.empty()) continue;
      const auto [table, added] = tables.emplace(&r, static_cast<int>(tables_.size()));
      if (added) tables_.emplace_back(r.families);
      place.table = table->second;
    }
  }
  const Seconds host = documented_op_parameters(device).host;
  for (std::size_t f = 0; f < kFrameworkCount; ++f) {
    runtime_[f] = runtime_costs(runtime_records, static_cast<Framework>(f), device);
    if (runtime_[f].origin.empty()) runtime_[f].host_per_kernel = host;
  }
  description_ = describe(device, calibrations, ops, view_, links_);
}

Basis CalibratedCostModel::basis_of(const OpSignature& op, const OpPlace& place) const {
  if (place.best != Basis::kInterpolated) return place.best;
  const bool shaped = place.m.high > 0.0;
  const auto within = [](const Range& range, std::int64_t extent) {
    return range.holds(static_cast<double>(extent));
  };
  const bool inside = shaped
                          ? within(place.m, op.m) && within(place.n, op.n) && within(place.k, op.k)
                          : within(place.traffic, op.traffic.value);
  return inside ? Basis::kInterpolated : Basis::kExtrapolated;
}

OpCost CalibratedCostModel::op(const OpSignature& op) const {
  OpCost cost = formula_(op);
  const OpPlace& place = places_[basis_row(op.kind, op.fused)][index_of(op.dtype)];
  cost.basis = basis_of(op, place);
  if (place.table < 0 || op.kernels != 1) return cost;
  const ShapeTable::Correction found = tables_[static_cast<std::size_t>(place.table)].find(op);
  if (!found.found) return cost;
  for (Seconds* part : {&cost.time, &cost.compute, &cost.memory, &cost.launch}) {
    part->value *= found.factor;
  }
  cost.basis = found.basis;
  return cost;
}

CollectiveCost CalibratedCostModel::collective(const CollectiveCall& call) const {
  CollectiveCost cost = collective_cost(call, view_, links_.parameters);
  if (call.group.size == 1 || call.payload.value == 0) return cost;
  cost.basis = Basis::kMeasured;
  for (std::size_t i = 0; i < call.group.per_level.size(); ++i) {
    if (call.group.per_level[i] == 1) continue;
    const auto& link = links_.basis[i][index_of(call.op)];
    cost.basis = worse(cost.basis, link.best);
    if (!link.payload.holds(static_cast<double>(call.payload.value))) {
      cost.basis = worse(cost.basis, Basis::kExtrapolated);
    }
  }
  return cost;
}

RuntimeCosts CalibratedCostModel::runtime(Framework framework) const {
  return runtime_[static_cast<std::size_t>(framework)];
}

}  // namespace towtank
