// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One element of traceEvents as slices of the file, and what its numbers mean.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/import/kineto/json_cursor.h"
#include "profiler/trace.h"

namespace towtank::kineto {

/// Values as they stand in the file: strings without quotes, arrays with brackets. Empty if absent.
struct RawEvent {
  std::string_view phase, category, name, process, thread, start, duration;
  std::string_view external_id, correlation, sequence, device, stream, bytes;
  std::string_view shapes, types, values;  ///< "Input Dims", "Input type", "Concrete Inputs"
  std::string_view collective, dtype, group, ranks, group_size, in_elements, out_elements, seq;
};

/// Reads an object. What an event of no use says further is skipped.
void read_event(JsonCursor&, RawEvent&);

/// What events are sorted into; nullopt: not kept, counted under their category.
[[nodiscard]] std::optional<TraceCategory> category_of(const RawEvent&);
/// Whether an event of this category can be left out without losing a measurement.
[[nodiscard]] bool is_harmless(std::string_view category);

struct WholeNumber {
  std::int64_t value = 0;
  bool wide = false;  ///< beyond int64: its low 64 bits, which still tell ids apart
};
/// Digits of an integer, perhaps with a sign or a prefix of letters ("stream 7").
[[nodiscard]] std::optional<WholeNumber> whole_number(std::string_view text);
/// Decimal text in units of 1000 ns, exact to the nanosecond; nullopt if it is no number or beyond
/// int64 nanoseconds.
[[nodiscard]] std::optional<std::int64_t> thousandths(std::string_view text);

/// The content of a JSON string without its escapes; `broken` is set if an escape is none.
[[nodiscard]] std::string unescaped(std::string_view raw, bool& broken);
/// Bytes that are not UTF-8 become U+FFFD; nullopt if there is none.
[[nodiscard]] std::optional<std::string> mended_utf8(std::string_view text);

}  // namespace towtank::kineto
