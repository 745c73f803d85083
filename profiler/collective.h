// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Collectives by name: part of the key of a communication measurement, as OpKind is of a compute
/// one. Payloads are counted as nccl-tests counts them: the whole buffer of an all-reduce or
/// broadcast, the gathered buffer of an all-gather or reduce-scatter, one rank's buffer of an
/// all-to-all, the message of a send.
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace towtank {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendRecv, kBroadcast };
inline constexpr std::size_t kCollectiveCount = 6;
/// Names of files and tables.
inline constexpr std::array<std::string_view, kCollectiveCount> kCollectiveNames{
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast"};

}  // namespace towtank
