// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The same collectives on several ranks: how long the wire took, who waited, and for whom.
///
/// Calls match if they have the same group and sequence number, or where none is stated the same
/// group, name and turn. All kernels of one collective end together, so
///
///   wire    = least duration over its ranks          the last rank to arrive waits for nobody
///   wait(r) = duration(r) - wire
///   offset  = median over collectives of (end on r - median end)        clock of r ahead of others
///
/// Not told apart: time that a slow link costs one rank from waiting for it.
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/trace_collectives.h"

namespace towtank {

struct SkewRank {
  const Trace* trace = nullptr;
  const std::vector<TraceCollectiveCall>* calls = nullptr;
};

/// One collective as its ranks ran it.
struct MatchedCollective {
  struct Part {
    std::size_t rank = 0;  ///< into the ranks given
    std::size_t call = 0;  ///< into that rank's calls
    std::int64_t start_ns = 0, duration_ns = 0;
  };
  std::vector<Part> parts;  ///< by rank; two or more
  std::int64_t wire_ns = 0;
  std::size_t last = 0;  ///< of `parts`: the one that waited least
};

struct RankWaits {
  long last = 0;                ///< collectives to which it came last
  std::int64_t waited_ns = 0;   ///< for others
  std::int64_t held_up_ns = 0;  ///< that others waited for it, as a mean over them
};

struct RankSkew {
  std::vector<MatchedCollective> collectives;
  std::vector<RankWaits> ranks;
  std::vector<std::int64_t> offset_ns;
  long unmatched = 0;  ///< calls with no partner
  /// The rank for which others waited longest; -1 if nothing was matched.
  [[nodiscard]] int straggler() const;
};

[[nodiscard]] RankSkew rank_skew(const std::vector<SkewRank>& ranks);

}  // namespace towtank
