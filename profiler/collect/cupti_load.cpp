// SPDX-License-Identifier: Apache-2.0
// libcupti, opened at run time, behind the table of cupti_library.h. Records are read as the oldest
// layouts that CUDA 12 and 13 share by name: later ones append fields, which the assertions below
// check for the headers at hand.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "profiler/collect/cupti_library.h"

namespace towtank {
namespace {

using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using SetRecord = CUpti_ActivityMemset4;
using WaitRecord = CUpti_ActivitySynchronization;
using OverheadRecord = CUpti_ActivityOverhead;
using MarkRecord = CUpti_ActivityExternalCorrelation;

#if CUPTI_API_VERSION >= 130000
constexpr int kMajor = 13;
static_assert(offsetof(KernelRecord, graphId) == offsetof(CUpti_ActivityKernel10, graphId) &&
              offsetof(KernelRecord, name) == offsetof(CUpti_ActivityKernel10, name));
static_assert(offsetof(CopyRecord, graphId) == offsetof(CUpti_ActivityMemcpy6, graphId));
static_assert(offsetof(WaitRecord, streamId) == offsetof(CUpti_ActivitySynchronization2, streamId));
static_assert(offsetof(OverheadRecord, end) == offsetof(CUpti_ActivityOverhead3, end));
#elif CUPTI_API_VERSION >= 18
constexpr int kMajor = 12;
#else
#error "CUPTI of CUDA 12 or later is needed"
#endif

// Bound by name, so that signatures are checked against the header and the symbol against the
// library.
#define TOWTANK_CUPTI_FUNCTIONS(X)          \
  X(cuptiGetVersion)                        \
  X(cuptiGetResultString)                   \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)      \
  X(cuptiActivityPushExternalCorrelationId) \
  X(cuptiActivityPopExternalCorrelationId)

struct Functions {
#define TOWTANK_MEMBER(name) decltype(&::name) name = nullptr;
  TOWTANK_CUPTI_FUNCTIONS(TOWTANK_MEMBER)
#undef TOWTANK_MEMBER
};

// CUPTI's callbacks carry no pointer of the caller's, and it has one set of them a process: the one
// place where state outlives a call.
std::atomic<ActivityBuffers*> buffers_in_use{nullptr};

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = nullptr;
  *size = 0;
  *most = 0;
  ActivityBuffers* owner = buffers_in_use.load();
  if (owner == nullptr) return;
  const std::span<std::byte> given = owner->request();
  if (given.empty()) return;
  *buffer = reinterpret_cast<std::uint8_t*>(given.data());
  *size = given.size();
}

void CUPTIAPI buffer_completed(CUcontext /*context*/, std::uint32_t /*stream*/,
                               std::uint8_t* buffer, std::size_t /*size*/, std::size_t used) {
  ActivityBuffers* owner = buffers_in_use.load();
  if (owner == nullptr) return;
  owner->complete(reinterpret_cast<const std::byte*>(buffer), used);
}

std::string_view text_of(const char* text) { return text == nullptr ? "" : text; }

template <class Record>
Activity common(ActivityKind kind, const Record& r) {
  Activity a;
  a.kind = kind;
  a.start_ns = static_cast<std::int64_t>(r.start);
  a.end_ns = static_cast<std::int64_t>(r.end);
  a.correlation = r.correlationId;
  a.context = r.contextId;
  a.stream = r.streamId;
  return a;
}

template <class Record>
Activity on_device(ActivityKind kind, const Record& r) {
  Activity a = common(kind, r);
  a.device = r.deviceId;
  a.graph = r.graphId;
  a.graph_node = r.graphNodeId;
  return a;
}

template <class Record>
const Record& as(const CUpti_Activity& record) {
  return *reinterpret_cast<const Record*>(&record);
}

void read_record(const CUpti_Activity& record, ActivitySink& sink) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& r = as<KernelRecord>(record);
      sink.add(on_device(ActivityKind::kKernel, r), text_of(r.name));
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& r = as<CopyRecord>(record);
      Activity a = on_device(ActivityKind::kCopy, r);
      a.bytes = static_cast<std::int64_t>(r.bytes);
      sink.add(a, "");
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = as<SetRecord>(record);
      Activity a = on_device(ActivityKind::kSet, r);
      a.bytes = static_cast<std::int64_t>(r.bytes);
      sink.add(a, "");
      return;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      sink.add(common(ActivityKind::kSynchronization, as<WaitRecord>(record)), "");
      return;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& r = as<OverheadRecord>(record);
      Activity a;
      a.kind = ActivityKind::kOverhead;
      a.start_ns = static_cast<std::int64_t>(r.start);
      a.end_ns = static_cast<std::int64_t>(r.end);
      sink.add(a, "");
      return;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& r = as<MarkRecord>(record);
      if (r.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) {
        sink.add(MarkLink{r.correlationId, r.externalId});
      }
      return;
    }
    default:  // CUPTI's enumeration is open: later versions add kinds
      sink.add_unreadable();
  }
}

CUpti_ActivityKind kind_of(CuptiRecords records) {
  switch (records) {
    case CuptiRecords::kKernels:
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case CuptiRecords::kCopies:
      return CUPTI_ACTIVITY_KIND_MEMCPY;
    case CuptiRecords::kSets:
      return CUPTI_ACTIVITY_KIND_MEMSET;
    case CuptiRecords::kSynchronization:
      return CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    case CuptiRecords::kMarks:
      return CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    case CuptiRecords::kOverhead:
      return CUPTI_ACTIVITY_KIND_OVERHEAD;
  }
  return CUPTI_ACTIVITY_KIND_INVALID;  // not reached: the switch is exhaustive
}

CuptiLibrary::Why why(const Functions& f, CUptiResult result, const std::string& what) {
  if (result == CUPTI_SUCCESS) return std::nullopt;
  const char* text = nullptr;
  static_cast<void>(f.cuptiGetResultString(result, &text));
  return what + ": " + std::string(text_of(text)) + " (" + std::to_string(result) + ")";
}

std::variant<Functions, std::string> open_library() {
  const std::string name = "libcupti.so." + std::to_string(kMajor);
  void* handle = nullptr;
  for (const std::string& path : {name, std::string(TOWTANK_CUPTI_FOLDER) + "/" + name}) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
  }
  if (handle == nullptr) {
    return name +
           ", which this build was made for, cannot be opened; it is part of the CUDA "
           "toolkit (add its folder to LD_LIBRARY_PATH)";
  }
  Functions f;
#define TOWTANK_LOAD(symbol)                                               \
  f.symbol = reinterpret_cast<decltype(f.symbol)>(dlsym(handle, #symbol)); \
  if (f.symbol == nullptr) return name + " has no " #symbol;
  TOWTANK_CUPTI_FUNCTIONS(TOWTANK_LOAD)
#undef TOWTANK_LOAD
  return f;
}

CuptiLibrary table_of(const Functions& f, std::uint32_t version) {
  CuptiLibrary out;
  out.version = "CUPTI API " + std::to_string(version);
  out.use_buffers = [f](ActivityBuffers* buffers) -> CuptiLibrary::Why {
    buffers_in_use = buffers;
    if (buffers == nullptr) return std::nullopt;
    return why(f, f.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed),
               "CUPTI takes no callbacks");
  };
  out.enable = [f](CuptiRecords r) {
    return why(f, f.cuptiActivityEnable(kind_of(r)), "CUPTI does not record");
  };
  out.disable = [f](CuptiRecords r) {
    return why(f, f.cuptiActivityDisable(kind_of(r)), "CUPTI does not stop recording");
  };
  out.push_mark = [f](std::uint64_t mark) {
    return why(
        f, f.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, mark),
        "CUPTI takes no mark");
  };
  out.pop_mark = [f] {
    std::uint64_t last = 0;
    return why(
        f, f.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
        "CUPTI has no mark to take back");
  };
  out.flush = [f] {
    return why(f, f.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
               "CUPTI gives its buffers not back");
  };
  out.lost = [f] {
    std::size_t dropped = 0;
    const bool told = f.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS;
    return told ? static_cast<long>(dropped) : 0L;
  };
  out.read = [f](std::span<std::byte> buffer, ActivitySink& sink) {
    CUpti_Activity* record = nullptr;
    auto* bytes = reinterpret_cast<std::uint8_t*>(buffer.data());
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = f.cuptiActivityGetNextRecord(bytes, buffer.size(), &record)) ==
           CUPTI_SUCCESS) {
      read_record(*record, sink);
    }
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED && !buffer.empty()) sink.add_unreadable();
  };
  return out;
}

}  // namespace

std::variant<CuptiLibrary, std::string> load_cupti() {
  std::variant<Functions, std::string> opened = open_library();
  if (auto* problem = std::get_if<std::string>(&opened)) return std::move(*problem);
  const Functions& f = std::get<Functions>(opened);
  std::uint32_t version = 0;
  if (auto problem = why(f, f.cuptiGetVersion(&version), "CUPTI tells no version")) return *problem;
  return table_of(f, version);
}

std::optional<std::string> why_no_cupti() {
  std::variant<CuptiLibrary, std::string> loaded = load_cupti();
  if (auto* problem = std::get_if<std::string>(&loaded)) return std::move(*problem);
  const CuptiLibrary& cupti = std::get<CuptiLibrary>(loaded);
  if (auto problem = cupti.enable(CuptiRecords::kKernels)) {
    return *problem + ": no NVIDIA driver or GPU, or another profiler is attached";
  }
  static_cast<void>(cupti.disable(CuptiRecords::kKernels));
  return std::nullopt;
}

}  // namespace towtank
