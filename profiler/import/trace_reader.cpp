// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/trace_reader.h"

#include "core/input_error.h"
#include "profiler/import/chakra/chakra_reader.h"
#include "profiler/import/kineto/kineto_reader.h"
#include "profiler/import/nsys/nsys_reader.h"

namespace towtank {
namespace {

constexpr std::size_t kHead = 64 << 10;

[[noreturn]] void no_trace(const std::string& name) {
  throw InputError({name, "is no trace that is known",
                    "Kineto and Chrome traces, execution traces and Nsight Systems SQLite are",
                    ""});
}

}  // namespace

std::vector<std::unique_ptr<TraceReader>> trace_readers() {
  std::vector<std::unique_ptr<TraceReader>> out;
  out.push_back(kineto_reader());
  out.push_back(execution_trace_reader());
  out.push_back(nsys_reader());
  out.push_back(chakra_reader());
  return out;
}

std::unique_ptr<TraceReader> reader_of(std::string_view head) {
  for (auto& reader : trace_readers()) {
    if (reader->recognises(head)) return std::move(reader);
  }
  return nullptr;
}

std::variant<std::vector<Trace>, SourceText> read_traces_or_text(const std::string& path) {
  std::vector<Trace> traces;
  ByteSource source = ByteSource::open(path);
  do {
    if (const auto reader = reader_of(source.peek(kHead))) {
      traces.push_back(reader->read(source));
    } else if (traces.empty()) {
      if (!source.plain_path().empty()) return read_source(path);
      std::string name = source.name();
      return SourceText{std::move(name),
                        read_rest(source, static_cast<std::size_t>(kMaxTableBytes.value))};
    } else {
      no_trace(source.name());
    }
  } while (source.next_member());
  return traces;
}

std::vector<Trace> read_traces(const std::string& path) {
  auto read = read_traces_or_text(path);
  if (const auto* text = std::get_if<SourceText>(&read)) no_trace(text->name);
  return std::get<std::vector<Trace>>(std::move(read));
}

}  // namespace towtank
