// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/trace_reader.h"

#include "core/input_error.h"
#include "profiler/import/kineto/kineto_reader.h"

namespace towtank {
namespace {

constexpr std::size_t kHead = 64 << 10;

}  // namespace

std::vector<std::unique_ptr<TraceReader>> trace_readers() {
  std::vector<std::unique_ptr<TraceReader>> out;
  out.push_back(kineto_reader());
  return out;
}

std::unique_ptr<TraceReader> reader_of(std::string_view head) {
  for (auto& reader : trace_readers()) {
    if (reader->recognises(head)) return std::move(reader);
  }
  return nullptr;
}

std::vector<Trace> read_traces(const std::string& path) {
  std::vector<Trace> out;
  ByteSource source = ByteSource::open(path);
  do {
    const auto reader = reader_of(source.peek(kHead));
    if (!reader) {
      throw InputError({source.name(), "is no trace that is known",
                        "Kineto and Chrome traces, execution traces and Nsight Systems SQLite are",
                        ""});
    }
    out.push_back(reader->read(source));
  } while (source.next_member());
  return out;
}

}  // namespace towtank
