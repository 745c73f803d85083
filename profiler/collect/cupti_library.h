// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUPTI as a collector uses it: a table of functions with CUPTI's types translated, so that the
/// collector knows no CUDA header and a test can stand in for the library.
///
/// cupti_load.cpp fills it from libcupti, opened at run time: nothing that links this needs a
/// driver, a GPU or the toolkit to start. A build without CUPTI's headers has cupti_absent.cpp.
///
///   built with        opens           records read as
///   CUDA 12 headers   libcupti.so.12  Kernel9, Memcpy5, Memset4, Synchronization, Overhead: what
///   CUDA 13 headers   libcupti.so.13  later versions append to these is not needed
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "profiler/collect/activity_buffers.h"
#include "profiler/collect/activity_sink.h"

namespace towtank {

/// Kinds of records that CUPTI is asked for.
enum class CuptiRecords : std::uint8_t {
  kKernels,
  kCopies,
  kSets,
  kSynchronization,
  kMarks,
  kOverhead
};

struct CuptiLibrary {
  /// Why a call failed; nullopt: it did not.
  using Why = std::optional<std::string>;

  std::string version;  ///< "CUPTI API 130001"
  /// Where buffers come from and go to; nullptr: nowhere any more. One owner at a time.
  std::function<Why(ActivityBuffers*)> use_buffers;
  std::function<Why(CuptiRecords)> enable, disable;
  std::function<Why(std::uint64_t)> push_mark;  ///< for launches of the calling thread
  std::function<Why()> pop_mark;
  std::function<Why()> flush;  ///< completes all buffers, also those that are not full
  std::function<long()> lost;  ///< records dropped since the last call
  std::function<void(std::span<std::byte>, ActivitySink&)> read;
};

/// The library of this machine, or why there is none.
[[nodiscard]] std::variant<CuptiLibrary, std::string> load_cupti();
/// Whether kernels can be recorded here: nullopt if so, else why not. Opens the library, turns
/// recording on and off again.
[[nodiscard]] std::optional<std::string> why_no_cupti();

}  // namespace towtank
