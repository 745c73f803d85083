// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/detail/nccl_block.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "core/input_error.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank::detail {
namespace {

using Severity = ImportStats::Severity;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
// Bandwidths are printed with two decimals, in six characters, times with at least three digits.
constexpr double kPrintedStep = 0.006;
constexpr double kPrintedShare = 0.01;
/// From here on the two decimals of a bandwidth say enough about the ratio of two of them.
constexpr double kTelling = 2.0;  // GB/s

std::string letters_of(std::string_view name) {
  const std::size_t slash = name.find_last_of('/');
  std::string out;
  for (const char c : slash == std::string_view::npos ? name : name.substr(slash + 1)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (out.ends_with("perf")) out.resize(out.size() - 4);
  return out;
}

std::optional<Collective> collective_named(std::string_view test) {
  const std::string letters = letters_of(test);
  for (std::size_t i = 0; i < kCollectiveCount; ++i) {
    if (letters_of(kCollectiveNames[i]) == letters) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

/// Bus over algorithm bandwidth: nccl-tests doc/PERFORMANCE.md.
double bus_factor(Collective op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kSendRecv:
    case Collective::kBroadcast:
      return 1;
  }
  return 1;  // not reached: the switch is exhaustive
}

bool near(double a, double b) {
  return std::abs(a - b) <= kPrintedStep + kPrintedShare * std::max(std::abs(a), std::abs(b));
}

bool reduces(const NcclRow& row) { return !row.redop.empty() && row.redop != "none"; }

/// What the rows say where no name does: only an all-reduce, a reduce-scatter and what does not
/// reduce with a factor of 1 can be told from the others.
std::optional<Collective> collective_by_factor(const NcclBlock& block, int ranks) {
  for (const NcclRow& row : block.rows) {
    for (const NcclSide& side : row.sides) {
      if (!(side.algbw >= kTelling)) continue;
      const double factor = side.busbw / side.algbw;
      if (ranks > 2 && reduces(row)) {
        if (std::abs(factor - bus_factor(Collective::kAllReduce, ranks)) < 0.02) {
          return Collective::kAllReduce;
        }
        if (std::abs(factor - bus_factor(Collective::kReduceScatter, ranks)) < 0.02) {
          return Collective::kReduceScatter;
        }
      }
      return std::nullopt;
    }
  }
  return std::nullopt;
}

struct Group {
  int ranks = 0, ranks_per_node = 0;
};

Group group_of(const NcclBlock& block, const ImportOptions& options) {
  Group out{static_cast<int>(block.hosts.size()), 0};
  std::map<std::string, int> on_host;
  for (const auto& [rank, host] : block.hosts) {
    out.ranks_per_node = std::max(out.ranks_per_node, ++on_host[host]);
  }
  if (block.stated_ranks > 0) out = {block.stated_ranks, block.stated_ranks_per_node};
  if (options.ranks && out.ranks > 0 && *options.ranks != out.ranks) {
    throw InputError({printable(block.file, 400),
                      "is of " + std::to_string(out.ranks) + " ranks by its device lines",
                      "--ranks says " + std::to_string(*options.ranks), "Leave --ranks out."});
  }
  if (options.ranks) out = {*options.ranks, out.ranks_per_node};
  if (out.ranks == 0) {
    throw InputError(
        {printable(block.file, 400), "has a table without device lines",
         "nothing says how many ranks it is of",
         "Give --ranks N if you trust it, and --ranks-per-node where they are fewer."});
  }
  if (options.ranks_per_node) out.ranks_per_node = *options.ranks_per_node;
  if (out.ranks_per_node <= 0 || out.ranks_per_node > out.ranks) out.ranks_per_node = out.ranks;
  return out;
}

/// Why a side is left out; nullopt if it is good.
struct Reason {
  std::string_view why;
  Severity severity;
};
std::optional<Reason> fault_of(const NcclRow& row, const NcclSide& side, double factor) {
  if (std::isnan(side.time_us)) return Reason{"times that are not numbers", Severity::kLoss};
  if (!(side.time_us > 0)) return Reason{"times of zero or less", Severity::kLoss};
  if (side.wrong > 0) return Reason{"times of runs with wrong results", Severity::kLoss};
  const double rate = static_cast<double>(row.size) / (side.time_us * kMicro) / kGiga;
  if (!std::isnan(side.algbw) && !near(side.algbw, rate)) {
    return Reason{"times that do not agree with size and bandwidth", Severity::kError};
  }
  if (!std::isnan(side.busbw) && !near(side.busbw, rate * factor)) {
    return Reason{"bus bandwidths that do not fit the collective and its ranks", Severity::kError};
  }
  return std::nullopt;
}

/// Ranks that were given and do not fit would spoil every row: then all rows that can tell say so.
void check_ranks(const NcclBlock& block, double factor, const Group& group) {
  long telling = 0, fitting = 0;
  for (const NcclRow& row : block.rows) {
    for (const NcclSide& side : row.sides) {
      if (!(side.algbw >= kTelling)) continue;
      ++telling;
      if (near(side.busbw, side.algbw * factor)) ++fitting;
    }
  }
  if (telling == 0 || fitting > 0) return;
  throw InputError(
      {printable(block.file, 400),
       "has bus bandwidths that are not those of " + std::to_string(group.ranks) + " ranks",
       "they follow from size, time, collective and ranks", "Check --ranks."});
}

void describe(Profile& profile, const NcclBlock& block, const ImportOptions& options) {
  if (profile.device_kind.empty() && options.device_kind.empty()) {
    profile.device_kind = device_kind_of(block.device);
  }
  for (const std::string& part : {block.device, block.versions}) {
    if (part.empty() || profile.machine.find(part) != std::string::npos) continue;
    if (!profile.machine.empty()) profile.machine += "; ";
    profile.machine += part;
  }
}

}  // namespace

double nccl_number(std::string_view text) {
  if (text.ends_with('*')) text.remove_suffix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

std::int64_t nccl_count(double value, double most) {
  const bool good = value >= 0 && value <= most && value == std::floor(value);
  return good ? static_cast<std::int64_t>(value) : 0;
}

std::string device_kind_of(std::string_view driver_name) {
  using Pair = std::pair<std::string_view, std::string_view>;
  // As cudaGetDeviceProperties names them; the first that is part of the name.
  constexpr std::array<Pair, 15> kKinds{{{"A100-SXM4-40GB", "a100-sxm-40g"},
                                         {"A100-SXM4-80GB", "a100-sxm-80g"},
                                         {"A100-SXM-80GB", "a100-sxm-80g"},
                                         {"A100-PCIE-40GB", "a100-pcie-40g"},
                                         {"GH200", "gh200-96g"},
                                         {"H100 80GB HBM3", "h100-sxm-80g"},
                                         {"H200", "h200-sxm-141g"},
                                         {"GB200", "gb200"},
                                         {"GB300", "gb300"},
                                         {"B200", "b200-sxm-180g"},
                                         {"B300", "b300-sxm-288g"},
                                         {"V100-SXM2-16GB", "v100-sxm2-16g"},
                                         {"V100-SXM2-32GB", "v100-sxm2-32g"},
                                         {"Tesla T4", "t4"},
                                         {"MI300X", "mi300x"}}};
  for (const auto& [part, kind] : kKinds) {
    if (driver_name.find(part) != std::string_view::npos) return std::string(kind);
  }
  return "";
}

void add_block(Profile& profile, const NcclBlock& block, const ImportOptions& options) {
  ImportStats& stats = profile.stats;
  stats.rows_read += static_cast<long>(block.rows.size());
  if (block.rows.empty()) {
    stats.add("runs without results", Severity::kInfo, 1, block.file);
    return;
  }
  const Group group = group_of(block, options);
  if (!block.has_header) {
    stats.add("rows of tables without header lines", Severity::kInfo,
              static_cast<long>(block.rows.size()), block.file);
  }
  const auto op =
      block.test.empty() ? collective_by_factor(block, group.ranks) : collective_named(block.test);
  if (!op && block.test.empty()) {
    throw InputError(
        {printable(block.file, 400), "does not say which collective it is of",
         "neither a program's name nor the bandwidths tell",
         "Put a line \"# Collective test starting: all_gather_perf\" above the table."});
  }
  if (!op) {
    stats.add("rows of " + printable(block.test), Severity::kLoss,
              static_cast<long>(block.rows.size()), block.file);
    return;
  }
  describe(profile, block, options);
  const double factor = bus_factor(*op, group.ranks);
  check_ranks(block, factor, group);
  using Key = std::tuple<std::int64_t, std::string, std::string>;
  std::vector<std::pair<Key, std::vector<Seconds>>> measured;  // in the order of the file
  for (const NcclRow& row : block.rows) {
    const std::string place = row.line > 0 ? at_line(block.file, row.line) : block.file;
    if (row.size <= 0) {
      stats.add("rows of zero bytes", Severity::kInfo, 1, place);
      continue;
    }
    bool kept = false;
    for (const NcclSide& side : row.sides) {
      if (const auto reason = fault_of(row, side, factor)) {
        stats.add(reason->why, reason->severity, 1, place);
        continue;
      }
      kept = true;
      const Key key{row.size, row.type, row.redop};
      auto same = std::find_if(measured.begin(), measured.end(),
                               [&](const auto& item) { return item.first == key; });
      if (same == measured.end()) same = measured.insert(measured.end(), {key, {}});
      same->second.push_back(Seconds{side.time_us * kMicro});
    }
    if (kept) ++stats.rows_kept;
  }
  for (auto& [key, times] : measured) {
    CollectiveMeasurement out;
    out.op = *op;
    out.payload = Bytes{std::get<0>(key)};
    out.ranks = group.ranks;
    out.ranks_per_node = group.ranks_per_node;
    out.time = duration_of(std::move(times));
    out.group = std::string(kCollectiveNames[static_cast<std::size_t>(*op)]) + " " +
                std::get<1>(key) + " on " + std::to_string(group.ranks) + " ranks, " +
                std::to_string(group.ranks_per_node) + " a node";
    profile.collectives.push_back(std::move(out));
  }
}

}  // namespace towtank::detail
