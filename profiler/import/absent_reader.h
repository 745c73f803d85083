// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stands in for a reader whose library this build lacks: knows its files, and says what is
/// missing.
#include "core/input_error.h"
#include "profiler/import/trace_reader.h"

namespace towtank {

class AbsentReader final : public TraceReader {
 public:
  AbsentReader(std::string_view format, bool (*recognises)(std::string_view),
               std::string_view package)
      : format_(format), recognises_(recognises), package_(package) {}
  [[nodiscard]] std::string_view format() const override { return format_; }
  [[nodiscard]] bool recognises(std::string_view head) const override { return recognises_(head); }
  [[nodiscard]] Trace read(ByteSource& source) const override {
    throw InputError({source.name(),
                      "is a trace of " + std::string(format_) + ", which this build cannot read",
                      "it was made without " + std::string(package_),
                      "Install " + std::string(package_) + " and build again."});
  }

 private:
  std::string_view format_;
  bool (*recognises_)(std::string_view);
  std::string_view package_;
};

}  // namespace towtank
