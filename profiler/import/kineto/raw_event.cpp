// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/kineto/raw_event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace towtank::kineto {
namespace {

struct CategoryName {
  std::string_view name;
  TraceCategory category;
};
/// Kineto ActivityType.cpp of 2021 (capitals) to 2025.
constexpr std::array kCategories{
    CategoryName{"cpu_op", TraceCategory::kCpuOp},
    CategoryName{"Operator", TraceCategory::kCpuOp},
    CategoryName{"user_annotation", TraceCategory::kAnnotation},
    CategoryName{"python_function", TraceCategory::kModule},
    CategoryName{"cuda_runtime", TraceCategory::kHostCall},
    CategoryName{"cuda_driver", TraceCategory::kHostCall},
    CategoryName{"Runtime", TraceCategory::kHostCall},
    CategoryName{"xpu_runtime", TraceCategory::kHostCall},
    CategoryName{"mtia_runtime", TraceCategory::kHostCall},
    CategoryName{"privateuse1_runtime", TraceCategory::kHostCall},
    CategoryName{"privateuse1_driver", TraceCategory::kHostCall},
    CategoryName{"kernel", TraceCategory::kKernel},
    CategoryName{"Kernel", TraceCategory::kKernel},
    CategoryName{"concurrent_kernel", TraceCategory::kKernel},
    CategoryName{"gpu_memcpy", TraceCategory::kCopy},
    CategoryName{"Memcpy", TraceCategory::kCopy},
    CategoryName{"gpu_memset", TraceCategory::kFill},
    CategoryName{"Memset", TraceCategory::kFill},
    CategoryName{"cuda_sync", TraceCategory::kDeviceSync},
    CategoryName{"gpu_user_annotation", TraceCategory::kDeviceAnnotation},
};
/// What holds no device work and no op.
constexpr std::array<std::string_view, 9> kHarmless{
    "python_function",   "Trace", "overhead", "cuda_event",
    "cpu_instant_event", "ac2g",  "fwdbwd",   "cuda_profiler_range",
    "ProfilerStep"};

constexpr std::string_view kModulePrefix = "nn.Module: ";

bool is_kept_phase(std::string_view phase) {
  return phase == "X" || phase == "B" || phase == "E" || phase.empty();
}

/// The rest of an event says nothing that is kept.
bool is_of_no_use(const RawEvent& e) {
  if (!is_kept_phase(e.phase)) return true;
  return e.category == "python_function" && !e.name.empty() && !e.name.starts_with(kModulePrefix);
}

/// A scalar: strings without their quotes.
std::string_view scalar(JsonCursor& cursor) {
  return cursor.peek() == '"' ? cursor.string() : cursor.value();
}

std::string_view* argument_slot(RawEvent& e, std::string_view key) {
  switch (key.size()) {
    case 3:
      return key == "Seq" || key == "seq" ? &e.seq : nullptr;
    case 5:
      return key == "bytes" ? &e.bytes : key == "dtype" ? &e.dtype : nullptr;
    case 6:
      return key == "stream" ? &e.stream : key == "device" ? &e.device : nullptr;
    case 10:
      if (key == "Input Dims" || key == "Input dims") return &e.shapes;
      if (key == "Input type" || key == "Input Type") return &e.types;
      return key == "Group size" ? &e.group_size : nullptr;
    case 11:
      if (key == "correlation") return &e.correlation;
      return key == "External id" || key == "external id" ? &e.external_id : nullptr;
    case 13:
      return key == "In msg nelems" || key == "In msg size" ? &e.in_elements : nullptr;
    case 14:
      return key == "Out msg nelems" ? &e.out_elements : nullptr;
    case 15:
      if (key == "Sequence number") return &e.sequence;
      if (key == "Concrete Inputs") return &e.values;
      return key == "Collective name" ? &e.collective : nullptr;
    case 16:
      return key == "Process Group ID" && e.group.empty() ? &e.group : nullptr;
    case 18:
      return key == "Process Group Name" ? &e.group : nullptr;
    case 19:
      return key == "Process Group Ranks" ? &e.ranks : nullptr;
    default:
      return nullptr;
  }
}

void read_arguments(JsonCursor& cursor, RawEvent& e) {
  if (cursor.peek() != '{') {
    cursor.skip_value();
    return;
  }
  cursor.need('{');
  if (cursor.take('}')) return;
  while (cursor.ok()) {
    const std::string_view key = cursor.string();
    cursor.need(':');
    if (std::string_view* const slot = argument_slot(e, key)) {
      *slot = scalar(cursor);
    } else {
      cursor.skip_value();
    }
    if (cursor.take(',')) continue;
    cursor.need('}');
    return;
  }
}

std::string_view* event_slot(RawEvent& e, std::string_view key) {
  switch (key.size()) {
    case 2:
      return key == "ph" ? &e.phase : key == "ts" ? &e.start : nullptr;
    case 3:
      if (key == "cat") return &e.category;
      if (key == "pid") return &e.process;
      return key == "tid" ? &e.thread : key == "dur" ? &e.duration : nullptr;
    case 4:
      return key == "name" ? &e.name : nullptr;
    default:
      return nullptr;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> from_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  constexpr double kMost = 9.2e18;
  const double scaled = value * 1000;
  if (!(std::abs(scaled) < kMost)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(scaled));
}

/// Length of the UTF-8 character at the start of text; 0 if it is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

void append_utf8(std::string& out, unsigned code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::optional<unsigned> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc{} || end != text.data() + 4) return std::nullopt;
  return value;
}

/// Appends the character of "uXXXX"; returns how many characters of the text it takes, 0: none.
std::size_t append_code(std::string& out, std::string_view text) {
  const auto high = hex4(text.substr(1));
  if (!high) return 0;
  if (*high < 0xD800 || *high > 0xDFFF) {
    append_utf8(out, *high);
    return 5;
  }
  if (*high > 0xDBFF || !text.substr(5).starts_with("\\u")) return 0;
  const auto low = hex4(text.substr(7));
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return 0;
  append_utf8(out, 0x10000 + ((*high - 0xD800) << 10U) + (*low - 0xDC00));
  return 11;
}

}  // namespace

void read_event(JsonCursor& cursor, RawEvent& e) {
  cursor.need('{');
  if (cursor.take('}')) return;
  while (cursor.ok()) {
    const std::string_view key = cursor.string();
    cursor.need(':');
    if (key == "args") {
      read_arguments(cursor, e);
    } else if (std::string_view* const slot = event_slot(e, key)) {
      *slot = scalar(cursor);
      if (is_of_no_use(e)) {
        cursor.skip_containers(1);
        return;
      }
    } else {
      cursor.skip_value();
    }
    if (cursor.take(',')) continue;
    cursor.need('}');
    return;
  }
}

std::optional<TraceCategory> category_of(const RawEvent& e) {
  const auto known = std::find_if(kCategories.begin(), kCategories.end(),
                                  [&](const CategoryName& c) { return c.name == e.category; });
  if (known == kCategories.end()) return std::nullopt;
  if (known->category == TraceCategory::kModule && !e.name.starts_with(kModulePrefix)) {
    return std::nullopt;
  }
  // Files of 2021 have annotations among the operators: "ProfilerStep#5",
  // "Optimizer.step#SGD.step".
  if (known->category == TraceCategory::kCpuOp && e.name.find('#') != std::string_view::npos &&
      e.name.find("::") == std::string_view::npos) {
    return TraceCategory::kAnnotation;
  }
  return known->category;
}

bool is_harmless(std::string_view category) {
  return std::find(kHarmless.begin(), kHarmless.end(), category) != kHarmless.end();
}

std::optional<WholeNumber> whole_number(std::string_view text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string_view::npos) return std::nullopt;
  const bool negative = first > 0 && text[first - 1] == '-';
  WholeNumber out;
  std::uint64_t value = 0;
  constexpr std::uint64_t kMost = 0x7FFFFFFFFFFFFFFF;
  for (const char c : text.substr(first)) {
    if (c == '.') break;
    if (!is_digit(c)) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    out.wide = out.wide || value > (kMost - digit) / 10;
    value = value * 10 + digit;
  }
  out.value = static_cast<std::int64_t>(negative ? 0 - value : value);
  return out;
}

std::optional<std::int64_t> thousandths(std::string_view text) {
  std::size_t at = 0;
  const bool negative = text.starts_with('-');
  if (negative) ++at;
  const std::size_t first = at;
  std::int64_t value = 0;
  constexpr std::int64_t kMost = 9'000'000'000'000'000;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kMost) return std::nullopt;
  }
  if (at == first) return std::nullopt;
  value *= 1000;
  if (at < text.size() && text[at] == '.') {
    ++at;
    const std::size_t point = at;
    at = std::min(text.find_first_not_of("0123456789", at), text.size());
    const std::string_view digits = text.substr(point, at - point);
    std::int64_t unit = 100;
    for (const char c : digits.substr(0, 3)) {
      value += unit * (c - '0');
      unit /= 10;
    }
    if (digits.size() > 3 && digits[3] >= '5') ++value;
  }
  if (at != text.size()) return from_double(text);
  return negative ? -value : value;
}

std::string unescaped(std::string_view raw, bool& broken) {
  std::string out;
  out.reserve(raw.size());
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    ++i;
    if (raw[i] == 'u') {
      const std::size_t taken = append_code(out, raw.substr(i));
      broken = broken || taken == 0;
      if (taken == 0) out += "\xEF\xBF\xBD";
      i += taken == 0 ? 0 : taken - 1;
      continue;
    }
    const std::size_t at = kFrom.find(raw[i]);
    broken = broken || at == std::string_view::npos;
    out += at == std::string_view::npos ? raw[i] : kTo[at];
  }
  return out;
}

std::optional<std::string> mended_utf8(std::string_view text) {
  std::size_t good = 0;
  while (good < text.size()) {
    const std::size_t length = utf8_length(text.substr(good));
    if (length == 0) break;
    good += length;
  }
  if (good == text.size()) return std::nullopt;
  std::string out(text.substr(0, good));
  for (std::size_t i = good; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace towtank::kineto
