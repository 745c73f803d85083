// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Fits what a fabric reaches at one level, for one collective, to measured rows.
///
///     log(measured) ~ log(launch_profile + latency + transfer)      collective_cost.h
///
///   launch_profile   what a call of each profile costs beside its hops; the record has the least
///                    of them, since others hold the host's time and a synchronisation
///   share(n)         one for each number of ranks at this level that was measured
///   low protocol     only where small payloads are there to tell it
///
/// A row counts as its cell does (profile, ranks, octave of payload; evidence.h), and less below 1
/// MiB. Of a cell at most kMostOfCell rows are used, evenly chosen.
///
/// What is left out in turn is all rows of one number of ranks (its share is then interpolated from
/// the others); in a mesh or over PCIe, whose links favour some numbers, octaves of the payload.
///
/// Between nodes, groups of several ranks a node that get less through it than one of them could
/// are bound by the communicator, not by ports: then one limit stands for all shares.
#include <variant>
#include <vector>

#include "model/cost/calibration.h"
#include "model/cost/fit/evidence.h"
#include "model/cost/fit/op_fit.h"
#include "platforms/allocate.h"
#include "profiler/profile.h"

namespace towtank {

struct CollectiveRow {
  const CollectiveMeasurement* measurement = nullptr;
  const Profile* profile = nullptr;
  const NetworkView* view = nullptr;  ///< of the machine that was measured: hardware rate, latency
};

struct CollectiveKey {
  FabricLevel level = FabricLevel::kIntranode;
  Collective op = Collective::kAllReduce;
};

inline constexpr std::size_t kMostOfCell = 48;

struct CollectiveFit {
  CollectiveRecord record;
  RecordReport report;
};

/// Level 0 or 1 of the rows' views is fitted. `parameters`: documented ones with what was fitted
/// before; the record's are set. Pre: all rows are of the key, on fabrics of one kind that are
/// built alike (topology; in a mesh, devices); their views have the level.
[[nodiscard]] std::variant<CollectiveFit, Refusal> fit_collective(
    const CollectiveKey& key, const std::vector<CollectiveRow>& rows,
    CollectiveParameters& parameters);

/// Shares of a record for every number of ranks: linear in 1 / ranks between those measured, the
/// nearest beyond them. Pre: there is one.
[[nodiscard]] double share_at(const std::vector<CollectiveRecord::Share>& shares, int ranks);
/// The record as the formulas take it.
[[nodiscard]] LinkParameters link_of(const CollectiveRecord&);

}  // namespace towtank
