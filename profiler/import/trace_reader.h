// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The seam between formats of traces and everything that reads traces.
///
///   format                            reader                     file
///   Kineto, Chrome trace events       kineto/kineto_reader.h     .json, .json.gz
///   PyTorch execution trace           chakra/chakra_reader.h     .json
///   Chakra execution trace            chakra/chakra_reader.h     .et (needs protobuf)
///   Nsight Systems                    nsys/nsys_reader.h         .sqlite (needs SQLite)
///
/// Readers are tolerant: what cannot be used is left out and counted in Trace::stats under its
/// reason and severity, never dropped in silence. They throw InputError only where nothing of a
/// file can be read.
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiler/import/byte_source.h"
#include "profiler/import/source_text.h"
#include "profiler/trace.h"

namespace towtank {

class TraceReader {
 public:
  virtual ~TraceReader() = default;
  /// What the format is called.
  [[nodiscard]] virtual std::string_view format() const = 0;
  /// Whether a file that begins so is in this format. `head` are up to 64 KiB.
  [[nodiscard]] virtual bool recognises(std::string_view head) const = 0;
  /// The file from where the source stands. Throws InputError.
  [[nodiscard]] virtual Trace read(ByteSource& source) const = 0;
};

/// All readers of this build.
[[nodiscard]] std::vector<std::unique_ptr<TraceReader>> trace_readers();
/// The reader of a file that begins so; nullptr if it is no trace that is known.
[[nodiscard]] std::unique_ptr<TraceReader> reader_of(std::string_view head);
/// Every trace of a file, or its text if it is in none of these formats: a table or a log. Throws
/// InputError if it cannot be read.
[[nodiscard]] std::variant<std::vector<Trace>, SourceText> read_traces_or_text(
    const std::string& path);
/// Every trace of a file: one, or those of an archive. Throws InputError if the file cannot be
/// read, or is in no format that is known.
[[nodiscard]] std::vector<Trace> read_traces(const std::string& path);

}  // namespace towtank
